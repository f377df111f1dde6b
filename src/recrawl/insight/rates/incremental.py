"""Rates of updates learnt visit by visit, with a few numbers per page and no stored history.

Both estimators rest on one fact: where a page changes at rate Δ and is visited at random times at rate p, a visit finds a change
with probability Δ/(Δ + p). Visits at regular times find one with probability 1 - exp(-Δ/p), and the estimates are then
p(exp(Δ/p) - 1) instead of Δ: close while a page is visited more often than it changes, far too high otherwise.

References: Avrachenkov, Patil and Thoppe (2020), "Change rate estimation and optimal freshness in web page crawling".
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.insight.rates.estimators import Intervals


class LawOfLargeNumbers:
    """Δ = p·S / (k + a - S), with S changes found in k visits (LLN).

    The guard a keeps the estimate finite while every visit has found a change. It must grow more slowly than the visits:
    a = `guard` · (1 + log(1 + k)), and with it the estimate is a little low at first.

    >>> estimator = LawOfLargeNumbers(n_pages=2, visits_per_day=1.0)
    >>> for changed in ([1, 0], [1, 0], [0, 1]):
    ...     estimator.observe([0, 1], changed)
    >>> estimator.rates_per_day.round(3)
    array([0.591, 0.228])
    """

    def __init__(self, n_pages: int, visits_per_day: ArrayLike, guard: float = 1.0) -> None:
        if not guard > 0:
            raise ValueError(f"guard is {guard}; it must be above 0, or a page that always changed has no estimate")
        self.visits_per_day = _frequencies(n_pages, visits_per_day)
        self.guard = guard
        self._n_visits = np.zeros(n_pages, np.int64)
        self._n_changes = np.zeros(n_pages, np.int64)

    def observe(self, pages: ArrayLike, changed: ArrayLike) -> None:
        """Learn from visits; a page may be among them more than once."""
        pages, changed = _observations(pages, changed)
        np.add.at(self._n_visits, pages, 1)
        np.add.at(self._n_changes, pages, changed)

    @property
    def rates_per_day(self) -> Floats:
        """The estimate for every page, 0 before the first change."""
        guard = self.guard * (1 + np.log1p(self._n_visits))
        rates: Floats = self.visits_per_day * self._n_changes / (self._n_visits + guard - self._n_changes)
        return rates


class StochasticApproximation:
    """y ← y + η(I(y + p) - y), where I is 1 if the visit found a change and else 0 (SA).

    The k-th visit of a page, counted from 0, moves its estimate by η = (k + 1)^-`decay`; a `decay` of 1 averages all visits
    equally, a smaller one forgets the start sooner and stays noisier. It must be above 1/2 for the noise to die out.

    >>> estimator = StochasticApproximation(n_pages=1, visits_per_day=2.0, decay=1.0)
    >>> for changed in (1, 0, 1):  # 0 → 0 + 1·(0 + 2 - 0) → 2 + 1/2·(0 - 2) → 1 + 1/3·(1 + 2 - 1)
    ...     estimator.observe([0], [changed])
    >>> estimator.rates_per_day
    array([1.66666667])
    """

    def __init__(
        self, n_pages: int, visits_per_day: ArrayLike, decay: float = 0.75, first_rates_per_day: ArrayLike = 0.0
    ) -> None:
        if not 0.5 < decay <= 1:
            raise ValueError(f"decay is {decay}; it must be above 0.5 and at most 1, or the estimate does not settle")
        self.visits_per_day = _frequencies(n_pages, visits_per_day)
        self.decay = decay
        self._n_visits = np.zeros(n_pages, np.int64)
        self._rates = np.array(np.broadcast_to(np.asarray(first_rates_per_day, np.float64), n_pages))

    def observe(self, pages: ArrayLike, changed: ArrayLike) -> None:
        """Learn from visits, one after the other."""
        _approach(self._rates, self._n_visits, self.visits_per_day, self.decay, *_observations(pages, changed))

    @property
    def rates_per_day(self) -> Floats:
        """The estimate for every page."""
        return self._rates.copy()


def law_of_large_numbers_rate(intervals: Intervals) -> Floats:
    """The estimate of `LawOfLargeNumbers` after all intervals, each page visited as often as it was on average.

    >>> weeks = Intervals(np.array([0, 4]), np.full(4, 7.0), np.array([True, False, False, True]))
    >>> law_of_large_numbers_rate(weeks)  # (1/7)·2 / (4 + 1 + ln 5 - 2)
    array([0.06198463])
    """
    return _after(intervals, LawOfLargeNumbers)


def stochastic_approximation_rate(intervals: Intervals) -> Floats:
    """The estimate of `StochasticApproximation` after all intervals, each page visited as often as it was on average.

    >>> weeks = Intervals(np.array([0, 2]), np.full(2, 7.0), np.array([True, False]))
    >>> stochastic_approximation_rate(weeks)  # 1/7 after the change, then less 2^-0.75 of it
    array([0.0579...])
    """
    return _after(intervals, StochasticApproximation)


def _after(intervals: Intervals, kind: type[LawOfLargeNumbers] | type[StochasticApproximation]) -> Floats:
    n_pages, lasting = len(intervals.start) - 1, intervals.days > 0
    page = np.repeat(np.arange(n_pages), np.diff(intervals.start))[lasting]
    n_visits, days = np.bincount(page, minlength=n_pages), np.bincount(page, intervals.days[lasting], n_pages)
    estimator = kind(n_pages, np.divide(n_visits, days, out=np.ones(n_pages), where=n_visits > 0))
    estimator.observe(page, intervals.changed[lasting])
    return estimator.rates_per_day


def _frequencies(n_pages: int, visits_per_day: ArrayLike) -> Floats:
    frequencies = np.array(np.broadcast_to(np.asarray(visits_per_day, np.float64), n_pages))
    wrong = frequencies[~((frequencies > 0) & (frequencies < math.inf))]
    if len(wrong):
        raise ValueError(f"visits_per_day holds {wrong[0]}; it must be above 0 and finite for every page")
    return frequencies


def _observations(pages: ArrayLike, changed: ArrayLike) -> tuple[Ints, Flags]:
    pages, changed = np.asarray(pages, np.int64), np.asarray(changed)
    if pages.shape != changed.shape:
        raise ValueError(f"{pages.size} pages, but {changed.size} findings; there must be one for each")
    if changed.size and not np.isin(changed, (0, 1)).all():
        raise ValueError("a finding is True or False; leave out visits with nothing to compare")
    return pages, changed.astype(np.bool_)


@njit(cache=True)
def _approach(rates: Floats, n_visits: Ints, visits_per_day: Floats, decay: float, pages: Ints, changed: Flags) -> None:
    for i in range(len(pages)):
        page = pages[i]
        step = (n_visits[page] + 1.0) ** -decay
        aim = rates[page] + visits_per_day[page] if changed[i] else 0.0
        rates[page] += step * (aim - rates[page])
        n_visits[page] += 1
