"""Several orders made one: by the first, ties by the second, and so on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.core.arrays import Floats


def ranked(*keys: NDArray[Any]) -> Floats:
    """A score that orders by the first key, among equals by the second, and so on; equal in all keys, equal in score.

    >>> ranked(np.array([1, 5, 5, 1]), np.array([2.0, 7.0, 8.0, 2.0]))
    array([0., 1., 2., 0.])
    """
    order = np.lexsort(keys[::-1])
    steps = np.zeros(max(len(order) - 1, 0), np.bool_)
    for key in keys:
        steps |= key[order[1:]] != key[order[:-1]]
    score = np.empty(len(order))
    score[order] = np.append(0, np.cumsum(steps))[: len(order)]
    return score
