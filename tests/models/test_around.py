"""Pages without a past of their own: from related pages, else from the site, else from all pages; in numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from recrawl.history import History
from recrawl.models.around import BASES, STRENGTH
from recrawl.models.predictor import Prediction, Recipe, predict, train
from recrawl.models.reasons import reasons
from recrawl.web.visit import Visit

START = datetime(2026, 1, 5, tzinfo=UTC)
ROUNDS = 9
LIVELY, QUIET = (
    30,
    8,
)  # links that a page of a lively site gains a round; rounds after which the page of the quiet one gains one
ALL = Recipe(links=("all",), n_jobs=1)


def web(folder: Path) -> History:
    """Two lively sites with 20 pages each, and a quiet one with a single page; pages say what their site is about."""
    history = History.create(folder)
    rng = np.random.default_rng(0)
    visits = []
    for r in range(ROUNDS):
        at = START + timedelta(days=r)
        for site in ("lively.org", "busy.org"):
            for i in range(20):
                n = rng.poisson(LIVELY)
                links = [f"https://{site}/{i}/{r}/{j}" for j in range(n)]
                visits.append(Visit(url=f"https://{site}/{i}", at=at, links=links, text=f"news of today {site} {i}"))
        links = [f"https://quiet.org/a{r // QUIET}"]
        visits.append(Visit(url="https://quiet.org/", at=at, links=links, text="an archive of old papers"))
    visits.append(Visit(url="https://new.org/", at=at, links=[], text="news of today lively.org"))
    history.add(visits)
    return history


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Prediction, list[list[str]]]:
    history = web(tmp_path_factory.mktemp("around") / "h")
    predictor = train(history, ALL)
    prediction = predict(
        predictor, history, [f"https://{host}.org/unknown" for host in ("lively", "quiet", "elsewhere")]
    )
    rows = [row(prediction["all"], f"https://{host}.org/unknown") for host in ("lively", "quiet", "elsewhere")]
    why = reasons(predictor, prediction["all"], np.array([*rows, row(prediction["all"], "https://new.org/")]))
    return prediction["all"], [[str(reason) for reason in one] for one in why]


def row(found: Prediction, url: str) -> int:
    return found.panel.url.to_pylist().index(url)


def test_a_never_seen_page_of_a_quiet_site_is_predicted_quiet(found: tuple[Prediction, list[list[str]]]) -> None:
    prediction = found[0]
    page = row(prediction, "https://quiet.org/unknown")
    assert BASES[prediction.basis[page]] == "its site"
    assert prediction.expected[page] < 2
    assert prediction.probability[page] < 0.4
    lively = [row(prediction, f"https://lively.org/{i}") for i in range(20)]
    assert prediction.expected[page] < prediction.expected[lively].min() / 10
    assert prediction.low[page] == 0


def test_a_never_seen_page_of_a_lively_site_is_predicted_lively(found: tuple[Prediction, list[list[str]]]) -> None:
    prediction = found[0]
    page = row(prediction, "https://lively.org/unknown")
    assert BASES[prediction.basis[page]] == "its site"
    assert prediction.expected[page] == pytest.approx(LIVELY, rel=0.15)
    assert prediction.probability[page] > 0.95


def test_a_page_seen_once_is_predicted_like_its_related_pages(found: tuple[Prediction, list[list[str]]]) -> None:
    prediction = found[0]
    page = row(prediction, "https://new.org/")
    assert BASES[prediction.basis[page]] == "related pages"
    assert prediction.expected[page] == pytest.approx(LIVELY, rel=0.15)


def test_a_page_of_an_unknown_site_is_predicted_like_all_pages(found: tuple[Prediction, list[list[str]]]) -> None:
    prediction = found[0]
    page = row(prediction, "https://elsewhere.org/unknown")
    watched = ~np.isnan(prediction.panel.n_new_internal).all(axis=1)
    mean = np.nanmean(prediction.panel.n_new_internal[watched], axis=1).mean()
    assert BASES[prediction.basis[page]] == "all pages"
    assert prediction.expected[page] == pytest.approx(mean, rel=0.1)


def test_the_answer_is_the_mean_drawn_to_what_is_further_away(tmp_path: Path) -> None:
    """By hand: one page of its site is known, 1/9 of a link per round; all pages together have far more."""
    history = web(tmp_path / "h")
    predictor = train(history, ALL)
    prediction = predict(predictor, history, ["https://quiet.org/unknown"])["all"]
    page = row(prediction, "https://quiet.org/unknown")
    of_all, of_site = prediction.near.averages[0].mean[page], prediction.near.averages[1].mean[page]
    assert of_site == pytest.approx(1 / (ROUNDS - 1))
    by_hand = np.expm1((np.log1p(of_site) + STRENGTH * np.log1p(of_all)) / (1 + STRENGTH))
    rate = (1 / (ROUNDS - 1) + STRENGTH * prediction.near.averages[0].rate[page]) / (1 + STRENGTH)
    assert prediction.expected[page] == pytest.approx(max(by_hand, rate), rel=1e-5)
    assert prediction.probability[page] == pytest.approx(rate, rel=1e-5)


def test_the_reasons_of_a_page_without_a_past_are_what_is_around_it(found: tuple[Prediction, list[list[str]]]) -> None:
    lively, quiet, elsewhere, new = found[1]
    assert lively[0].startswith("its site: ")
    assert quiet[0].startswith("its site: 0.12 new links per round on 1 page (-")
    assert [words.split(":")[0] for words in elsewhere] == ["all pages"]
    assert new[0].startswith("related pages: ")


def test_where_nothing_is_known_of_any_page_the_answer_is_that_of_training(tmp_path: Path) -> None:
    history = web(tmp_path / "h")
    predictor = train(history, ALL)
    prediction = predict(predictor, history.as_of(START))["all"]
    assert set(prediction.basis) == {len(BASES) - 1}
    assert prediction.expected == pytest.approx(predictor.trained["all"].overall[0], rel=1e-5)


def test_always_zero_says_zero_of_every_page(tmp_path: Path) -> None:
    history = web(tmp_path / "h")
    predictor = train(history, Recipe(links=("all",), learner="always-zero"))
    assert predict(predictor, history)["all"].expected.max() < 1e-5
