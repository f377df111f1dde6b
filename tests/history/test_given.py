"""What sources state of pages is found again, whatever the order of imports."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path

import numpy as np

from recrawl.history import History, page_timeline
from recrawl.history.given import given_of
from recrawl.insight.features import known_before
from recrawl.web.visit import Given, Visit
from recrawl.world.panel import build

AT = datetime(2026, 1, 5, tzinfo=UTC)
LINKS = ["https://e.org/b", "https://f.org/"]


def visit(page: str, week: int = 0, given: Given | None = None) -> Visit:
    return Visit(url=f"https://e.org/{page}", at=AT + timedelta(weeks=week), links=LINKS, given=given)


def test_most_histories_state_nothing(tmp_path: Path) -> None:
    history = History.create(tmp_path)
    history.add([visit("a")])
    timeline = history.timeline
    assert given_of(history.store, timeline.page, timeline.at) is None
    history.add([visit("b", given=Given(n_internal=1))])
    assert given_of(history.store, timeline.page, timeline.at) is None  # of this page nothing is stated


def test_of_several_statements_the_fullest_counts_whatever_the_order(tmp_path: Path) -> None:
    statements = (Given(trustrank=1.0), Given(trustrank=2.0, n_inlinks_internal=5), Given(n_internal=3))
    for i, order in enumerate(permutations(statements)):
        history = History.create(tmp_path / str(i))
        for statement in order:
            history.add([visit("a", given=statement)])
        timeline = history.timeline
        found = given_of(history.store, timeline.page, timeline.at)
        assert found is not None
        assert (found.values["trustrank"].tolist(), found.values["n_inlinks_internal"].tolist()) == ([2.0], [5.0])


def test_a_stated_number_of_links_counts_more_than_what_is_shown(tmp_path: Path) -> None:
    history = History.create(tmp_path)
    history.add([visit("a"), visit("a", 1, Given(n_internal=40)), visit("a", 2, Given(n_internal=41, stand_ins=True))])
    shown = page_timeline(history, "https://e.org/a").visits
    assert [(v.n_internal, v.n_external, v.n_left) for v in shown] == [(1, 1, None), (40, 1, 0), (41, None, None)]


def test_given_ranks_are_used_and_computed_ones_where_nothing_is_stated(tmp_path: Path) -> None:
    history = History.create(tmp_path)
    history.add(visit(page, week) for page in "ab" for week in range(3))
    history.add(
        [visit("c", 0, Given(trustrank=7.0, n_inlinks_internal=9)), visit("c", 1, Given()), visit("c", 2, Given())]
    )
    panel = build(history)
    known = known_before(history, panel, 3)
    at = [panel.url.to_pylist().index(f"https://e.org/{page}") for page in "abc"]
    inlinks = known.values("n_inlinks_internal")[at]
    np.testing.assert_array_equal(inlinks[:2], [[0, 0, 0], [2, 2, 2]])  # c and a link to b
    assert inlinks[2].tolist() == [9, 0, 0]  # stated, then worked out, since nothing of it is stated
    trust = known.values("trustrank")[at]
    assert trust[2, 0] == 7
    assert not np.isnan(trust).any()
    assert not np.isnan(known.values("pagerank")).any()


def test_a_window_of_rounds_keeps_what_is_given(tmp_path: Path) -> None:
    history = History.create(tmp_path)
    history.add(visit("a", week, Given(trustrank=float(week))) for week in range(4))
    given = build(history).window(1, 3).given
    assert given is not None
    assert given.values["trustrank"].tolist() == [[1.0, 2.0]]
