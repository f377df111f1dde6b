"""Correlation and warping of plain series, row by row, by the kernels that compare pages."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from recrawl.core.arrays import Floats
from recrawl.insight.series.correlation import delays, standardised
from recrawl.insight.series.warping import band_width
from recrawl.models.experts.correlation import _best
from recrawl.models.experts.warping import _distances


def best_correlation(x: ArrayLike, y: ArrayLike, first_delay: int = 1, max_delay: int | None = None) -> Floats:
    """The maximum over d of Σ (x[i] - mean x)(y[i - d] - mean y) / (N σx σy), row by row; constant series give 0.

    What lies outside of the series is left out, not wrapped around: a long delay has few terms, but is divided by all N. The
    paper's d goes from 1 to N; here to N - 1, for at N no term is left. With one round only there is no delay, and 0. (The paper
    calls σ the variance; with the standard deviation it is a correlation.)

    >>> best_correlation([[0.0, 0.0, 4.0, 0.0]], [[4.0, 0.0, 0.0, 0.0]])  # at d = 2: (3 · 3 + -1 · -1) / 12
    array([0.83333333])
    """
    x, y = (np.atleast_2d(np.asarray(values, np.float64)) for values in (x, y))
    if x.shape != y.shape:
        raise ValueError(f"series of shapes {x.shape} and {y.shape}; both must have as many rows and rounds")
    first, last = delays(x.shape[1], first_delay, max_delay)
    (unit_x, number_x), (unit_y, number_y) = standardised(x), standardised(y)
    correlation: Floats = _best(unit_x, number_x, unit_y[:, ::-1].copy(), number_y, first, last)
    return correlation


def dtw(x: ArrayLike, y: ArrayLike, band: int | None = None) -> Floats:
    """The least sum of |x[i] - y[j]| along a path that steps by one in i, in j or in both, row by row.

    With a `band`, i and j are never further apart than that.

    >>> dtw([[0.0, 1.0, 3.0, 3.0]], [[0.0, 0.0, 1.0, 3.0]]), dtw([[0.0, 1.0, 3.0, 3.0]], [[0.0, 0.0, 1.0, 3.0]], band=0)
    (array([0.]), array([3.]))
    """
    x, y = (np.atleast_2d(np.asarray(values, np.float64)) for values in (x, y))
    if x.shape != y.shape:
        raise ValueError(f"series of shapes {x.shape} and {y.shape}; both must have as many rows and rounds")
    same = np.arange(len(x))
    distances: Floats = _distances(x, same, y, same, np.ones(len(x)), band_width(x.shape[1], band))
    return distances
