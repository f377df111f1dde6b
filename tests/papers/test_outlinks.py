"""The whole evaluation on histories that have little to offer: a sentence or a sensible row, never a traceback."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.insight.features import FeatureInputs
from recrawl.models.learners import Learner
from recrawl.models.predictor import Recipe, train
from recrawl.papers.outlinks import maps, rankings
from recrawl.papers.outlinks.evaluation import evaluate
from recrawl.papers.outlinks.settings import PARTS, OutlinkSettings
from recrawl.papers.outlinks.tables import scope
from recrawl.web.visit import Visit
from recrawl.world import panel

START = datetime(2026, 1, 5, tzinfo=UTC)
QUICK = OutlinkSettings(links=("internal",), seeds=(0,), quick=True, trees=3)


def history_of(folder: Path, n_pages: int, n_rounds: int, **fields: object) -> History:
    history = History.create(folder)
    history.add(
        Visit(url=f"https://e.org/{i}", at=START + timedelta(days=7 * r), **fields)  # type: ignore[arg-type]
        for i in range(n_pages)
        for r in range(n_rounds)
    )
    return history


NOTHING = {"links": []}  # no text, never a new link: one class, constant features
SAME = {"links": [], "text": "the same words on every page", "content_bytes": 9}


@pytest.mark.parametrize(
    ("split", "fields"),
    [
        pytest.param("pages", NOTHING, marks=pytest.mark.slow),
        ("time", SAME),
        pytest.param("time", NOTHING, marks=pytest.mark.slow),
        pytest.param("pages", SAME, marks=pytest.mark.slow),
    ],
)
def test_pages_that_never_change_are_evaluated_nevertheless(
    tmp_path: Path, split: str, fields: dict[str, object]
) -> None:
    history = history_of(tmp_path, 24, 4, **fields)
    settings = OutlinkSettings(links=("internal",), seeds=(0,), quick=True, trees=3, split=split)
    found = evaluate(history, panel.build(history), settings)
    assert set(found.rows) == set(PARTS)
    rates = [row for row in found.rows["features"] if row["learner"] == "always-zero"]
    assert rates[0]["mae"] == 0


def test_unknown_links_say_what_is_missing(tmp_path: Path) -> None:
    history = history_of(tmp_path, 24, 4, text="words without links")
    with pytest.raises(NotEnoughData, match="too few"):
        evaluate(history, panel.build(history), QUICK)


@pytest.mark.parametrize(("n_pages", "n_rounds", "sentence"), [(24, 1, "1 round;"), (1, 4, "1 page in the panel")])
def test_one_round_or_one_page_is_refused_with_a_sentence(
    tmp_path: Path, n_pages: int, n_rounds: int, sentence: str
) -> None:
    history = history_of(tmp_path, n_pages, n_rounds, links=[])
    with pytest.raises(NotEnoughData, match=sentence):
        evaluate(history, panel.build(history), QUICK)


# -- what was asked for and how it went -------------------------------------------------------------------------------


def two_hosts(folder: Path) -> History:
    """The second host's pages are not seen before the second round."""
    history = History.create(folder)
    history.add(
        Visit(
            url=f"https://h{i % 2}.org/{i}",
            at=START + timedelta(days=7 * r),
            links=[f"https://h{i % 2}.org/{i}/{r}"] if i % 3 else [],
            text=f"word{i % 5} common",
        )
        for r in range(4)
        for i in range(24)
        if r or i % 2 == 0
    )
    return history


def asked_for(*parts: str) -> OutlinkSettings:
    return OutlinkSettings(links=("internal",), parts=parts, seeds=(0,), quick=True, trees=3, history=1, n_jobs=1)


def test_the_search_for_related_pages_is_described_with_its_recall(tmp_path: Path) -> None:
    history = two_hosts(tmp_path)
    found = evaluate(history, panel.build(history, "crawl", 0.0), asked_for("features", "history"))
    last = "by the text before the predicted round 24 pages have some, exact search with recall 1.000"
    first = "by the text of the first round 12 pages have some, exact search with recall 1.000"
    assert found.related == f"{last}; {first}"
    assert scope(found).endswith(f"Related pages: {found.related}.")
    assert found.about() == {
        "pages": 24, "rounds": 4, "predicted": found.predicted, "split": "pages", "target": "outlinks",
        "imbalance": {"internal": 0.5}, "related": found.related, "recall": 1.0,
        "notes": [],
    }  # fmt: skip
    unneeded = evaluate(history, panel.build(history, "crawl", 0.0), asked_for("maps"))
    assert (unneeded.related, unneeded.recall) == ("none were needed", None)


