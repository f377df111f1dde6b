"""Temporal content similarity by dynamic time warping: whether words come and go together if one page is slower or later.

References: Radinsky and Bennett (2013), "Predicting content change on the web", section 6.3, Figures 4 and 5;
Sakoe and Chiba (1978), "Dynamic programming algorithm optimization for spoken word recognition" (the band).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from recrawl.core.arrays import Floats, Ints
from recrawl.models.experts.series import Series


def warped(series: Series, page: ArrayLike, expert: ArrayLike, band: int | None = None, scaled: bool = True) -> Floats:
    """Σ ω(w) / (1 + dtw(w)) for pairs of pages: between 0 and 1, and 1 where the words' series are the same.

    dtw(w) is the least sum of |x[i] - y[j]| along a path that steps by one in i, in j or in both; with a `band`, i and j are never
    further apart than that. The paper takes the distances themselves as similarities; here a small one counts more. If `scaled`,
    both series of a word are divided by its mean on the page, so that rare and frequent words weigh the same; a word that the
    expert never shows is then at a distance of N, the number of rounds. Otherwise they are tf-idf values as they are, and distances
    of long texts are small.
    """
    width = _width(series.values.shape[1], band)
    scale = series.values.mean(axis=1) if scaled else np.ones(len(series.values))

    def nearness(row: Ints, theirs: Floats, at: Ints) -> Floats:
        near: Floats = 1 / (1 + _distances(series.values, row, theirs, at, scale, width))
        return near

    return series.similarity(page, expert, nearness)


def _width(n_rounds: int, band: int | None) -> int:
    if band is not None and band < 0:
        raise ValueError(f"a band of {band} rounds; it must be 0 or more, or None for no limit")
    return n_rounds if band is None else min(band, n_rounds)


@njit(cache=True)
def _distances(own: Any, row: Any, theirs: Any, at: Any, scale: Any, width: Any) -> Any:
    n = own.shape[1]
    distance = np.zeros(len(row))
    x, y, cost = np.empty(n), np.empty(n), np.empty(n + 1)
    for r in range(len(row)):
        is_constant = True
        for i in range(n):
            x[i], y[i] = own[row[r], i] / scale[row[r]], theirs[at[r], i] / scale[row[r]]
            is_constant = is_constant and y[i] == y[0]
        if is_constant:  # every path meets each x at least once, and the straight one just once
            for i in range(n):
                distance[r] += abs(x[i] - y[i])
        else:
            distance[r] = _distance(x, y, width, cost)
    return distance


@njit(cache=True)
def _distance(x: Any, y: Any, width: Any, cost: Any) -> Any:
    """Figure 5 of the paper, one row of the matrix at a time; cost[j + 1] is that of reaching j."""
    n = len(x)
    cost[:] = np.inf
    cost[0] = 0.0
    for i in range(n):
        first, end = max(0, i - width), min(n, i + width + 1)
        diagonal, before = cost[first], np.inf
        for j in range(first, end):
            above = cost[j + 1]
            before = abs(x[i] - y[j]) + min(diagonal, min(above, before))
            diagonal = above
            cost[j + 1] = before
        cost[first] = np.inf  # out of reach from the next row on
    return cost[n]
