"""Probabilities of updates: by hand, and against a plain version that looks at the whole record each time."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

from made_visits import Stage, days, made_visits, made_world, order, unseen
from recrawl.core.times import microseconds, moment
from recrawl.policies.budget import Budget, Cause
from recrawl.policies.history_aware import HistoryAware
from recrawl.replay import replay
from recrawl.world.crawler import Crawler

US_PER_DAY = 86_400_000_000
Seen = list[tuple[int, int]]  # time, and whether the visit showed an update


def plain_rate_and_last(seen: Seen, interpolated: bool) -> tuple[float, float | None]:
    """λ by Eq. 5, or by Eq. 4 where everything changed, and τ, from the visits of one page in days."""
    times = [at / US_PER_DAY for at, _ in seen]
    moved = list(times)
    if interpolated:
        for i in range(1, len(seen)):
            if seen[i][1] == 1:
                moved[i] = (times[i - 1] + times[i]) / 2
    tc = [moved[i] - moved[i - 1] for i in range(1, len(seen)) if seen[i][1] == 1]
    tu = [moved[i] - moved[i - 1] for i in range(1, len(seen)) if seen[i][1] == 0]
    updates = [moved[i] for i in range(1, len(seen)) if seen[i][1] == 1]
    last = updates[-1] if updates else None
    if not tc:
        return 0.0, last
    if not tu:
        return -math.log(0.5 / (len(tc) + 0.5)) * len(tc) / sum(tc), last

    def difference(rate: float) -> float:
        return sum(t / math.expm1(rate * t) if rate * t < 700 else 0.0 for t in tc) - sum(tu)

    return float(brentq(difference, 1e-9, 1e6, xtol=1e-13, rtol=1e-13)), last


def plain_probability(seen: Seen, now: int, ahead: float, interpolated: bool) -> float:
    rate, last = plain_rate_and_last(seen, interpolated)
    return 0.0 if last is None else 1 - math.exp(-rate * (now / US_PER_DAY + ahead - last))


def test_the_probability_worked_out_by_hand() -> None:
    # Visits on days 0, 7, 14, updated on the last: interpolated to day 10.5. One interval of 7 days without and one of 3.5 with an
    # update: 3.5/(exp(3.5 λ) - 1) = 7, so λ = ln 1.5 / 3.5. On day 21: p = 1 - exp(-λ · 10.5) = 1 - 1.5^-3.
    stage = Stage(HistoryAware(), unseen(1)).first(days(0))
    stage.see(made_visits(days(7), [0], updated=0)).see(made_visits(days(14), [0], updated=1))
    choice = stage.policy.choose(stage.pages, Budget(1), days(21))
    assert choice.score[0] == pytest.approx(1 - 1.5**-3)
    assert choice.why(0) == "updated with probability 0.70: 0.116 updates per day, last visit 168 h ago"


def test_observed_updates_happen_at_their_visits() -> None:
    # 7/(exp(7 λ) - 1) = 7, so λ = ln 2 / 7. On day 21: p = 1/2; by day 28: 3/4.
    for ahead, p in ((0.0, 0.5), (7.0, 0.75)):
        stage = Stage(HistoryAware(interpolated=False, ahead_days=ahead), unseen(1)).first(days(0))
        stage.see(made_visits(days(7), [0], updated=0)).see(made_visits(days(14), [0], updated=1))
        assert stage.policy.choose(stage.pages, Budget(1), days(21)).score[0] == pytest.approx(p)


@pytest.mark.parametrize("interpolated", [True, False])
@pytest.mark.parametrize(("window", "window_days"), [(6, None), (1, None), (10_000, None), (168, 0.3)])
def test_probabilities_equal_those_of_a_plain_look_at_the_whole_record(
    tmp_path: Path, interpolated: bool, window: int, window_days: float | None
) -> None:
    world = made_world(tmp_path)
    policy = HistoryAware(window, window_days, interpolated=interpolated, ahead_days=0.1)
    crawler = Crawler(world.with_all_known())
    policy.start(crawler.pages)
    policy.observe(crawler.first.visits)
    record = [crawler.first.visits]
    random = np.random.default_rng(0)
    n_probable = 0
    for cycle in range(1, world.n_cycles + 1):
        now = moment(int(world.time[cycle]))
        choice = policy.choose(crawler.pages, Budget(world.n_pages), now)
        found = dict(zip(choice.page.tolist(), choice.score.tolist(), strict=True))
        last = microseconds(record[-1].ended_at)
        in_window = [
            visits
            for i, visits in enumerate(record)
            if (
                i >= len(record) - 1 - window
                if window_days is None
                else microseconds(visits.ended_at) >= last - window_days * US_PER_DAY
            )
        ]
        seen: list[Seen] = [[] for _ in range(world.n_pages)]
        for visits in in_window:
            columns = (visits.page, visits.at, visits.updated, visits.answered)
            for page, at, updated, answered in zip(*columns, strict=True):
                if answered:
                    seen[page].append((int(at), int(updated)))
        for page in range(world.n_pages):
            expected = plain_probability(seen[page], microseconds(now), 0.1, interpolated)
            assert found[page] == pytest.approx(expected, abs=1e-6)
            n_probable += expected > 0
        record.append(crawler.visit(random.choice(world.n_pages, 30, replace=False)).visits)
        policy.observe(record[-1])
    assert n_probable > 0


def test_pages_without_an_update_come_by_waiting_time_after_all_that_have_one() -> None:
    stage = Stage(HistoryAware(), unseen(4)).first(days(0))
    stage.see(made_visits(days(1), [0, 1, 2, 3], updated=[0, 0, 0, 1]))
    stage.see(made_visits(days(2), [0, 2], updated=0))
    stage.see(made_visits(days(3), [0], updated=0))
    choice = stage.policy.choose(stage.pages, Budget(4), days(4))
    assert order(choice) == [3, 1, 2, 0]
    assert choice.score[1:].tolist() == [0, 0, 0]


def test_pages_not_yet_visited_again_come_first() -> None:
    stage = Stage(HistoryAware(), unseen(3)).first(days(0))
    stage.see(made_visits(days(1), [0, 2], updated=1))
    assert order(stage.policy.choose(stage.pages, Budget(1), days(9))) == [1]


@pytest.mark.parametrize(("threshold", "picked"), [(0.1, [0, 1]), (0.5, [0]), (0.99, [])])
def test_with_a_threshold_only_probable_updates_are_visited_even_if_budget_is_left(
    threshold: float, picked: list[int]
) -> None:
    stage = Stage(HistoryAware(threshold=threshold), unseen(3)).first(days(0))
    stage.see(made_visits(days(7), [0, 1, 2], updated=[0, 0, 0]))
    stage.see(made_visits(days(14), [0, 1, 2], updated=[1, 0, 0]))
    stage.see(made_visits(days(21), [0, 1, 2], updated=[0, 0, 0]))
    stage.see(made_visits(days(28), [0, 1, 2], updated=[0, 1, 0]))
    choice = stage.policy.choose(stage.pages, Budget(3), days(31))
    # λ = ln(8/7)/3.5 and ln(7/6)/3.5, updates on days 10.5 and 24.5: p = 0.543 and 0.249.
    assert order(choice) == picked
    assert choice.score.tolist() == pytest.approx(
        [1 - (7 / 8) ** (20.5 / 3.5), 1 - (6 / 7) ** (6.5 / 3.5)][: len(picked)]
    )
    assert choice.cause is not None
    assert choice.cause[2] == Cause.UNPROMISING


def test_updates_that_leave_the_window_are_forgotten() -> None:
    policy = HistoryAware(window=2)
    stage = Stage(policy, unseen(2)).first(days(0))
    stage.see(made_visits(days(1), [0, 1], updated=[1, 0]))
    probabilities = []
    for day in range(2, 6):
        choice = policy.choose(stage.pages, Budget(1), days(day))
        probabilities.append(float(choice.reason.sentence.values["probability"].max()))
        stage.see(made_visits(days(day), [], updated=0))
    # The interval that ends with the update begins on day 0, which leaves the window when day 3 has been seen.
    assert [p > 0 for p in probabilities] == [True, True, False, False]


def test_a_replay_keeps_the_budget_and_finds_something(tmp_path: Path) -> None:
    world = made_world(tmp_path)
    rows = list(replay(world, HistoryAware(), Budget(10)))
    assert {row["fetches"] for row in rows} == {10}
    assert 0 < sum(row["found"] for row in rows) <= world.discoverable
