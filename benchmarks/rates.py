"""Maximum-likelihood rates (HACS Eq. 5): all pages at once, beside a loop over scipy's Brent, in one run."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from benchmarks.measure import Row, best_of
from recrawl.insight.rates import Intervals, interpolated_intervals, maximum_likelihood_rate

N_VISITS = 20
A_MILLION = 1_000_000


def run(n_pages: int = A_MILLION, n_compared: int = 5_000) -> Iterator[Row]:
    visits = made_up(n_pages)
    maximum_likelihood_rate(interpolated_intervals(*made_up(10)))  # compiled or read from the cache before it counts
    seconds = best_of(2, lambda: maximum_likelihood_rate(interpolated_intervals(*visits)))
    is_full = n_pages == A_MILLION
    what = f"maximum-likelihood rates, {n_pages:,} pages × {N_VISITS} visits"
    yield Row(what, seconds, "s", "< 10" if is_full else "", seconds < 10 if is_full else None, "intervals included")

    intervals = interpolated_intervals(*made_up(n_compared))
    started = time.perf_counter()
    slow = loop(intervals)
    slow_seconds = time.perf_counter() - started
    quick_seconds = best_of(5, lambda: maximum_likelihood_rate(intervals))
    error = float(np.max(np.abs(maximum_likelihood_rate(intervals) - slow) / np.maximum(slow, 1e-300)))
    ratio = slow_seconds / quick_seconds
    yield Row(f"  against a loop over scipy's brentq, {n_compared:,} pages", ratio, "×", "≥ 100", ratio >= 100)
    yield Row("  largest relative difference", error, "", "≤ 1e-9", error <= 1e-9)


def made_up(n_pages: int, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int8]]:
    """Visits at irregular times to pages that change once in a day to once in a year."""
    random = np.random.default_rng(seed)
    days = random.lognormal(1.5, 1.0, (n_pages, N_VISITS))
    rate = 10 ** random.uniform(-2.5, 0, (n_pages, 1))
    changed = (random.random((n_pages, N_VISITS)) < -np.expm1(-rate * days)).astype(np.int8)
    changed[:, 0] = -1
    at = np.cumsum((days * 86_400e6).astype(np.int64), axis=1)
    return np.arange(0, n_pages * N_VISITS + 1, N_VISITS), at.reshape(-1), changed.reshape(-1)


def loop(intervals: Intervals) -> NDArray[np.float64]:
    """As one would write it: Brent's method, page by page."""
    rates = []
    for begin, end in zip(intervals.start[:-1], intervals.start[1:], strict=True):
        days, changed = intervals.days[begin:end], intervals.changed[begin:end]
        lengths, quiet = days[changed], days[~changed].sum()
        if not len(lengths):
            rates.append(0.0)
        elif len(lengths) == len(days):
            rates.append(np.log(2 * len(days) + 1) * len(days) / days.sum())
        else:
            rates.append(brentq(_difference, 1e-9, len(lengths) / quiet * 2, (lengths, quiet), 1e-300, 1e-14))
    return np.array(rates)


def _difference(rate: float, lengths: NDArray[np.float64], quiet: float) -> float:
    with np.errstate(over="ignore"):
        return float((lengths / np.expm1(rate * lengths)).sum() - quiet)
