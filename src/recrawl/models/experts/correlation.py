"""Temporal content similarity by cross-correlation: whether the words of two pages come and go together, one page after the other.

References: Radinsky and Bennett (2013), "Predicting content change on the web", section 6.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from recrawl.core.arrays import Floats, Ints
from recrawl.insight.series.correlation import best_correlation, delays, standardised
from recrawl.models.experts.series import Series


def cross_correlation(
    series: Series, page: ArrayLike, expert: ArrayLike, first_delay: int = 1, max_delay: int | None = None
) -> Floats:
    """Σ ω(w) Q(w) for pairs of pages, Q being the best correlation of the word's series on both over all delays.

    Q = max over d of Σ (x[i] - mean x)(y[i - d] - mean y) / (N σx σy). A delay d compares the page with what its expert showed d
    rounds earlier: a page that only follows could not predict. Terms outside of the series are left out, not wrapped around: a long
    delay has few terms, but is divided by all N. The paper's d goes from 1 to N; here to N - 1, since at N no term is left. With
    one round only there is no delay, and Q = 0. (The paper calls σ the variance; with the standard deviation it is a correlation.)

    The similarity lies between -1 and 1. Words that the page or its expert shows equally in every round, or never, add 0.
    """
    first, last = delays(series.values.shape[1], first_delay, max_delay)
    own, own_number = standardised(series.values)

    def best(row: Ints, theirs: Floats, at: Ints) -> Floats:
        shown, number = standardised(theirs)
        correlation: Floats = _best(own, own_number[row], shown[:, ::-1].copy(), number[at], first, last)
        return correlation

    return series.similarity(page, expert, best)


@njit(cache=True)
def _best(x: Any, x_row: Any, reversed_y: Any, y_row: Any, first: Any, last: Any) -> Any:
    """The largest sum over all delays for pairs of rows; 0 where one of them is -1."""
    best = np.zeros(len(x_row))
    if last < first:
        return best
    total = np.empty(last + 1 - first)
    for pair in range(len(x_row)):
        if x_row[pair] >= 0 and y_row[pair] >= 0:
            best[pair] = best_correlation(x[x_row[pair]], reversed_y[y_row[pair]], first, last, total)
    return best
