"""Hints as a column of models: what a proven source said before each round, nothing read later, and no column otherwise."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from made_hints import DAY, N_DAYS, NOW, START, hint_row, hinted_history, url
from recrawl.history import History
from recrawl.history.hints import HINTS
from recrawl.insight.features import Feature, known_before
from recrawl.insight.features.from_hints import hinted_by_round, proven_hints
from recrawl.insight.hints.track_record import wilson_lower
from recrawl.models.predictor import Recipe, predict, train
from recrawl.models.reasons import reasons
from recrawl.models.saved import load, save
from recrawl.web.visit import Visit
from recrawl.world.panel import build

N_PAGES = 30


def by_chance(host: str, page: int, day: int) -> bool:
    """A quarter of the pages change on a day, and the past does not show which."""
    return bool(np.random.default_rng([len(host), page, day]).random() < 0.25)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return hinted_history(tmp_path_factory.mktemp("hinted") / "history", N_PAGES, by_chance)


def test_a_column_holds_what_a_proven_source_said_before_the_round(history: History) -> None:
    panel = build(history, "crawl", 0.0)
    hinted = hinted_by_round(history, panel)
    assert hinted is not None
    honest = [i for i, name in enumerate(panel.url.to_pylist()) if "honest" in name]
    number = {i: int(panel.url[i].as_py().rsplit("/", 1)[1]) for i in honest}
    right = n_hinted = n_changed = n_visits = 0  # of the honest host so far, worked out page by page
    for j in range(N_DAYS + 1):
        for i in honest:
            changed = by_chance("honest", number[i], j) if j else False
            n_visits, n_changed, n_hinted, right = (
                n_visits + (j > 0),
                n_changed + changed,
                n_hinted + changed,
                right + changed,
            )
        lower = wilson_lower(np.array([right]), np.array([n_hinted]))[0]
        is_proven, is_complete = n_hinted >= 10 and lower > 0.5, lower >= 0.8
        for i in honest:
            said = by_chance("honest", number[i], j + 1) if j < N_DAYS else number[i] == 4
            expected = (right + 1) / (n_hinted + 2) if said else 1 / (n_visits - n_hinted + 2)
            known = is_proven if said else is_proven and is_complete
            np.testing.assert_allclose(hinted[i, j], expected if known else np.nan, rtol=1e-6)
    liar = [i for i, name in enumerate(panel.url.to_pylist()) if "liar" in name]
    assert np.isnan(hinted[liar]).all()


def test_nothing_that_comes_later_is_in_it(history: History, tmp_path: Path) -> None:
    day = 12
    until = START + (day + 0.9) * DAY  # after the reading that precedes the round of day 13
    short, noisy = hinted_history(tmp_path / "short", N_PAGES, by_chance), History.create(tmp_path / "noisy")
    assert hinted_by_round(short.as_of(until), build(short.as_of(until), "crawl", 0.0)) is not None
    for host in ("honest", "liar"):
        seen = [
            Visit(url=url(host, p), at=START + d * DAY, links=_links(host, p, d), text=f"{len(_links(host, p, d))}")
            for d in range(day + 1)
            for p in range(N_PAGES)
        ]
        later = [Visit(url=url(host, p), at=START + 13 * DAY, links=[], text=f"noise {p}") for p in range(N_PAGES)]
        noisy.add(seen + later)
    rows = HINTS.read(short.beside)
    rows = rows.filter(pa.compute.less(rows["read_at"], pa.scalar(until, rows["read_at"].type)))
    late = [hint_row("honest", p, START + 13.4 * DAY, START + 13.3 * DAY) for p in range(N_PAGES)]
    HINTS.append(noisy.beside, pa.concat_tables([rows, pa.Table.from_pylist(late, schema=HINTS.schema)]))
    column = (Feature("hinted"),)
    whole, other = build(history, "crawl", 0.0), build(noisy, "crawl", 0.0)
    mine = known_before(history, whole, day + 1, column).matrix(column, day + 1)
    theirs = known_before(noisy, other, day + 1, column).matrix(column, day + 1)
    assert (~np.isnan(mine)).any()
    np.testing.assert_array_equal(mine, theirs)


def _links(host: str, page: int, day: int) -> list[str]:
    n = 3 + 2 * sum(by_chance(host, page, d) for d in range(day + 1))
    return [url(host, 1000 * page + i) for i in range(n)]


def test_a_trained_model_goes_by_proven_hints_and_says_so(history: History, tmp_path: Path) -> None:
    known = history.as_of(NOW)
    predictor = train(known, Recipe(links=("all",)))
    assert Feature("hinted") in predictor.trained["all"].columns
    save(predictor, tmp_path / "model")
    predictor = load(tmp_path / "model")
    prediction = predict(predictor, known)["all"]
    names = prediction.panel.url.to_pylist()
    named, unnamed = names.index(url("honest", 4)), names.index(url("honest", 5))
    assert prediction.expected[named] > 1.2  # its changes brought two links each
    assert prediction.expected[unnamed] < 0.2
    strongest = reasons(predictor, prediction, np.array([named]))[0][0]
    assert strongest.words.endswith("likely to have changed, by its sitemap or feed")
    assert strongest.effect > 0.5


def test_there_is_no_column_before_a_source_is_proven_or_read(history: History, tmp_path: Path) -> None:
    early = history.as_of(START + 1.5 * DAY)
    assert proven_hints(early, build(early, "crawl", 0.0)) == ()
    plain = History.create(tmp_path / "plain")
    plain.add([Visit(url=url("a", p), at=START + d * timedelta(days=1), links=[]) for p in range(3) for d in range(3)])
    assert proven_hints(plain, build(plain, "crawl", 0.0)) == ()
    column = (Feature("hinted"),)
    assert np.isnan(known_before(plain, build(plain, "crawl", 0.0), 2, column).matrix(column, 2)).all()
