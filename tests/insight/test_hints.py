"""How reliable hints are: compared with a plain loop, on hosts that lie and hosts that do not, and never from the future."""

from __future__ import annotations

import math
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.insight.hints.track_record import Claims, HintOutcomes, Reads, TrackRecord, judge, learn, wilson_lower

HOUR = 3_600_000_000
N_PAGES, N_HOSTS = 3, 2
times = st.integers(0, 6)
pages = st.integers(0, N_PAGES - 1)


def ints(values: list[int] | range) -> np.ndarray:
    return np.array(values, np.int64)


def host_of(page: int) -> int:
    return page % N_HOSTS


def judged(
    visits: list[tuple[int, int, int]],
    reads: list[tuple[int, int]],
    claims: list[tuple[int, int, int]],
    as_of: int | None = None,
) -> HintOutcomes:
    page, at, changed = (ints(column) for column in zip(*visits, strict=True)) if visits else (ints([]),) * 3
    claim_columns = [ints([claim[column] for claim in claims]) for column in range(3)]
    read_columns = [ints([reading[column] for reading in reads]) for column in range(2)]
    reads_of, claims_of = Reads(*read_columns), Claims(*claim_columns)
    return judge(page, page % N_HOSTS, at, changed.astype(np.int8), reads=reads_of, claims=claims_of, as_of=as_of)


def plainly_judged(
    visits: list[tuple[int, int, int]], reads: list[tuple[int, int]], claims: list[tuple[int, int, int]], as_of: int
) -> set[tuple[int, bool, bool]]:
    rows = set()
    for number, (page, at, changed) in enumerate(visits):
        earlier = [other for other_page, other, _ in visits if other_page == page and other < at]
        if not earlier or changed < 0 or at > as_of:
            continue
        previous = max(earlier)
        if any(host == host_of(page) and previous < read_at <= at for host, read_at in reads):
            said = [when for of, read_at, when in claims if of == page and previous < read_at <= at]
            rows.add((number, any(when > previous for when in said), changed == 1))
    return rows


# -- what was said before a visit -------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(pages, times, st.integers(-1, 1)), max_size=20, unique_by=lambda visit: visit[:2]),
    st.lists(st.tuples(st.integers(0, N_HOSTS - 1), times), max_size=6),
    st.lists(st.tuples(pages, times, times), max_size=12),
    times,
)
def test_visits_are_judged_as_by_a_plain_loop(
    visits: list[tuple[int, int, int]], reads: list[tuple[int, int]], claims: list[tuple[int, int, int]], as_of: int
) -> None:
    outcomes = judged(visits, reads, claims, as_of)
    rows = set(zip(outcomes.visit.tolist(), outcomes.hinted.tolist(), outcomes.changed.tolist(), strict=True))
    assert rows == plainly_judged(visits, reads, claims, as_of)


@given(
    st.lists(st.tuples(pages, times, st.integers(-1, 1)), max_size=20, unique_by=lambda visit: visit[:2]),
    st.lists(st.tuples(st.integers(0, N_HOSTS - 1), times), max_size=6),
    st.lists(st.tuples(pages, times, times), max_size=12),
    times,
)
def test_nothing_that_happens_later_changes_what_is_learnt(
    visits: list[tuple[int, int, int]], reads: list[tuple[int, int]], claims: list[tuple[int, int, int]], as_of: int
) -> None:
    later = judged(visits, reads, claims, as_of)
    past = [visit for visit in visits if visit[1] <= as_of]
    then = judged(past, [read for read in reads if read[1] <= as_of], [claim for claim in claims if claim[1] <= as_of])
    assert sorted(visits[number] for number in later.visit) == sorted(past[number] for number in then.visit)
    assert later.hinted.tolist() == then.hinted.tolist()


def test_a_claim_read_after_the_visit_is_no_hint_for_it() -> None:
    visits = [(0, 0, -1), (0, 10, 1), (0, 20, 1)]
    outcomes = judged(visits, [(0, 9), (0, 11)], [(0, 11, 5)])
    assert (outcomes.visit.tolist(), outcomes.hinted.tolist()) == ([1, 2], [False, False])


