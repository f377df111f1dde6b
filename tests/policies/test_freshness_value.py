"""The value of a renewal: by hand, against many digits, and what becomes of the busiest pages."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from made_visits import Stage, hours, made_visits, made_world, order, unseen
from recrawl.policies.budget import Budget
from recrawl.policies.freshness_value import FreshnessValue, freshness_values
from recrawl.replay import replay


def exact_bracket(x: float) -> float:
    """1 - exp(-x)(1 + x) as its series Σ (-1)^k (k - 1)/k! x^k, in fractions."""
    terms = [Fraction((-1) ** k * (k - 1), math.factorial(k)) * Fraction(x) ** k for k in range(2, 80)]
    return float(sum(terms))


def test_the_value_worked_out_by_hand() -> None:
    assert freshness_values(np.array([2.0]), np.array([0.5]), 3.0)[0] == pytest.approx(1.5 * (1 - 2 / math.e))


@pytest.mark.parametrize("x", [1e-150, 1e-12, 1e-9, 1e-5, 0.01, 0.5, 1.0, 3.0, 12.0])
def test_the_value_is_exact_also_where_next_to_nothing_can_have_changed(x: float) -> None:
    assert freshness_values(np.array([1.0]), np.array([x]))[0] == pytest.approx(exact_bracket(x), rel=1e-12)


def test_the_value_of_a_page_grows_with_time_to_the_mean_time_between_its_changes() -> None:
    value = freshness_values(np.full(200, 0.2), np.linspace(0, 400, 200))
    assert (np.diff(value) >= 0).all()
    assert value[-1] == pytest.approx(1 / 0.2)


def test_pages_that_change_faster_than_they_can_be_kept_are_given_up() -> None:
    # Four visits per day for 21 pages: each of 20 is renewed every five days at a value of 5·(1 - 2/e) = 1.3, while the last one,
    # which changes seven times per day, is never worth more than 1/7.
    policy, n = FreshnessValue(), np.zeros(21)
    stage = Stage(policy, unseen(21)).first(hours(0))
    policy.rates_.per_day[:] = [0.2] * 20 + [7.0]
    for cycle in range(1, 401):
        picked = order(policy.choose(stage.pages, Budget(1), hours(6 * cycle)))
        n[picked] += 1
        stage.see(made_visits(hours(6 * cycle), picked, changed=-1))  # nothing is learnt
    assert n[:20].min() >= 19
    assert n[20] <= 5  # while all copies are still new


def test_the_reason_gives_the_numbers_behind() -> None:
    stage = Stage(FreshnessValue(), unseen(2)).first(hours(0)).first(hours(0))  # nothing to compare with either time
    choice = stage.policy.choose(stage.pages, Budget(1), hours(12))
    value = 1 / math.log(4) * (1 - 0.5 * (1 + math.log(2)))  # Δ = ln 2 / 0.5, τ = 0.5
    assert choice.score[0] == pytest.approx(value)
    assert choice.why(0) == f"changes 1.39 times per day, last visit 12.0 h ago: worth {value:.3f}"
    assert choice.reason.sentence.values["probability"][0] == pytest.approx(0.5)


def test_pages_never_visited_come_first() -> None:
    stage = Stage(FreshnessValue(), unseen(3))
    stage.see(made_visits(hours(0), [0, 2], changed=-1))
    assert order(stage.policy.choose(stage.pages, Budget(1), hours(100_000))) == [1]


def test_a_replay_keeps_the_budget_and_finds_something(tmp_path: Path) -> None:
    world = made_world(tmp_path)
    rows = list(replay(world, FreshnessValue(), Budget(10)))
    assert {row["fetches"] for row in rows} == {10}
    assert 0 < sum(row["found"] for row in rows) <= world.discoverable
