"""Rates kept up to date visit by visit, against the whole history of a page solved by Brent's method."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

import recrawl as rc
from made_visits import Stage, days, made_visits, unseen
from recrawl.insight.rates import ESTIMATORS
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.change_rates import ChangeRates
from recrawl.policies.choice import Choice
from recrawl.testing import tiny_history
from recrawl.world.pages import Pages, Visits
from recrawl.world.rate_names import RATES


class Learner(Policy):
    """Learns the rates, and chooses nothing."""

    def start(self, pages: Pages) -> None:
        self.rates = ChangeRates(pages)

    def observe(self, visits: Visits) -> None:
        self.rates.observe(visits)

    def choose(self, pages: Pages, budget: Budget, now: object) -> Choice:
        return Choice.none()


def by_brent(changed: list[float], quiet: list[float]) -> float:
    """The rate with the two pseudo-intervals of half a day, within its bounds."""
    tc, tu = [*changed, 0.5], sum(quiet) + 0.5

    def difference(rate: float) -> float:
        return sum(t / math.expm1(rate * t) if rate * t < 700 else 0.0 for t in tc) - tu

    return min(max(float(brentq(difference, 1e-9, 100.0, xtol=1e-14)), 0.0005), 7.0)


def test_without_history_a_page_changes_ln_2_times_in_half_a_day() -> None:
    assert ChangeRates(unseen(2)).per_day.tolist() == pytest.approx([math.log(2) / 0.5] * 2)


def test_rates_equal_those_of_the_whole_history_solved_by_brent() -> None:
    random = np.random.default_rng(3)
    learner, n, day = Learner(), 25, 0.0
    stage = Stage(learner, unseen(n)).first(days(0))
    seen = [0.0] * n
    changed: list[list[float]] = [[] for _ in range(n)]
    quiet: list[list[float]] = [[] for _ in range(n)]
    for _ in range(60):
        day += float(random.choice([0.04, 0.5, 1.0]))
        page = np.sort(random.choice(n, 8, replace=False)).tolist()
        what = [int(random.random() < p / n) for p in page]
        answered = (random.random(8) < 0.9).tolist()
        stage.see(made_visits(days(day), page, changed=what, answered=answered))
        for p, c, a in zip(page, what, answered, strict=True):
            if a:
                (changed if c else quiet)[p].append(day - seen[p])
                seen[p] = day
    expected = [by_brent(c, q) for c, q in zip(changed, quiet, strict=True)]
    assert learner.rates.per_day.tolist() == pytest.approx(expected, rel=1e-6)


def test_a_new_way_of_reading_begins_a_new_interval_and_counts_for_nothing() -> None:
    learner = Learner()
    stage = Stage(learner, unseen(1)).first(days(0))
    stage.see(made_visits(days(3), [0], changed=-1))
    stage.see(made_visits(days(4), [0], changed=1))
    assert learner.rates.per_day[0] == pytest.approx(by_brent([1.0], []))


def by_hand(estimator: str, found: list[tuple[float, int]]) -> float:
    """The online estimators of Avrachenkov, Patil and Thoppe (2020), from their formulas: days and changes of each interval."""
    n, total, n_changed = len(found), sum(d for d, _ in found), sum(c for _, c in found)
    if not n:
        return math.log(2) / 0.5
    frequency = n / total
    if estimator == "law-of-large-numbers":
        rate = frequency * n_changed / (n + 1 + math.log(1 + n) - n_changed)
    elif estimator == "stochastic-approximation":
        rate = 0.0
        for k, (_, changed) in enumerate(found):
            rate += (k + 1) ** -0.75 * (changed * (rate + frequency) - rate)
    elif estimator == "simple":
        rate = n_changed / total
    else:
        rate = -math.log((n - n_changed + 0.5) / (n + 0.5)) * frequency
    return min(max(rate, 0.0005), 7.0)


@pytest.mark.parametrize("estimator", RATES[1:])
def test_every_other_estimator_is_the_one_of_its_formula(estimator: str) -> None:
    random = np.random.default_rng(5)
    n, day = 12, 0.0
    learner = Learner()
    stage = Stage(learner, unseen(n)).first(days(0))
    learner.rates = ChangeRates(stage.pages, rates=estimator)
    learner.rates.observe(made_visits(days(0), list(range(n)), changed=-1))
    seen, found = [0.0] * n, [list[tuple[float, int]]() for _ in range(n)]
    for _ in range(40):
        day += float(random.choice([0.25, 0.5, 1.0]))
        page = np.sort(random.choice(n - 1, 5, replace=False)).tolist()  # the last one is never visited again
        what = [int(random.random() < p / n) for p in page]
        stage.see(made_visits(days(day), page, changed=what))
        for p, c in zip(page, what, strict=True):
            found[p].append((day - seen[p], c))
            seen[p] = day
    assert learner.rates.per_day.tolist() == pytest.approx([by_hand(estimator, each) for each in found], rel=1e-6)


def test_the_names_of_estimators_are_those_of_the_estimators() -> None:
    assert tuple(ESTIMATORS) == RATES


@pytest.mark.parametrize("policy", ["lambda-crawl", "freshness-value", "history-aware", "whole-sites"])
def test_estimators_are_reached_by_plans_and_replays(policy: str) -> None:
    with tiny_history() as history:
        for estimator in RATES:
            assert len(rc.plan(history, policy=policy, rates=estimator, budget=2).url) == 2
        result = rc.replay(history, [policy, "round-robin"], budget=1, rates="law-of-large-numbers")
    assert result.runs[0].settings["rates"] == "law-of-large-numbers"
    with pytest.raises(rc.errors.BadOption, match="round-robin estimates no rates"):
        rc.replay("nowhere", ["round-robin"], rates="simple")
