"""The best rates of visits: numbers by hand, the condition of Lagrange, and no better neighbours."""

from __future__ import annotations

import math
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recrawl as rc
from made_hints import NOW, hinted_history
from made_visits import Stage, days, hours, made_visits, made_world, order, unseen
from recrawl.core.arrays import Floats
from recrawl.core.times import NEVER, microseconds
from recrawl.insight.hints.of_pages import signals_of
from recrawl.policies.budget import Budget
from recrawl.policies.lambda_crawl import LambdaCrawl, _chance, visit_rates
from recrawl.replay import replay
from recrawl.world.pages import Signals

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


# -- signalled changes ---------------------------------------------------------------------------------------------------------


def plain_shares(change: list[float], importance: list[float], budget: float) -> list[float]:
    """Algorithm 2 of the paper: the share of its changes after which each page is visited, p = R μ / (Δ Σ μ), at most 1."""
    share: dict[int, float] = {}
    while True:
        rest = [i for i in range(len(change)) if i not in share]
        total = sum(importance[i] for i in rest)
        wanted = {i: budget * importance[i] / (change[i] * total) for i in rest}
        full = [i for i in rest if wanted[i] >= 1]
        if not full:
            return [share.get(i, wanted.get(i, 0.0)) for i in range(len(change))]
        for i in full:
            share[i] = 1.0
            budget -= change[i]


@given(pages_given, st.floats(1e-2, 1e4))
def test_where_all_changes_are_signalled_the_shares_are_those_of_algorithm_2(
    pages: list[tuple[float, float]], budget: float
) -> None:
    change, importance = np.array(pages).T
    visits = visit_rates(change, importance, budget, np.ones(len(pages), np.bool_))
    assert visits / change == pytest.approx(plain_shares(change.tolist(), importance.tolist(), budget), rel=1e-6)


@given(pages_given, pages_given, st.floats(1e-1, 1e3), st.floats(0.01, 0.99))
def test_no_other_split_between_both_kinds_of_pages_costs_less(
    seen: list[tuple[float, float]], signalled: list[tuple[float, float]], budget: float, part: float
) -> None:
    """The cost of Eq. 8: -μ log(ρ/(ρ + Δ)) of pages seen on visits only, -μ log p of signalled ones."""
    (change, importance), n = np.array([*seen, *signalled]).T, len(seen)
    is_signalled = np.arange(len(change)) >= n

    def cost(visits: Floats) -> float:
        share = np.minimum(visits[n:] / change[n:], 1.0)
        return float(
            staleness_costs(visits[:n], change[:n], importance[:n]).sum() - (importance[n:] * np.log(share)).sum()
        )

    mixed = visit_rates(change, importance, budget, is_signalled)
    assert mixed.sum() == pytest.approx(budget, rel=1e-9)
    for_signalled = np.array(plain_shares(change[n:].tolist(), importance[n:].tolist(), part * budget)) * change[n:]
    other = np.concatenate([visit_rates(change[:n], importance[:n], (1 - part) * budget), for_signalled])
    assert cost(mixed) <= cost(other) * (1 + 1e-9) + 1e-9


def test_signalled_pages_of_no_importance_and_budgets_for_every_change() -> None:
    always = np.ones(2, np.bool_)
    assert visit_rates(np.array([1.0, 2.0]), np.array([1.0, 0.0]), 5.0, always).tolist() == [1.0, 0.0]
    assert visit_rates(np.array([1.0, 2.0]), np.ones(2), 3.0, always).tolist() == [1.0, 2.0]


def made_signals(n: int, changed_at: list[int], n_changes: list[int], days: float = 9.5) -> Signals:
    return Signals(
        is_complete=np.arange(n) > 0,
        changed_at=np.array(changed_at),
        n_changes=np.array(n_changes),
        days=np.full(n, days),
    )


