"""StormCrawler's intervals in whole minutes: known vectors, a plain version, failures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from made_visits import START, Stage, hours, made_visits, made_world, order, unseen
from recrawl.policies.budget import Budget
from recrawl.policies.due import seconds
from recrawl.policies.stormcrawler_adaptive import StormcrawlerAdaptive, next_interval
from recrawl.replay import replay


@pytest.mark.parametrize(
    ("changed", "known"),
    [
        (0, [2160, 3240, 4860, 7290, 10935, 16402, 20160, 20160]),
        (1, [750, 405, 232, 146, 103, 81, 70, 65]),
    ],
)
def test_intervals_from_a_day_on_are_the_known_ones(changed: int, known: list[int]) -> None:
    interval, found = np.array([1440]), []
    for _ in known:
        interval = next_interval(interval, np.array([changed], np.int8))
        found.append(int(interval[0]))
    assert found == known
    assert interval.dtype == np.int64


def test_arrays_of_pages_go_as_a_plain_version_page_by_page() -> None:
    random = np.random.default_rng(4)
    interval, changed = random.integers(60, 20_161, 500), random.integers(-1, 2, 500).astype(np.int8)
    found = next_interval(interval, changed, grow=0.3, shrink=0.25, minimum=30, maximum=9_999, first=777)
    for i, what, new in zip(interval.tolist(), changed.tolist(), found.tolist(), strict=True):
        assert new == {-1: 777, 0: min(int(1.3 * i), 9_999), 1: int(0.75 * i + 0.25 * 30)}[what]


def test_first_visits_failures_and_gone_pages_have_intervals_of_their_own() -> None:
    policy = StormcrawlerAdaptive()
    stage = Stage(policy, unseen(3)).first(START)
    stage.see(
        made_visits(hours(24), [0, 1, 2], changed=[1, 0, 0], gone=[False, False, True], answered=[True, False, True])
    )
    assert policy.interval_.tolist() == [750, 120, 44_640]
    assert (policy.due_ - seconds(hours(24))).tolist() == [750 * 60, 120 * 60, 44_640 * 60]


def test_the_answer_after_a_failure_counts_as_a_first_one() -> None:
    policy = StormcrawlerAdaptive()
    stage = Stage(policy, unseen(1)).first(START)
    intervals = []
    for hour, answered in enumerate((True, False, True, True), 1):
        stage.see(made_visits(hours(hour), [0], changed=1, answered=answered))
        intervals.append(int(policy.interval_[0]))
    assert intervals == [750, 120, 1440, 750]


def test_due_pages_come_first_and_then_those_due_soonest() -> None:
    policy = StormcrawlerAdaptive()
    stage = Stage(policy, unseen(3)).first(START)
    stage.see(made_visits(hours(1), [1], changed=1))  # due at hour 13.5, the others at hour 24
    assert order(policy.choose(stage.pages, Budget(2), hours(2))) == [1, 0]
    lazy = StormcrawlerAdaptive(only_due=True)
    stage = Stage(lazy, unseen(3)).first(START)
    stage.see(made_visits(hours(1), [1], changed=1))
    assert order(lazy.choose(stage.pages, Budget(2), hours(13.4))) == []
    choice = lazy.choose(stage.pages, Budget(2), hours(14))
    assert order(choice) == [1]
    assert choice.why(0) == "due for 0.5 h: visited every 12.5 h"


def test_a_replay_keeps_the_budget_and_finds_something(tmp_path: Path) -> None:
    world = made_world(tmp_path)
    rows = list(replay(world, StormcrawlerAdaptive(), Budget(10)))
    assert {row["fetches"] for row in rows} == {10}
    assert 0 < sum(row["found"] for row in rows) <= world.discoverable
    lazy = list(replay(world, StormcrawlerAdaptive(only_due=True), Budget(10)))
    assert 0 < sum(row["fetches"] for row in lazy) < 10 * len(lazy)
