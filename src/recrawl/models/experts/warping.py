"""Temporal content similarity by dynamic time warping: whether words come and go together if one page is slower or later.

References: Radinsky and Bennett (2013), "Predicting content change on the web", section 6.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from recrawl.core.arrays import Floats, Ints
from recrawl.insight.series.warping import band_width, warped_distance
from recrawl.models.experts.series import Series


def warped(series: Series, page: ArrayLike, expert: ArrayLike, band: int | None = None, scaled: bool = True) -> Floats:
    """Σ ω(w) / (1 + dtw(w)) for pairs of pages: between 0 and 1, and 1 where the words' series are the same.

    dtw(w) is the least sum of |x[i] - y[j]| along a path that steps by one in i, in j or in both; with a `band`, i and j are never
    further apart than that. The paper takes the distances themselves as similarities; here a small one counts more. If `scaled`,
    both series of a word are divided by its mean on the page, so that rare and frequent words weigh the same; a word that the
    expert never shows is then at a distance of N, the number of rounds. Otherwise they are tf-idf values as they are, and distances
    of long texts are small.
    """
    width = band_width(series.values.shape[1], band)
    scale = series.values.mean(axis=1) if scaled else np.ones(len(series.values))

    def nearness(row: Ints, theirs: Floats, at: Ints) -> Floats:
        near: Floats = 1 / (1 + _distances(series.values, row, theirs, at, scale, width))
        return near

    return series.similarity(page, expert, nearness)


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
            distance[r] = warped_distance(x, y, width, cost, np.inf)
    return distance
