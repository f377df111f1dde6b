"""The related pages of every page, and averages over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from recrawl.core.arrays import Floats32, Ints, Ints32


@dataclass(frozen=True)
class Related:
    """The most related pages of every page.

    >>> neighbour = np.array([[1, 2], [0, -1], [-1, -1]], np.int32)
    >>> related = Related(neighbour, np.array([[0.75, 0.25], [1, 0], [0, 0]], np.float32), "exact", 1.0)
    >>> related.average(np.array([10.0, 20.0, 40.0]))
    array([25., 10., nan], dtype=float32)

    References: Dang et al. (2022), section 5.2 (k = 30, weights proportional to cosine).
    """

    neighbour: Ints32  # [page, k] most similar first; -1 where a page has fewer
    weight: Floats32  # [page, k] every row sums to 1, or is all 0 for a page without related pages
    method: str  # "exact" or "approximate"
    recall: float  # share of the true k nearest pages that were found: 1.0 if exact, else measured on a sample
    place: Ints | None = (
        None  # where these are some of a collection's pages: their numbers among all, by which `neighbour` counts
    )

    def first(self, n: int) -> Related:
        """The same among the first pages only; weights are not scaled up for what is missing."""
        near = self.neighbour[:n]
        is_there = (near >= 0) & (near < n)
        # Kernels stop at the first that is missing: those that are left come first.
        order = np.argsort(~is_there, axis=1, kind="stable")
        near = np.take_along_axis(np.where(is_there, near, -1), order, axis=1)
        weight = np.take_along_axis(np.where(is_there, self.weight[:n], 0), order, axis=1)
        return Related(near.astype(np.int32), weight.astype(np.float32), self.method, self.recall)

    def average(self, values: NDArray[np.floating]) -> Floats32:
        """The weighted mean over related pages of values [page] or [page, column].

        Neighbours without a value (NaN) are left out and the others' weights scaled up; NaN where none has a value.
        """
        if values.ndim not in (1, 2) or len(values) != len(self.neighbour):
            raise ValueError(f"values has shape {values.shape}; give one row for each of {len(self.neighbour)} pages")
        table = np.ascontiguousarray(values if values.ndim == 2 else values[:, None])
        means = np.empty(table.shape, np.float32)
        _average(table, self.neighbour, self.weight, means)
        return means.reshape(values.shape)


def _average_py(values: Any, neighbour: Any, weight: Any, means: Any) -> None:
    n_columns = values.shape[1]
    for p in numba.prange(len(neighbour)):
        sums, weights = np.zeros(n_columns), np.zeros(n_columns)
        for i in range(neighbour.shape[1]):
            if neighbour[p, i] < 0:
                break
            # Unsigned: an index that may count from the end keeps the loop below from being vectorised.
            row, share = values[np.uint32(neighbour[p, i])], np.float64(weight[p, i])
            for c in range(n_columns):
                value = np.float64(row[c])
                is_known = value == value
                sums[c] += share * value if is_known else 0.0
                weights[c] += share if is_known else 0.0
        for c in range(n_columns):
            means[p, c] = sums[c] / weights[c] if weights[c] > 0 else np.nan


_average = numba.njit(cache=True, nogil=True, parallel=True)(_average_py)