def test_trusted_pages_that_are_unknown_are_noted(tmp_path: Path) -> None:
    history = two_hosts(tmp_path)
    pages = panel.build(history, "crawl", 0.0)
    found = evaluate(history, pages, asked_for("features"), trusted=["h0.org", "https://h9.org/"])
    assert found.notes == ("--trusted 'https://h9.org/': no such page or host is among those evaluated",)
    found = evaluate(history, pages, asked_for("features"), trusted=["h1.org"])
    assert len(found.notes) == 1
    assert "no trusted page was seen in the first round" in found.notes[0]
    with pytest.raises(NotEnoughData, match="none of the trusted pages and hosts is in the panel"):
        evaluate(history, pages, asked_for("features"), trusted=["h9.org"])


def test_only_models_that_give_a_distribution_learn_the_number_of_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learnt: list[str] = []
    original = rankings.learnt

    def watched(task: object, learner: Learner, *args: object) -> object:
        learnt.append(learner.name)
        return original(task, learner, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(rankings, "learnt", watched)
    history = two_hosts(tmp_path)
    found = evaluate(history, panel.build(history, "crawl", 0.0), asked_for("counts"))
    assert learnt == [row["learner"] for row in found.rows["counts"]]
    assert learnt == ["ngboost", "poisson", "negative-binomial", "hurdle", "forecast"]


def test_two_equal_features_correlate_fully_though_one_is_known_of_half_the_pages(tmp_path: Path) -> None:
    history = history_of(tmp_path, 24, 3, links=[])
    known = FeatureInputs(panel.build(history))
    rng = np.random.default_rng(0)
    size = rng.random((24, 1))
    known.panel.base["content_bytes"][:] = size
    known.panel.base["text_bytes"][:] = np.where(rng.random((24, 1)) < 0.5, size, np.nan)
    found = maps.correlation_map(known)
    first, second = (found["names"].index(name) for name in ("page content size", "page text size"))
    assert found["spearman"][second][first] == pytest.approx(1)
    assert found["spearman"][first][second] is None, "the lower triangle is enough"
    assert found["spearman"][first][first] == 1


@pytest.mark.slow
def test_the_forecast_that_is_ranked_is_the_one_that_would_be_trained_and_predicted_with(tmp_path: Path) -> None:
    """Most pages are seen late, so that many have no past; the scores are those of the backtest of `recrawl train`."""
    history = History.create(tmp_path)
    history.add(
        Visit(
            url=f"https://h{i % 4}.org/{i}",
            at=START + timedelta(days=7 * r),
            links=[f"https://h{i % 4}.org/{i}/{r}/{n}" for n in range(i * 7 % 5 * (r % 2 + i % 2))],
            text=f"word{i % 5} common",
        )
        for r in range(6)
        for i in range(80)
        if r >= i % 6
    )
    settings = replace(asked_for("rankings"), split="time", trees=None, history=8)
    found = evaluate(history, panel.build(history, "crawl", 0.0), settings)
    ranked = next(r for r in found.rows["rankings"] if r["ranking"] == "forecast" and r["truth"] == "new-link-count")
    scores = train(history, Recipe(links=("internal",), n_jobs=1)).scores["internal"]
    assert ranked["n_test"] == scores["n_pages"]
    assert ranked["spearman"] == pytest.approx(scores["spearman"], abs=1e-6)
    assert ranked["area"] == pytest.approx(scores["area"], abs=1e-6)


def test_pages_that_never_gained_links_are_tied_where_the_ranking_says_so(tmp_path: Path) -> None:
    from recrawl.insight.features import known_before

    history = History.create(tmp_path)
    history.add(
        Visit(
            url=f"https://e.org/{i}",
            at=START + timedelta(days=7 * r),
            links=[f"https://e.org/l{i}-{j}" for j in range(r + 1 if i % 3 == 0 else 1)],
            content_bytes=100 * i,
        )
        for i in range(40)
        for r in range(6)
    )
    built = panel.build(history)
    chosen = tuple(ranking for ranking in rankings.RANKINGS if ranking.learner == "forecast")
    settings = replace(QUICK, split="time")
    known = known_before(history, built, 5, rankings.all_features(settings))
    values = {
        ranking.name: rankings._value(known, ranking, task, predictions)
        for ranking, task, predictions in rankings._ranked(known, settings, chosen, "internal", 0)
    }
    has_gained = known.values("mean_internal")[:, 4] > 0
    assert 0 < has_gained.sum() < 40
    assert (values["forecast, quiet tied"][~has_gained] == 0).all()
    np.testing.assert_array_equal(values["forecast, quiet tied"][has_gained], values["forecast"][has_gained])
