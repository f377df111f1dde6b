"""Dynamic time warping: how far two series are apart if one may be slower or later than the other.

References: Radinsky and Bennett (2013), "Predicting content change on the web", section 6.3, Figures 4 and 5; Sakoe and Chiba
(1978), "Dynamic programming algorithm optimization for spoken word recognition" (the band); Keogh and Ratanamahatana (2005), "Exact
indexing of dynamic time warping" (the envelope).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


def band_width(n_rounds: int, band: int | None) -> int:
    """How far apart two rounds may be that are compared; all rounds if `band` is None."""
    if band is not None and band < 0:
        raise ValueError(f"a band of {band} rounds; it must be 0 or more, or None for no limit")
    return n_rounds if band is None else min(band, n_rounds)


@njit(cache=True)
def warped_distance(x: Any, y: Any, width: Any, cost: Any, limit: Any) -> Any:
    """The least sum of |x[i] - y[j]| along a path within the band; infinite as soon as it must be above `limit`.

    Figure 5 of Radinsky and Bennett, one row of the matrix at a time; cost[j + 1] is that of reaching j.
    """
    n = len(x)
    cost[:] = np.inf
    cost[0] = 0.0
    for i in range(n):
        first, end = max(0, i - width), min(n, i + width + 1)
        diagonal, before, least = cost[first], np.inf, np.inf
        for j in range(first, end):
            above = cost[j + 1]
            before = abs(x[i] - y[j]) + min(diagonal, min(above, before))
            least = min(least, before)
            diagonal = above
            cost[j + 1] = before
        if least > limit:  # every path crosses every row, and none gets shorter
            return np.inf
        cost[first] = np.inf  # out of reach from the next row on
    return cost[n]


@njit(cache=True)
def envelope(x: Any, width: Any, low: Any, high: Any) -> None:
    """The least and the greatest value of x within `width` rounds of each round."""
    n = len(x)
    for i in range(n):
        near = x[max(0, i - width) : min(n, i + width + 1)]
        low[i], high[i] = near.min(), near.max()


@njit(cache=True)
def outside(y: Any, low: Any, high: Any, limit: Any) -> Any:
    """How far y is outside of an envelope in all: never more than its distance from the series inside; stops above `limit`."""
    total = 0.0
    for j in range(len(y)):
        total += max(y[j] - high[j], 0.0) + max(low[j] - y[j], 0.0)
        if total > limit:
            break
    return total