def test_a_signalled_page_is_visited_after_its_signal_and_not_by_the_clock() -> None:
    stage = Stage(LambdaCrawl(), unseen(3)).first(days(0))
    stage.see(made_visits(days(1), [0, 1, 2], changed=1))
    # Page 0 has no signals. Page 1 changed since, page 2 did not: both had two changes in 9.5 days, (2 + 0.5)/(9.5 + 0.5) per day.
    stage.pages.signals = made_signals(3, [NEVER, microseconds(days(2)), NEVER], [0, 2, 2])
    choice = stage.policy.choose(stage.pages, Budget(3), days(3))
    assert choice.page.tolist() == [1, 0, 2]
    assert choice.why(0) == "a change was signalled for 2026-03-03 00:00"
    assert choice.why(2) == "no change was signalled since its last visit; it only fills the budget"
    assert stage.policy._changes(stage.pages.signals)[1:].tolist() == [0.25, 0.25]
    without = LambdaCrawl(signals=False)
    other = Stage(without, unseen(3)).first(days(0)).see(made_visits(days(1), [0, 1, 2], changed=1))
    other.pages.signals = stage.pages.signals
    assert sorted(without.choose(other.pages, Budget(3), days(3)).page.tolist()) == [0, 1, 2]
    assert "to be visited every" in without.choose(other.pages, Budget(3), days(3)).why(0)


def test_a_share_of_the_signals_is_followed_where_the_budget_allows_no_more() -> None:
    # 1,000 pages that change once per day, with budget for a quarter of the changes: p = 250/(1 · 1000).
    n = 1000
    stage = Stage(LambdaCrawl(), unseen(n)).first(days(0))
    for day in (1, 2):
        stage.see(made_visits(days(day), list(range(n)), changed=1))
    stage.pages.signals = Signals(
        is_complete=np.ones(n, np.bool_),
        changed_at=np.full(n, microseconds(days(2.5))),
        n_changes=np.full(n, 10),
        days=np.full(n, 10.0),
    )
    policy = stage.policy
    score = policy._with_signals(np.zeros(n), np.full(n, 0.25), stage.pages, stage.pages.signals)
    assert 200 < (score > 0).sum() < 300
    assert abs(_chance(np.arange(10_000), np.arange(10_000)).mean() - 0.5) < 0.02


def test_a_plan_takes_the_signals_of_complete_sitemaps(tmp_path: Path) -> None:
    history = hinted_history(tmp_path)
    plan = rc.plan(history, now=NOW, policy="lambda-crawl", goal="content", budget=12)
    place = {url: i for i, url in enumerate(plan.url.to_pylist())}
    named = place["https://honest.org/4"]
    assert plan.reason[named].startswith("a change was signalled for")
    quiet = [i for url, i in place.items() if "honest" in url and i != named]
    assert all("no change was signalled" in plan.reason[i] for i in quiet)
    assert all("to be visited every" in plan.reason[i] for url, i in place.items() if "liar" in url)
    few = rc.plan(history, now=NOW, policy="lambda-crawl", goal="content", budget=7)
    assert {url for url in few.url.to_pylist() if "honest" in url} == {"https://honest.org/4"}


def test_signals_before_a_moment_are_those_read_until_then(tmp_path: Path) -> None:
    history = hinted_history(tmp_path)
    pages = np.unique(history.timeline.page)
    urls = history.urls_of(pages).to_pylist()
    host = np.array(["liar" in url for url in urls], np.int64)
    now = signals_of(history.as_of(NOW), pages, host)
    assert now is not None
    assert now.is_complete.tolist() == ["honest" in url for url in urls]
    page = urls.index("https://honest.org/4")
    earlier = signals_of(history.as_of(NOW - timedelta(days=1)), pages, host)
    assert earlier is not None
    assert earlier.changed_at[page] < now.changed_at[page]
    assert earlier.n_changes[page] == now.n_changes[page] - 2  # of day 20, and of the last night