def test_a_claim_read_at_the_moment_of_a_visit_is_a_hint_for_that_visit_alone() -> None:
    visits = [(0, 0, -1), (0, 10, 1), (0, 20, 1)]
    outcomes = judged(visits, [(0, 10), (0, 11)], [(0, 10, 30)])
    assert (outcomes.visit.tolist(), outcomes.hinted.tolist()) == ([1, 2], [True, False])


def test_a_change_before_the_previous_visit_is_no_hint() -> None:
    visits = [(0, 10, -1), (0, 20, 0)]
    assert judged(visits, [(0, 15)], [(0, 15, 10)]).hinted.tolist() == [False]
    assert judged(visits, [(0, 15)], [(0, 15, 11)]).hinted.tolist() == [True]


def test_a_visit_without_a_reading_since_the_previous_one_is_not_judged() -> None:
    visits = [(0, 10, -1), (0, 20, 1)]
    assert len(judged(visits, [(0, 10), (1, 15), (0, 21)], []).visit) == 0
    assert len(judged(visits, [(0, 20)], []).visit) == 1


def test_no_visits_teach_nothing() -> None:
    assert len(judged([], [(0, 1)], [(0, 1, 1)]).visit) == 0
    nothing = learn("feed", ints([]), np.array([], bool), np.array([], bool), 3)
    assert not nothing.is_proven.any()
    assert np.isnan(nothing.probability(ints([0, 1, 2]), np.array([True, False, True]))).all()


# -- counts -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), max_size=80))
def test_shares_are_those_of_a_plain_count(rows: list[tuple[int, bool, bool]]) -> None:
    host, hinted, changed = (
        np.array([row[column] for row in rows], kind) for column, kind in enumerate((np.int64, bool, bool))
    )
    track = learn("sitemap", host, hinted, changed, 4)
    for number in range(4):
        own = [row[1:] for row in rows if row[0] == number]
        assert_share(track.precision[number], [was for said, was in own if said])
        assert_share(track.recall[number], [said for said, was in own if was])
        assert_share(track.base_rate[number], [was for _, was in own])


def assert_share(share: float, flags: list[bool]) -> None:
    assert math.isnan(share) if not flags else share == sum(flags) / len(flags)


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_lower_end_of_the_interval_is_where_the_record_would_just_surprise(record: tuple[int, int]) -> None:
    successes, trials = record
    lower = float(wilson_lower(ints([successes]), ints([trials]))[0])
    assert 0 <= lower <= successes / trials
    if successes:  # the share p for which successes lies 1.96 standard deviations above its mean
        deviation = math.sqrt(trials * lower * (1 - lower))
        assert (successes - trials * lower) / deviation == pytest.approx(1.959964, rel=1e-5)


# -- whom to trust -----------------------------------------------------------------------------------------------------


def record(right: int, hinted: int, missed: int, unhinted: int) -> TrackRecord:
    """One host: a number of hints, of which some were right, and visits without a hint, of which some found a change."""
    said = np.arange(hinted + unhinted) < hinted
    was = np.concatenate((np.arange(hinted) < right, np.arange(unhinted) < missed))
    return learn("sitemap", np.zeros(len(said), np.int64), said, was, 1)


