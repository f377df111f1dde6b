"""What a replay may know: pages from their first record on, and what they showed between two records."""

from __future__ import annotations

import numpy as np

from recrawl.policies import RoundRobin
from recrawl.policies.budget import Budget
from recrawl.replay.run import replay
from recrawl.testing import tiny_world
from recrawl.world.crawler import Crawler
from recrawl.world.readings import CARRY, ONLY_RECORDED
from recrawl.world.recorded import FAILED, GONE, NOTHING

SPARSE = [[{1}, {5}], [NOTHING, {5}], [{1, 2}, {5}], [NOTHING, {5}], [NOTHING, {5, 6}]]


def links(crawler: Crawler, page: int) -> list[int]:
    shown = crawler.visit(np.array([page])).visits.shown
    return crawler.world.link[shown[0]].tolist()


def test_between_two_records_a_page_is_as_the_earlier_one_shows_it() -> None:
    crawler = Crawler(tiny_world(SPARSE, between=CARRY))
    assert links(crawler, 0) == [1]
    assert links(crawler, 0) == [1, 2]


def test_in_the_older_reading_a_visit_where_none_was_recorded_fails() -> None:
    crawler = Crawler(tiny_world(SPARSE, between=ONLY_RECORDED))
    visits = crawler.visit(np.array([0])).visits
    assert visits.failed.tolist() == [True]


def test_after_its_last_record_a_page_is_unknown_and_cannot_be_chosen() -> None:
    world = tiny_world(SPARSE, between=CARRY)
    crawler = Crawler(world)
    assert [crawler.unknowable().tolist()] == [[False, False]]
    for _ in range(2):
        crawler.visit(np.empty(0, np.int64))
    assert crawler.unknowable().tolist() == [True, False]
    rows = list(replay(world, RoundRobin(), Budget(2)))
    assert [row["fetches"] for row in rows] == [2, 2, 1, 1]


def test_a_failure_is_a_failure_in_its_own_cycle_and_says_nothing_of_others() -> None:
    crawler = Crawler(tiny_world([[{1}], [FAILED], [NOTHING], [{1}]], between=CARRY))
    assert crawler.visit(np.array([0])).visits.failed.tolist() == [True]
    assert crawler.visit(np.array([0])).visits.answered.tolist() == [True]


def test_a_page_that_is_gone_stays_gone_until_the_next_record() -> None:
    crawler = Crawler(tiny_world([[{1}], [GONE], [NOTHING], [{1}]], between=CARRY))
    crawler.visit(np.empty(0, np.int64))
    assert crawler.visit(np.array([0])).visits.gone.tolist() == [True]


def test_a_page_is_a_candidate_from_its_first_record_on() -> None:
    shows = [[{1}, NOTHING], [{1}, NOTHING], [{1}, {7, 8}], [{1}, {7, 8, 9}]]
    world = tiny_world(shows, known_from=[0, 2], between=CARRY)
    rows = list(replay(world, RoundRobin(), Budget(2)))
    assert [row["fetches"] for row in rows] == [1, 2, 2]
    assert [row["found"] for row in rows] == [0, 2, 1]
    known = list(replay(world.with_all_known(), RoundRobin(), Budget(2), between=ONLY_RECORDED))
    assert [row["fetches"] for row in known] == [2, 2, 2]


def test_a_page_that_fails_to_the_end_can_be_chosen_as_one_that_answers_once_more() -> None:
    failing = [[{1}, {5}], [{1}, {5}], *([[FAILED, {5}]] * 3)]
    for last in (FAILED, {1, 2}):
        crawler = Crawler(tiny_world([*failing, [last, {5}]], between=CARRY))
        barred = []
        for _ in range(5):
            barred.append(bool(crawler.unknowable()[0]))
            crawler.visit(np.empty(0, np.int64))
        assert barred == [False] * 5  # nothing of the last record shows before it
