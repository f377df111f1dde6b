"""The best rates of visits: numbers by hand, the condition of Lagrange, and no better neighbours."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_visits import Stage, days, hours, made_visits, made_world, order, unseen
from recrawl.core.arrays import Floats
from recrawl.policies.budget import Budget
from recrawl.policies.lambda_crawl import LambdaCrawl, visit_rates
from recrawl.replay import replay

positive = st.floats(1e-3, 1e3)
pages_given = st.lists(st.tuples(positive, positive), min_size=1, max_size=12)


def staleness_costs(visits_per_day: Floats, changes_per_day: Floats, importance: Floats) -> Floats:
    """The cost that the paper minimises, -μ log(ρ/(ρ + Δ)): that of a page that is never visited is infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(importance > 0, importance * np.log1p(changes_per_day / visits_per_day), 0.0)


def test_visit_rates_worked_out_by_hand() -> None:
    # Δ = 1 and 2, μ = 1, L = 1: ρ = (√5 - 1)/2 and (-2 + √12)/2. That is their sum's best division.
    hand = [(math.sqrt(5) - 1) / 2, math.sqrt(3) - 1]
    assert visit_rates(np.array([1.0, 2.0]), np.ones(2), sum(hand)).tolist() == pytest.approx(hand)


def test_equal_pages_share_the_budget_equally_and_nothing_is_nothing() -> None:
    assert visit_rates(np.full(4, 0.3), np.ones(4), 2.0).tolist() == pytest.approx([0.5] * 4)
    assert visit_rates(np.full(4, 0.3), np.ones(4), 0.0).tolist() == [0.0] * 4
    assert visit_rates(np.ones(2), np.array([0.0, 1.0]), 3.0).tolist() == pytest.approx([0.0, 3.0])
    assert visit_rates(np.empty(0), np.empty(0), 3.0).tolist() == []


@given(pages_given, st.floats(1e-2, 1e4))
def test_visit_rates_use_up_the_budget_and_one_more_visit_is_worth_the_same_everywhere(
    pages: list[tuple[float, float]], budget: float
) -> None:
    change, importance = np.array(pages).T
    visits = visit_rates(change, importance, budget)
    assert visits.sum() == pytest.approx(budget, rel=1e-9)
    worth = importance * change / (visits * (visits + change))
    assert worth == pytest.approx(worth[0], rel=1e-6)


@given(pages_given.filter(lambda pages: len(pages) > 1), st.floats(0.1, 100), st.integers(0, 1000))
def test_no_other_division_of_the_same_budget_costs_less(
    pages: list[tuple[float, float]], budget: float, seed: int
) -> None:
    change, importance = np.array(pages).T
    best = visit_rates(change, importance, budget)
    random = np.random.default_rng(seed)
    least = staleness_costs(best, change, importance).sum()
    for spread in (0.01, 0.3, 2.0):
        other = best * np.exp(random.normal(0, spread, len(best)))
        other *= budget / other.sum()
        assert staleness_costs(other, change, importance).sum() >= least * (1 - 1e-9)


def test_the_cost_worked_out_by_hand() -> None:
    costs = staleness_costs(np.array([1.0, 3.0, 0.0, 0.0]), np.ones(4), np.array([1.0, 2.0, 1.0, 0.0]))
    assert costs.tolist() == pytest.approx([math.log(2), 2 * math.log(4 / 3), math.inf, 0.0])


def test_the_page_with_the_greatest_part_of_its_period_elapsed_comes_first() -> None:
    policy = LambdaCrawl()
    stage = Stage(policy, unseen(3)).first(days(0))
    stage.see(made_visits(days(1), [0, 1, 2], changed=[1, 0, 0]))
    stage.see(made_visits(days(2), [0, 1], changed=[1, 0]))
    choice = policy.choose(stage.pages, Budget(3), days(3))
    # Mean time between cycles: a day. So three visits a day, divided by the rates of change.
    visits = visit_rates(policy.rates_.per_day, np.ones(3), 3.0)
    elapsed = visits * np.array([1.0, 1.0, 2.0])
    assert order(choice) == np.argsort(-elapsed).tolist()
    assert sorted(choice.score) == pytest.approx(sorted(elapsed))
    assert order(choice) == [2, 0, 1]
    assert choice.why(1).startswith("changes 2.")
    assert choice.why(1).endswith("last visit 24.0 h ago")


def test_more_important_pages_are_visited_more_often() -> None:
    counts = np.zeros(4)
    policy = LambdaCrawl(importance=np.array([1.0, 1.0, 1.0, 10.0]))
    stage = Stage(policy, unseen(4)).first(days(0))
    for day in range(1, 200):
        picked = sorted(order(policy.choose(stage.pages, Budget(1), days(day))))
        counts[picked] += 1
        stage.see(made_visits(days(day), picked, changed=day % 2))
    assert counts[3] > 2 * counts[:3].max()
    assert counts.min() > 0


def test_pages_never_visited_come_first_and_a_budget_of_nothing_is_nothing() -> None:
    stage = Stage(LambdaCrawl(), unseen(3))
    assert order(stage.policy.choose(stage.pages, Budget(3), hours(1))) == [0, 1, 2]
    stage.see(made_visits(hours(1), [0, 2], changed=-1))
    assert order(stage.policy.choose(stage.pages, Budget(1), hours(500))) == [1]
    assert order(stage.policy.choose(stage.pages, Budget(0), hours(500))) == []


def test_a_replay_keeps_the_budget_and_finds_something(tmp_path: Path) -> None:
    world = made_world(tmp_path)
    rows = list(replay(world, LambdaCrawl(), Budget(10)))
    assert {row["fetches"] for row in rows} == {10}
    assert 0 < sum(row["found"] for row in rows) <= world.discoverable
