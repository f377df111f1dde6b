"""How a stream of visits is cut: by pauses where there are any, else by a period that suits it."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.core.times import NEVER
from recrawl.world.batches import HOUR, MINUTE, BatchRule, CrawlPace, distinct_moments

DAY = 24 * HOUR


def pace(visits: list[tuple[int, float]]) -> CrawlPace:
    """Of (page, hours)."""
    page, at = np.array([p for p, _ in visits]), np.array([int(hours * HOUR) for _, hours in visits])
    order = np.lexsort((at, page))
    return CrawlPace.of(page[order], at[order])


def n_batches(visits: list[tuple[int, float]]) -> int:
    return len(pace(visits).rule().batch_ends(distinct_moments(np.array([int(hours * HOUR) for _, hours in visits]))))


def test_daily_crawls_of_all_pages_are_told_by_their_pauses() -> None:
    visits = [(page, 24 * day + page / 60) for day in range(9) for page in range(50)]
    assert pace(visits).rule().kind == "pause"
    assert n_batches(visits) == 9


def test_nightly_crawls_of_a_few_pages_are_batches_of_their_own() -> None:
    chance = np.random.default_rng(0)
    visits = [(page, page / 600) for page in range(200)]
    visits += [
        (int(p), 24 * (1 + night) + i / 600) for night in range(25) for i, p in enumerate(chance.permutation(200)[:10])
    ]
    assert n_batches(visits) == 26


def test_a_crawl_that_never_pauses_is_cut_into_periods() -> None:
    visits = [(i % 2_000, i / 20) for i in range(10_000)]  # twenty an hour, every page each hundred hours
    rule = pace(visits).rule()
    assert (rule.kind, rule.length) == ("period", 12 * HOUR)
    assert "without pauses" in rule.why


def test_captures_of_an_archive_are_cut_into_periods() -> None:
    chance = np.random.default_rng(1)
    visits = [(page, float(hours)) for page in range(40) for hours in chance.random(24) * 200 * 24]
    assert pace(visits).rule().kind == "period"


def test_one_crawl_is_one_batch_even_if_some_pages_are_fetched_twice() -> None:
    visits = [(page, page / 100) for page in range(500)] + [(3, 2.0), (4, 3.0)]
    assert n_batches(visits) == 1


def test_a_pace_that_is_carried_on_is_that_of_all_visits_at_once() -> None:
    chance = np.random.default_rng(2)
    at = np.sort(chance.integers(0, 90 * DAY, 400))
    page = chance.integers(0, 30, 400)
    whole = CrawlPace.of(*_ordered(page, at))
    early = at <= at[150]
    first = CrawlPace.of(*_ordered(page[early], at[early]))
    last = np.full(30, NEVER)
    np.maximum.at(last, page[early], at[early])
    later_page, later_at = _ordered(page[~early], at[~early])
    n_new = len(set(page.tolist()) - set(page[early].tolist()))
    carried = first.going_on(last[later_page], int(at[150]), later_page, later_at, n_new)
    assert (carried.gaps == whole.gaps).all()
    assert (carried.pauses == whole.pauses).all()
    assert (carried.n_visits, carried.n_pages) == (whole.n_visits, whole.n_pages)


def _ordered(page: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.lexsort((at, page))
    return page[order], at[order]


@pytest.mark.parametrize(("minutes", "same"), [(29, True), (31, False)])
def test_two_moments_are_one_batch_if_the_pause_between_them_is_no_longer_than_the_rule(
    minutes: int, same: bool
) -> None:
    rule = BatchRule("pause", 30 * MINUTE)
    assert rule.is_one_batch(DAY, DAY + minutes * MINUTE, 0) == same
    assert rule.is_over(DAY, DAY, DAY + minutes * MINUTE) != same


def test_periods_are_counted_from_the_beginning_of_the_stream_not_of_a_piece_of_it() -> None:
    rule, began = BatchRule("period", 7 * DAY), 3 * DAY
    moments = np.array([3, 9, 10, 16, 17, 40]) * DAY
    whole = rule.batch_ends(moments)
    assert rule.batch_ends(moments[3:], began).tolist() == whole[whole >= moments[3]].tolist()