@pytest.mark.parametrize(
    ("right", "hinted", "missed", "unhinted", "is_proven", "is_complete"),
    [
        (19, 20, 2, 40, True, False),  # 19 of 21 changes named: the lower end is 0.71
        (38, 40, 1, 80, True, True),
        (9, 9, 0, 40, False, False),  # too few to be proven
        (10, 10, 0, 40, True, False),
        (14, 20, 2, 40, False, False),  # the lower end is below one half
        (19, 20, 39, 40, False, False),  # no better than without a hint
        (100, 100, 0, 0, False, False),  # always hinted: nothing to compare with
        (5, 100, 2, 40, False, False),
        (0, 0, 5, 40, False, False),
    ],
)
def test_a_host_is_trusted_only_if_its_record_proves_it(
    right: int, hinted: int, missed: int, unhinted: int, is_proven: bool, is_complete: bool
) -> None:
    track = record(right, hinted, missed, unhinted)
    assert (track.is_proven[0], track.is_complete[0]) == (is_proven, is_complete)
    chance = track.probability(ints([0, 0]), np.array([True, False]))
    assert chance[0] == pytest.approx((right + 1) / (hinted + 2) if is_proven else np.nan, nan_ok=True)
    assert chance[1] == pytest.approx((missed + 1) / (unhinted + 2) if is_complete else np.nan, nan_ok=True)


def simulated(lies: bool, change_per_hour: float, seed: int = 1) -> TrackRecord:
    """A host of 30 pages, each visited once a day for 20 days; its sitemap is read an hour before."""
    random = np.random.default_rng(seed)
    n, days = 30, 20
    changes = [np.flatnonzero(random.random(days * 24) < change_per_hour) * HOUR for _ in range(n)]
    rows = [(page, day * 24 * HOUR) for page in range(n) for day in range(1, days)]
    changed, claims = [], []
    for page, at in rows:
        since = (changes[page] > at - 24 * HOUR) & (changes[page] <= at)
        changed.append(int(since.any()) if at > 24 * HOUR else -1)
        read_at = at - HOUR
        known = changes[page][changes[page] <= read_at]
        if lies or len(known):
            claims.append((page, read_at, read_at if lies else int(known[-1])))
    page, at = (ints(column) for column in zip(*rows, strict=True))
    reads = Reads(np.zeros(days, np.int64), (np.arange(days) * 24 - 1) * HOUR)
    stated = Claims(*(ints(column) for column in zip(*claims, strict=True)))
    outcomes = judge(page, np.zeros_like(page), at, np.array(changed, np.int8), reads=reads, claims=stated)
    assert len(outcomes.visit) == n * (days - 2)
    return learn("sitemap", np.zeros(len(outcomes.visit), np.int64), outcomes.hinted, outcomes.changed, 1)


@pytest.mark.parametrize("change_per_hour", [0.005, 0.02, 0.2])
def test_a_sitemap_that_always_says_now_is_never_trusted(change_per_hour: float) -> None:
    track = simulated(True, change_per_hour)
    assert track.n_hinted[0] == track.n_visits[0]
    assert not track.is_proven[0]
    assert not track.is_complete[0]


@pytest.mark.parametrize("change_per_hour", [0.005, 0.02])
def test_a_truthful_sitemap_is_trusted_and_known_to_be_complete(change_per_hour: float) -> None:
    track = simulated(False, change_per_hour)
    assert track.is_proven[0]
    assert track.is_complete[0]
    hinted, unhinted = track.probability(ints([0, 0]), np.array([True, False]))
    assert hinted > 0.95
    assert unhinted < track.base_rate[0] / 2


def test_the_record_of_one_host_says_nothing_about_another() -> None:
    said = np.arange(60) < 20
    track = learn("feed", np.repeat(ints([2]), 60), said, said, 4)
    assert track.is_proven.tolist() == [False, False, True, False]


def test_a_reason_names_the_source_the_time_and_the_record() -> None:
    at = datetime(2026, 3, 1, 10)
    assert (
        record(19, 20, 2, 40).reason(0, at)
        == "its sitemap says it changed 2026-03-01 10:00; right 19 of 20 times on this host"
    )
    assert record(3, 20, 2, 40).reason(0, at) == (
        "its sitemap says it changed 2026-03-01 10:00; right 3 of 20 times on this host, which is not enough to go by"
    )
    assert (
        record(38, 40, 1, 80).reason(0)
        == "its sitemap does not say that it changed; it named 38 of 39 changes on this host"
    )
    assert (
        record(19, 20, 2, 40).reason(0).endswith("it named 19 of 21 changes on this host, which is not enough to go by")
    )
