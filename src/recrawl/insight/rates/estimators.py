"""How often a page changes: estimates of its rate of updates, from visits that only show whether something was new.

Between two visits a page changed or it did not; how often, and when, is not known. Updates are modelled as a Poisson process (HACS
section I-B), whose rate is estimated for all pages at once. Estimators that keep no history are in `incremental`.

References: HACS is Jayawardana, Nwala, Jayawardena, Wu, Jayarathna, Nelson and Giles (2020), "Modeling updates of scholarly
webpages using archived data"; Cho and Garcia-Molina (2003), "Estimating frequency of change"; Kolobov, Peres, Lu and Horvitz
(2019), "Staying up to date with online content changes using reinforcement learning for scheduling".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from recrawl.core.arrays import Flags, Floats, Ints, Ints8
from recrawl.core.times import NEVER, US_PER_DAY

NEW, SAME, UNDEFINED = 1, 0, -1  #: what a visit shows: links not seen before, no such links, or nothing to compare with
_MAX_STEPS = 200  # six are usual; bisection alone would take about 60
_ACCURACY = 1e-13


@dataclass(frozen=True)
class Intervals:
    """Stretches of time in which each page was watched: page i has ``days[start[i]:start[i + 1]]``."""

    start: Ints  # one entry per page, and the number of intervals at the end
    days: Floats
    changed: Flags  # whether the page was found changed at the end


def observed_intervals(page_start: Ints, at_us: Ints, changed: Ints8) -> Intervals:
    """From each visit to the next, changed where the later one shows an update (HACS section II-B.1).

    Visits are sorted by page and time; `changed` is `NEW`, `SAME` or `UNDEFINED`. A page's first visit ends no interval, whatever
    it shows, and neither does an undefined one (a baseline): the next interval starts there. Failed visits show nothing and must
    be left out, or the time before them is lost.

    >>> week = 7 * US_PER_DAY
    >>> visits = np.array([0, 4]), week * np.arange(4), np.array([-1, 0, 1, 0], np.int8)
    >>> observed_intervals(*visits)
    Intervals(start=array([0, 3]), days=array([7., 7., 7.]), changed=array([False,  True, False]))
    """
    return _between(page_start, at_us, changed)


def interpolated_intervals(page_start: Ints, at_us: Ints, changed: Ints8) -> Intervals:
    """The same, with every update moved to the middle between its visit and the one before (HACS section II-B.2).

    An update happened some time before it was seen, so its visit is replaced by that midpoint: the changed interval ends there,
    and the next one begins there. After an update in mid-week a quiet week lasts a week and a half, and the half week between the
    last update and its visit is not counted: a second update in it could not be distinguished from the first.

    >>> week = 7 * US_PER_DAY
    >>> visits = np.array([0, 4]), week * np.arange(4), np.array([-1, 0, 1, 0], np.int8)
    >>> interpolated_intervals(*visits).days
    array([ 7. ,  3.5, 10.5])
    """
    return _between(page_start, update_times(page_start, at_us, changed), changed)


def update_times(page_start: Ints, at_us: Ints, changed: Ints8) -> Ints:
    """The times of visits, with those that show an update moved to the middle between them and the visit before."""
    first = _firsts(page_start, len(at_us))
    before = np.where(first, at_us, np.roll(at_us, 1))
    moved: Ints = np.where(changed == NEW, before + (at_us - before) // 2, at_us)
    return moved


def last_updates(page_start: Ints, at_us: Ints, changed: Ints8, interpolated: bool = True) -> Ints:
    """When each page was last updated, as far as its visits show (τ of HACS section II-E); `NEVER` where they show no update.

    >>> visits = np.array([0, 3, 5]), np.array([0, 10, 20, 0, 10]), np.array([-1, 1, 0, -1, 0], np.int8)
    >>> last_updates(*visits)[0], last_updates(*visits, interpolated=False)[0], last_updates(*visits)[1] == NEVER
    (np.int64(5), np.int64(10), np.True_)
    """
    times = update_times(page_start, at_us, changed) if interpolated else at_us
    updates = np.flatnonzero((changed == NEW) & ~_firsts(page_start, len(at_us)))
    page = np.searchsorted(page_start, updates, side="right") - 1
    last: Ints = np.full(len(page_start) - 1, NEVER, np.int64)
    np.maximum.at(last, page, times[updates])
    return last


def simple_rate(intervals: Intervals) -> Floats:
    """Updates seen, divided by the time watched, per day: X/T (HACS Eq. 3).

    Biased low, and the more so the more often a page changes between two visits. An interval of no length is ignored here as in the
    other estimators.

    >>> simple_rate(Intervals(np.array([0, 4]), np.full(4, 7.0), np.array([True, False, False, True])))
    array([0.07142857])
    """
    n_changed, _, days = _sums(intervals)
    return np.divide(n_changed, days, out=np.zeros_like(days), where=days > 0)


def regular_rate(intervals: Intervals) -> Floats:
    """The nearly unbiased estimate for visits at regular times, per day (HACS Eq. 4, from Cho and Garcia-Molina).

    r̂ = -log((X̄ + 0.5) / (n + 0.5)) with X̄ of n intervals unchanged, times the frequency of visits n/T.

    >>> regular_rate(Intervals(np.array([0, 1]), np.array([7.0]), np.array([True]))).round(6)
    array([0.156945])
    """
    n_changed, n, days = _sums(intervals)
    frequency = np.divide(n, days, out=np.zeros_like(days), where=days > 0)
    rate: Floats = np.log((n + 0.5) / (n - n_changed + 0.5)) * frequency
    return rate


def maximum_likelihood_rate(
    intervals: Intervals, *, prior_days: float = 0.0, bounds: tuple[float, float] = (0.0, math.inf)
) -> Floats:
    """The rate under which the observations at irregular visits are most likely, per day (HACS Eq. 5).

    The root of Σ tc/(exp(λ tc) - 1) = Σ tu over changed and unchanged intervals. Where all intervals changed, it is infinite and
    Eq. 4 is used instead; where none did, or nothing is known, it is 0.

    `prior_days` adds one changed and one unchanged interval of that length to every page, so that a short history does not give
    extreme rates; `bounds` clip them. Kolobov et al. (2019) use half a day and [0.0005, 7].

    >>> weeks = Intervals(np.array([0, 2, 3, 3]), np.full(3, 7.0), np.array([True, False, False]))
    >>> maximum_likelihood_rate(weeks)  # once in two weeks: ln 2 / 7; never; never visited
    array([0.09902103, 0. , 0. ])
    >>> maximum_likelihood_rate(weeks, prior_days=0.5, bounds=(0.0005, 7))[2]  # ln 2 / 0.5
    np.float64(1.386294...)
    """
    if not (prior_days >= 0 and math.isfinite(prior_days)):
        raise ValueError(f"prior_days is {prior_days}; it must be a length of time, or 0 for no added intervals")
    rate = _likeliest_rates(intervals.start, intervals.days, intervals.changed, float(prior_days))
    clipped: Floats = np.clip(rate, *bounds)
    return clipped


def probability_of_change(rate_per_day: ArrayLike, last_update: ArrayLike, now: ArrayLike, ahead_days: float) -> Floats:
    """The probability of an update between the last one and `ahead_days` from now: 1 - exp(-λ(t + e - τ)) (HACS section II-E).

    Times are microseconds; a page whose last update is `NEVER` has probability 0, as has one whose rate is 0.

    >>> probability_of_change([0.1, 0.0], [0, 0], 3 * US_PER_DAY, ahead_days=7)
    array([0.63212056, 0. ])
    """
    known = np.asarray(last_update) != NEVER
    elapsed = (np.asarray(now) - np.where(known, last_update, now)) / US_PER_DAY + ahead_days
    probability: Floats = np.where(known, -np.expm1(-np.asarray(rate_per_day) * np.maximum(elapsed, 0.0)), 0.0)
    return probability


def _between(page_start: Ints, times: Ints, changed: Ints8) -> Intervals:
    """The intervals that end at each time, except the first one of a page and the undefined ones."""
    ends = (changed != UNDEFINED) & ~_firsts(page_start, len(times))
    n_before = np.append(0, np.cumsum(ends))
    days = np.diff(times, prepend=times[:1])[ends] / US_PER_DAY
    return Intervals(n_before[page_start], days, (changed == NEW)[ends])


def _firsts(page_start: Ints, n_visits: int) -> Flags:
    first = np.zeros(n_visits + 1, np.bool_)
    first[page_start] = True  # pages without visits share an entry with the next page, the last ones with the end
    return first[:-1]


def _sums(intervals: Intervals) -> tuple[Floats, Floats, Floats]:
    """The number of changed intervals, of all intervals, and the days of each page, without intervals of no length."""
    n_pages = len(intervals.start) - 1
    page = np.repeat(np.arange(n_pages), np.diff(intervals.start))
    lasting = intervals.days > 0

    def total(values: NDArray[np.generic]) -> Floats:
        return np.bincount(page, values, n_pages).astype(np.float64)  # of nothing at all, bincount makes integers

    return total(lasting & intervals.changed), total(lasting), total(np.where(lasting, intervals.days, 0.0))


@njit(cache=True)
def _likeliest_rates(start: Ints, days: Floats, changed: Flags, prior_days: float) -> Floats:
    rates = np.zeros(len(start) - 1)
    most = 1
    for p in range(len(start) - 1):
        most = max(most, start[p + 1] - start[p] + 1)
    lengths = np.empty(most)
    for p in range(len(start) - 1):
        n_changed, n_same, quiet_days = 0, 0, 0.0
        if prior_days > 0:
            lengths[0], n_changed, n_same, quiet_days = prior_days, 1, 1, prior_days
        for i in range(start[p], start[p + 1]):
            if not days[i] > 0:
                continue
            if changed[i]:
                lengths[n_changed] = days[i]
                n_changed += 1
            else:
                n_same += 1
                quiet_days += days[i]
        if n_changed and n_same:
            rates[p] = _root(lengths[:n_changed], quiet_days)
        elif n_changed:
            rates[p] = np.log(2.0 * n_changed + 1.0) * n_changed / lengths[:n_changed].sum()  # Eq. 4 with X̄ = 0
    return rates


@njit(cache=True)
def _root(lengths: Floats, quiet_days: float) -> float:
    """The λ at which Σ t/(exp(λt) - 1) equals the quiet days.

    Since 1/λ - t/2 ≤ t/(exp(λt) - 1) ≤ 1/λ, it lies between m/(quiet + Σt/2) and m/quiet. Newton's method on the logarithm of the
    sum over log λ is exact where the sum is proportional to 1/λ, and never far off: the curve is concave there. A step that leaves
    the bracket, for example because the sum underflows, is replaced by the bracket's middle.
    """
    low = len(lengths) / (quiet_days + lengths.sum() / 2)
    high = len(lengths) / quiet_days
    rate: float = low
    for _ in range(_MAX_STEPS):
        total, slope = 0.0, 0.0
        for t in lengths:
            x = rate * t
            if x < 700.0:  # beyond, exp(x) overflows and the term is 0
                part = t / math.expm1(x)
                total += part
                slope += part * (x + part * rate)  # -d part / d log λ, for x·exp(x)/(exp(x) - 1) = x + x/(exp(x) - 1)
        if total > quiet_days:
            low = rate
        else:
            high = rate
        step = math.log(total / quiet_days) * total / slope if total > 0 else math.inf
        following = rate * math.exp(min(max(step, -700.0), 700.0))
        if not low <= following <= high:
            following = math.sqrt(low) * math.sqrt(high)
        is_settled = abs(following - rate) <= _ACCURACY * rate
        rate = following
        if is_settled:
            break
    return rate
