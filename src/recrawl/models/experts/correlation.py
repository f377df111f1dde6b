"""Temporal content similarity by cross-correlation: whether the words of two pages come and go together, one page after the other.

References: Radinsky and Bennett (2013), "Predicting content change on the web", section 6.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from recrawl.core.arrays import Floats, Ints
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
    own, own_number = _standardised(series.values)

    def best(row: Ints, theirs: Floats, at: Ints) -> Floats:
        shown, number = _standardised(theirs)
        correlation: Floats = _best(own, own_number[row], shown[:, ::-1].copy(), number[at], first, last)
        return correlation

    return series.similarity(page, expert, best)


def delays(n_rounds: int, first_delay: int, max_delay: int | None) -> tuple[int, int]:
    """The first and the last delay that leave at least one term; the last is before the first if there is none."""
    if first_delay < 0 or (max_delay is not None and max_delay < first_delay):
        upper = "" if max_delay is None else f" to {max_delay}"
        raise ValueError(
            f"delays of {first_delay}{upper} rounds; they must be 0 or more, the last not before the first"
        )
    return first_delay, n_rounds - 1 if max_delay is None else min(max_delay, n_rounds - 1)


def _standardised(values: Floats) -> tuple[Floats, Ints]:
    """The rows that vary, with mean 0 and length 1, and for every row which of these it is; -1 where it is constant.

    A correlation is then a plain sum of products. An expert never shows most of the words of its pages: those rows are left out
    before anything is calculated.
    """
    varies = (values != values[:, :1]).any(axis=1) if values.size else np.zeros(len(values), np.bool_)
    unit = values[varies]
    if unit.size:
        unit -= unit.mean(axis=1, keepdims=True)
        length = np.sqrt(np.einsum("ij,ij->i", unit, unit))
        unit /= np.where(length > 0, length, 1)[:, None]
    return unit, np.where(varies, np.cumsum(varies) - 1, -1)


@njit(cache=True)
def _best(x: Any, x_row: Any, reversed_y: Any, y_row: Any, first: Any, last: Any) -> Any:
    """The largest sum over all delays for pairs of rows; 0 where one of them is -1.

    The sums of all delays grow side by side, and are counted from 0: so the compiler vectorises them, and adding up is no slower
    than Fourier transforms over some hundred rounds. With the last round first, the factors of a round are in the order of the
    delays.
    """
    n, n_delays = x.shape[1], last + 1 - first
    best = np.zeros(len(x_row))
    if n_delays <= 0:
        return best
    total = np.empty(n_delays)
    for pair in range(len(x_row)):
        if x_row[pair] < 0 or y_row[pair] < 0:
            continue
        total[:] = 0.0
        for i in range(first, n):
            value, earlier = x[x_row[pair], i], reversed_y[y_row[pair], n - 1 - i + first :]
            for d in range(min(n_delays, i + 1 - first)):
                total[d] += value * earlier[d]
        best[pair] = total.max()
    return best
