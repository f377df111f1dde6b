"""The laws of updates: how their rates are distributed, and whether they follow a Poisson process (HACS Figs. 4 to 6)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from scipy.special import ndtr
from scipy.stats import spearmanr

from recrawl.core.arrays import Floats, Ints
from recrawl.core.times import US_PER_DAY
from recrawl.insight.rates import (
    ESTIMATORS,
    NEW,
    UNDEFINED,
    interpolated_intervals,
    observed_intervals,
    update_times,
)
from recrawl.papers.updates.captures import Captures

Row: TypeAlias = dict[str, Any]
PAPERS_BINS = (35.0, 70.0)  #: days between updates
WIDTH = 0.2  #: of a bin, to either side; the paper's bins are one day wide, which takes 20,000 pages
MIN_INTERVALS = 100  #: in a bin
QUANTILES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)  #: of 1/λ
MAX_STEPS = 60  #: points of a distribution


def laws(captures: Captures, estimator: str) -> dict[str, list[Row]]:
    """The rows of all three figures."""
    return {
        "rates": list(rate_rows(captures, estimator)),
        "intervals": list(interval_rows(captures, estimator)),
        "poisson": list(poisson_rows(captures, estimator)),
    }


def rate_rows(captures: Captures, estimator: str) -> Iterator[Row]:
    """How 1/λ, from observed updates, is distributed among pages, beside the log-normal law fitted to it (HACS Fig. 4).

    Mean and quantiles are those of pages with updates: 1/λ of the others is not known, only that it is long. The paper's means are
    141.5 days for homepages and 75 for websites (section V), its medians 110 and 74 (section II-B).
    """
    rate = ESTIMATORS[estimator](observed_intervals(captures.start, captures.at, captures.changed))
    days = np.sort(1 / rate[rate > 0])
    if not len(days):
        return
    logs = np.log(days)
    mean, deviation = float(logs.mean()), float(logs.std())
    edges = 10 ** np.arange(np.floor(logs[0] / np.log(10) * 5) / 5, logs[-1] / np.log(10) + 0.2, 0.2)
    law = ndtr((np.log(edges) - mean) / deviation) if deviation > 0 else (np.log(edges) >= mean).astype(float)
    yield {
        "n_pages": len(days),
        "n_never": int((rate == 0).sum()),
        "mean_days": float(days.mean()),
        "median_days": float(np.median(days)),
        "quantiles": {f"{level:.0%}": float(np.quantile(days, level)) for level in QUANTILES},
        "log_mean": mean,
        "log_deviation": deviation,
        "distance": _distance(days, ndtr((logs - mean) / deviation)) if deviation > 0 else None,
        "edges": edges.tolist(),
        "share": (np.histogram(days, edges)[0] / len(days)).tolist(),
        "law_share": np.diff(law).tolist(),
    }


def interval_rows(captures: Captures, estimator: str) -> Iterator[Row]:
    """For each page 1/λ̃ and the median time between its updates, both from interpolated updates (HACS Fig. 5)."""
    mean_days, page, days = _interpolated(captures, estimator)
    pages = np.unique(page)
    if len(pages) < 2:
        return
    order = np.lexsort((days, page))
    first = np.searchsorted(page[order], pages)
    n = np.append(first[1:], len(page)) - first
    # The median of a page is the mean of its middle one or two intervals.
    median = (days[order][first + (n - 1) // 2] + days[order][first + n // 2]) / 2
    by_rate = np.argsort(mean_days[pages], kind="stable")
    expected = mean_days[pages][by_rate]
    observed = median[by_rate]
    yield {
        "n_pages": len(pages),
        "spearman": float(spearmanr(expected, observed).statistic) if np.ptp(expected) and np.ptp(observed) else None,
        "median_ratio": float(np.median(observed / expected)),
        "mean_days": expected.tolist(),
        "median_interval_days": observed.tolist(),
        "n_intervals": n[by_rate].tolist(),
    }


def poisson_rows(captures: Captures, estimator: str) -> Iterator[Row]:
    """Among pages with about the same 1/λ̃, how the times between updates are distributed, beside the exponential law (HACS Fig. 6).

    Two updates between the same two captures are seen as one, so the law begins at half the usual time between captures, which
    is also the width of a step. A variation (standard deviation over mean) above 1 means bursts, one below 1 regularity.
    """
    mean_days, page, days = _interpolated(captures, estimator)
    gaps = np.diff(captures.at)[np.diff(np.repeat(np.arange(len(captures.start) - 1), np.diff(captures.start))) == 0]
    step = max(float(np.median(gaps)) / US_PER_DAY, 1.0) if len(gaps) else 1.0
    expected = mean_days[page]
    for lower, upper in _bins(expected):
        inside = (expected >= lower) & (expected <= upper)
        waits, typical = days[inside], float(np.median(expected[inside]))
        n_steps = min(MAX_STEPS, int(np.ceil(waits.max() / step)) + 1)
        edges: Floats = step * (np.arange(n_steps + 1, dtype=np.float64) + 0.5)
        law = -np.expm1(-(edges - edges[0]) / typical)
        ascending = np.sort(waits)
        yield {
            "lower_days": float(lower),
            "upper_days": float(upper),
            "mean_days": typical,
            "n_pages": len(np.unique(page[inside])),
            "n_intervals": len(waits),
            "variation": float(waits.std() / waits.mean()),
            "distance": _stepwise_distance(ascending, edges, law),
            "days": (edges[:-1] + step / 2).tolist(),
            "share": (np.histogram(waits, edges)[0] / len(waits)).tolist(),
            "law_share": np.diff(law).tolist(),
        }


def _interpolated(captures: Captures, estimator: str) -> tuple[Floats, Ints, Floats]:
    """1/λ̃ of every page (infinite without updates), and for each time between two updates its page and its days."""
    start, at, changed = captures.start, captures.at, captures.changed
    rate = ESTIMATORS[estimator](interpolated_intervals(start, at, changed))
    mean_days = np.divide(1, rate, out=np.full(len(rate), np.inf), where=rate > 0)
    page = np.repeat(np.arange(len(start) - 1), np.diff(start))
    is_first = np.diff(page, prepend=-1) > 0
    stretch = np.cumsum(
        is_first | (changed == UNDEFINED)
    )  # no time is counted across a capture that cannot be compared
    updates = np.flatnonzero((changed == NEW) & ~is_first)
    days = np.diff(update_times(start, at, changed)[updates]) / US_PER_DAY
    together = np.diff(stretch[updates]) == 0
    return mean_days, page[updates[1:]][together], days[together]


def _bins(expected: Floats) -> list[tuple[float, float]]:
    """The paper's 35 and 70 days where enough pages have such rates, and otherwise thirds of what there is."""
    papers = [(middle * (1 - WIDTH), middle * (1 + WIDTH)) for middle in PAPERS_BINS]
    enough = [bin for bin in papers if ((expected >= bin[0]) & (expected <= bin[1])).sum() >= MIN_INTERVALS]
    if enough or len(expected) < 3:
        return enough
    cuts = np.quantile(expected, (0, 1 / 3, 2 / 3, 1)).tolist()
    return [(lower, upper) for lower, upper in pairwise(cuts) if upper > lower]


def _distance(ascending: Floats, law: Floats) -> float:
    """The Kolmogorov–Smirnov distance of values from a law, whose value is given at each of them."""
    n = len(ascending)
    share = np.arange(n + 1) / n
    return float(max(np.abs(law - share[1:]).max(), np.abs(law - share[:-1]).max()))


def _stepwise_distance(ascending: Floats, edges: Floats, law: Floats) -> float:
    """The same at the ends of the steps only, since captures show no more."""
    share = np.searchsorted(ascending, edges, side="right") / len(ascending)
    return float(np.abs(share - law).max())
