"""How likely a page has changed since its last visit."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from made_visits import days, made_visits
from recrawl.core.arrays import Floats
from recrawl.models.change_expectation import RATES, ChangeExpectation


def slow_probability(shares: Floats, seen: Sequence[tuple[float, int]], waited: float) -> float:
    """Of a page with these intervals (days, whether it changed)."""
    fits = [math.prod((1 - math.exp(-r * d)) if c else math.exp(-r * d) for d, c in seen) for r in RATES]
    total = sum(share * fit for share, fit in zip(shares, fits, strict=True))
    changed = sum(s * f * (1 - math.exp(-r * waited)) for s, f, r in zip(shares, fits, RATES, strict=True))
    return float(changed / total)


def test_the_probability_of_change_is_that_of_a_slow_version() -> None:
    """Page by page, rate by rate, with plain numbers: irregular visits, one that failed, one page never compared."""
    learnt = ChangeExpectation(4)
    learnt.observe(made_visits(days(0), [0, 1, 2, 3], changed=[-1, -1, -1, -1]))
    learnt.observe(made_visits(days(1), [0, 1], changed=[1, 0]))
    learnt.observe(made_visits(days(3), [0, 2], changed=[0, 0], answered=[True, False]))
    learnt.observe(made_visits(days(7), [0, 1, 2], changed=[1, 0, 1]))
    intervals = {0: [(1, 1), (2, 0), (4, 1)], 1: [(1, 0), (6, 0)], 2: [(7, 1)], 3: []}
    waited = {0: 3, 1: 3, 2: 3, 3: 10}
    shares = learnt.shares()
    assert shares.sum() == pytest.approx(1.0)
    for i, seen in intervals.items():
        alike = [(2 ** (round(32 * math.log2(d)) / 32), c) for d, c in seen]  # lengths that are taken as one
        assert learnt.expect(days(10))[i] == pytest.approx(slow_probability(shares, alike, waited[i]), rel=1e-5)
        assert learnt.expect(days(10))[i] == pytest.approx(slow_probability(shares, seen, waited[i]), rel=0.02)
    assert learnt.expect(days(10), np.array([2, 0])).tolist() == pytest.approx(learnt.expect(days(10))[[2, 0]].tolist())
    assert learnt.n_changed.tolist() == [2, 0, 1, 0]
    assert learnt.n_compared.tolist() == [3, 2, 1, 0]


def test_without_any_comparison_every_page_is_equally_likely_to_have_changed() -> None:
    learnt = ChangeExpectation(3)
    learnt.observe(made_visits(days(0), [0, 1], changed=[-1, -1]))
    first, second, _ = learnt.expect(days(1))
    assert 0 < first == second < 1
    assert len(ChangeExpectation(0).expect(days(1))) == 0


def test_pages_that_always_changed_are_not_taken_to_change_much_faster_than_they_were_visited() -> None:
    """Weekly visits look the same for every day and every minute: the slowest rate that explains them is ln 100 / 7 per day."""
    learnt = ChangeExpectation(50)
    for week in range(8):
        learnt.observe(made_visits(days(7 * week), range(50), changed=1 if week else -1))
    assert (learnt.expect(days(7 * 8)) > 0.9).all()
    assert (learnt.expect(days(7 * 7 + 0.25)) < 1 - 100 ** (-0.25 * 1.26 / 7)).all()  # rates are steps of 1.26


def test_a_page_that_changes_faster_than_all_others_has_a_probability() -> None:
    learnt = ChangeExpectation(2_001)
    every_page, first_page = list(range(2_001)), [0]
    for day in range(11):
        learnt.observe(made_visits(days(day), every_page, changed=0 if day else -1))
        for minute in range(1, 13):
            learnt.observe(made_visits(days(day + minute / 1440), first_page, changed=1))
    likely = learnt.expect(days(11))
    assert np.isfinite(likely).all()
    assert likely[0] > likely[1:].max()


def test_pages_that_become_known_late_begin_without_a_past_however_often_others_were_visited() -> None:
    learnt = ChangeExpectation(2)
    for day in range(1_200):  # so many different pasts that those no page has any more are dropped
        learnt.observe(made_visits(days(day * (1 + day % 3) + day), [0, 1], changed=day % 2 if day else -1))
    learnt.extend_to(3)
    assert learnt._n_fits < 1_000
    assert not learnt._fits[learnt._fit_of[2]].any()
