"""The best correlation of two series over a range of delays: whether one moves as the other did some rounds before.

References: Radinsky and Bennett (2013), "Predicting content change on the web", section 6.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from recrawl.core.arrays import Floats, Ints


def delays(n_rounds: int, first_delay: int, max_delay: int | None) -> tuple[int, int]:
    """The first and the last delay that leave at least one term; the last is before the first if there is none."""
    if first_delay < 0 or (max_delay is not None and max_delay < first_delay):
        upper = "" if max_delay is None else f" to {max_delay}"
        raise ValueError(
            f"delays of {first_delay}{upper} rounds; they must be 0 or more, the last not before the first"
        )
    return first_delay, n_rounds - 1 if max_delay is None else min(max_delay, n_rounds - 1)


def standardised(values: Floats) -> tuple[Floats, Ints]:
    """The rows that vary, with mean 0 and length 1, and for every row which of these it is; -1 where it is constant.

    A correlation is then a plain sum of products. Rows that are constant are left out before anything is calculated: an expert
    never shows most of the words of its pages, and most pages never gain a link.

    >>> standardised(np.array([[1.0, 1.0], [0.0, 2.0]]))
    (array([[-0.70710678,  0.70710678]]), array([-1,  0]))
    """
    varies = (values != values[:, :1]).any(axis=1) if values.size else np.zeros(len(values), np.bool_)
    unit = values[varies]
    if unit.size:
        unit -= unit.mean(axis=1, keepdims=True)
        length = np.sqrt(np.einsum("ij,ij->i", unit, unit))
        unit /= np.where(length > 0, length, 1)[:, None]
    return unit, np.where(varies, np.cumsum(varies) - 1, -1)


@njit(cache=True)
def best_correlation(x: Any, reversed_y: Any, first: Any, last: Any, total: Any) -> Any:
    """The largest Σ x[i] y[i - d] over the delays d from `first` to `last`, which must be at least one; `total` is room for them.

    The sums of all delays grow side by side, and are counted from 0: so the compiler vectorises them, and adding up is no slower
    than Fourier transforms over some hundred rounds. With the last round first, the factors of a round are in the order of the
    delays.
    """
    n, n_delays = len(x), last + 1 - first
    total[:] = 0.0
    for i in range(first, n):
        value, earlier = x[i], reversed_y[n - 1 - i + first :]
        for d in range(min(n_delays, i + 1 - first)):
            total[d] += value * earlier[d]
    return total.max()
