"""Nutch's intervals: known vectors, a plain version line by line, and the choice of due pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from made_visits import START, Stage, days, hours, made_visits, made_world, order, unseen
from recrawl.policies.budget import Budget, Cause
from recrawl.policies.due import seconds
from recrawl.policies.nutch_adaptive import NutchAdaptive, interval_when_gone, next_interval
from recrawl.replay import replay

DAY = 86_400.0


def visited(interval: float, modified: float, at: float, changed: int, **settings: Any) -> tuple[float, float, float]:
    """One page, all times in days: its interval, the time of modification, and the time to the next visit."""
    new, since, due = next_interval(
        np.array([interval * DAY]), np.array([modified * DAY]), at * DAY, np.array([changed], np.int8), **settings
    )
    return new[0] / DAY, since[0] / DAY, due[0] / DAY - at


def test_a_change_and_four_quiet_visits_give_the_known_intervals_and_gaps() -> None:
    # The clock begins at 0, which Nutch takes for "never modified": the first quiet visit counts as the modification.
    interval, modified, gap, at = 30.0, 0.0, 0.0, 0.0
    intervals, gaps, times = [], [], []
    for changed in (1, 0, 0, 0, 0):
        at += gap
        interval, modified, gap = visited(interval, modified, at, changed)
        intervals.append(interval)
        gaps.append(gap)
        times.append(at)
    assert intervals == pytest.approx([24.0, 33.6, 47.04, 70.56, 119.952], abs=1e-4)
    assert gaps[1:] == pytest.approx([33.6, 36.96, 49.392, 83.9664], abs=1e-4)
    assert times == pytest.approx([0, 24, 57.6, 94.56, 143.952], abs=1e-4)


def test_on_a_real_clock_a_quiet_visit_is_drawn_towards_the_change_before() -> None:
    # 24 days after the change: 24·1.4 = 33.6, minus 0.3·24 = 7.2.
    assert visited(24.0, 20_000.0, 20_024.0, 0) == pytest.approx((33.6, 20_000.0, 26.4))


def test_four_changes_give_the_known_intervals() -> None:
    interval, modified, intervals = 30.0, 100.0, []
    for at in range(101, 105):
        interval, modified, gap = visited(interval, modified, at, 1)
        intervals.append(interval)
        assert (gap, modified) == pytest.approx((interval, at))
    assert intervals == pytest.approx([24, 19.2, 15.36, 12.288])


@pytest.mark.parametrize(("intended", "gap"), [(False, 7.0), (True, 4.9)])
def test_an_offset_above_the_maximum_is_lost_unless_it_is_taken_as_intended(intended: bool, gap: float) -> None:
    bounds = {"minimum": DAY, "maximum": 7 * DAY, "intended_offset": intended}
    assert visited(3.0, 100.0, 130.0, 0, **bounds) == pytest.approx((7.0, 100.0, gap))


def test_without_anything_to_compare_with_the_interval_stays() -> None:
    assert visited(30.0, 0.0, 500.0, -1) == pytest.approx((30.0, 500.0, 30.0))


def test_without_synchronisation_the_next_visit_is_one_interval_away() -> None:
    assert visited(10.0, 1.0, 500.0, 0, sync_rate=None) == pytest.approx((14.0, 1.0, 14.0))


def plain_next(interval: float, modified: float, t: float, changed: int, intended: bool) -> tuple[float, float, float]:
    if modified <= 0:
        modified = t
    if changed == 1:
        interval *= 1 - 0.2
        modified = t
    elif changed == 0:
        interval *= 1 + 0.4
    d = t - modified
    if d > interval:
        interval = d
    offset = float(int(0.3 * d + 0.5))
    maximum = 20 * DAY
    if d > 0 and offset > maximum:
        offset = 0.3 * maximum if intended else 0.0
    reference = t - offset
    interval = min(max(interval, 3600.0), maximum)
    return interval, modified, reference + interval


@pytest.mark.parametrize("intended", [False, True])
def test_arrays_of_pages_go_as_a_plain_version_page_by_page(intended: bool) -> None:
    random = np.random.default_rng(2)
    t = 2e9
    interval = random.choice([60.0, 3600.0, 40 * DAY, 5e5], 500)
    modified = np.where(random.random(500) < 0.2, 0.0, t - random.integers(0, 100 * 86_400, 500))
    changed = random.integers(-1, 2, 500).astype(np.int8)
    fast = next_interval(interval, modified, t, changed, minimum=3600.0, maximum=20 * DAY, intended_offset=intended)
    slow = [plain_next(*page, intended) for page in zip(interval, modified, [t] * 500, changed, strict=True)]
    np.testing.assert_allclose(np.array(fast), np.array(slow).T, rtol=1e-12)


def test_gone_pages_wait_half_as_long_again_but_below_the_hard_maximum() -> None:
    assert (interval_when_gone(np.array([30.0, 59.0, 60.0, 300.0]) * DAY) / DAY).tolist() == pytest.approx(
        [45, 88.5, 81, 81]
    )


def test_gone_failed_and_given_up_pages_are_due_as_described() -> None:
    policy = NutchAdaptive()
    stage = Stage(policy, unseen(3)).first(START)
    assert (policy.due_ - seconds(START)).tolist() == [30 * DAY] * 3
    stage.see(made_visits(days(1), [0, 1], gone=[True, False], answered=False))
    assert policy.due_[:2].tolist() == [seconds(days(46)), seconds(days(2))]
    stage.see(made_visits(days(2), [1], answered=False))
    assert policy.due_[1] == seconds(days(3))
    stage.see(made_visits(days(3), [1], answered=False))  # the third time: as if gone
    assert policy.due_[1] == seconds(days(48))


def test_an_answer_ends_the_count_of_failures() -> None:
    policy = NutchAdaptive()
    stage = Stage(policy, unseen(1)).first(START)
    for day, answered in enumerate((False, False, True, False), 1):
        stage.see(made_visits(days(day), [0], answered=answered, changed=1))
    assert policy.due_[0] == seconds(days(5))


def test_a_page_due_in_more_than_ninety_days_is_due_at_once_and_its_interval_is_cut() -> None:
    policy = NutchAdaptive()
    stage = Stage(policy, unseen(2)).first(START)
    stage.see(made_visits(days(100), [0], changed=0))
    assert policy.interval_[0] == pytest.approx(100 * DAY)
    assert policy.due_[0] == pytest.approx(seconds(days(170)))
    policy.interval_[0], policy.due_[0] = 119.952 * DAY, seconds(days(200))
    choice = policy.choose(stage.pages, Budget(2), days(109))
    assert order(choice) == [1, 0]  # due for 79 days; due now
    assert choice.why(1) == f"due for 0.0 h: visited every {81 * 24:.1f} h"
    stage.see(made_visits(days(109), [1], memo=choice.memo))
    assert policy.interval_[0] == pytest.approx(81 * DAY)
    assert policy.due_[0] == pytest.approx(seconds(days(109)))


def test_visits_that_it_did_not_choose_pull_no_page_in() -> None:
    policy = NutchAdaptive()
    stage = Stage(policy, unseen(2)).first(START)
    policy.interval_[0], policy.due_[0] = 119.952 * DAY, seconds(days(200))
    stage.see(made_visits(days(109), [1]))
    assert policy.interval_[0] == pytest.approx(119.952 * DAY)
    assert policy.due_[0] == pytest.approx(seconds(days(200)))


def test_due_pages_come_by_score_then_by_how_long_they_are_due_then_those_due_soonest() -> None:
    policy = NutchAdaptive(score=np.array([1.0, 2.0, 1.0, 9.0, 1.0]))
    stage = Stage(policy, unseen(5)).first(START)
    policy.due_[:] = [seconds(hours(h)) for h in (9, 8, 7, 12, 11)]
    choice = policy.choose(stage.pages, Budget(5), hours(10))
    assert order(choice) == [1, 2, 0, 4, 3]
    assert choice.why(0) == "due for 2.0 h: visited every 720.0 h"
    assert choice.why(3) == "due in 1.0 h, sooner than others: visited every 720.0 h"


def test_the_crawler_itself_leaves_the_rest_of_the_budget() -> None:
    policy = NutchAdaptive(only_due=True)
    stage = Stage(policy, unseen(3)).first(START)
    policy.due_[1] = seconds(hours(1))
    choice = policy.choose(stage.pages, Budget(3), hours(1))
    assert order(choice) == [1]
    assert choice.cause is not None
    assert choice.cause.tolist() == [Cause.UNPROMISING, Cause.PICKED, Cause.UNPROMISING]


def test_pages_never_visited_are_due_before_all_others() -> None:
    stage = Stage(NutchAdaptive(only_due=True), unseen(3))
    stage.see(made_visits(START, [0], changed=-1))
    choice = stage.policy.choose(stage.pages, Budget(3), days(60))
    assert order(choice) == [1, 2, 0]
    assert choice.why(0) == "never visited"


def test_caps_of_hosts_hold_among_due_pages() -> None:
    stage = Stage(NutchAdaptive(), unseen(6, n_hosts=2)).first(START)
    choice = stage.policy.choose(stage.pages, Budget(6, per_host=1), days(40))
    assert order(choice) == [0, 1]


def test_a_replay_keeps_the_budget_and_finds_something(tmp_path: Path) -> None:
    world = made_world(tmp_path)
    rows = list(replay(world, NutchAdaptive(first_days=0.1), Budget(10)))
    assert {row["fetches"] for row in rows} == {10}
    assert 0 < sum(row["found"] for row in rows) <= world.discoverable
    lazy = list(replay(world, NutchAdaptive(only_due=True), Budget(10)))
    assert sum(row["fetches"] for row in lazy) <= 10  # nothing but failed pages is due within 39 hours of 30 days
