"""The pages that say much the same: the k most related ones by cosine, and averages over them.

All pages are compared with all pages, which is a product of matrices. Up to some ten thousand distinct texts it is done in
full. Beyond, the texts are put into cells of similar ones, and each is compared only with those in the cells nearest to it:
as many cells as it takes to find the wanted share of the true neighbours, which is measured on a sample (`recrawl.nearest`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from recrawl.nearest import (
    Nearest,
    Numbers,
    Progress,
    among_all,
    approximate,
    cells_needed,
    identical,
    make_cells,
    unheard,
)

Floats = NDArray[np.float32]

EXACT_UP_TO = 20_000  #: distinct texts; two cores need a few seconds for so many
METHODS = ("auto", "exact", "approximate")
_HALF = 0.5  # of the texts: looking through more is no faster than looking through all


@dataclass(frozen=True)
class Related:
    """The most related pages of every page.

    >>> found = related_pages(np.array([[3, 0], [1, 1], [0, 0], [9, 0]], np.float32), k=2)
    >>> found.neighbour
    array([[ 3, 1], [ 0, 3], [-1, -1], [ 0, 1]], dtype=int32)
    >>> found.average(np.array([10, 20, 30, 40.0]))
    array([31.715..., 25. , nan, 14.142...], dtype=float32)

    References: LBLA section 5.2 (k = 30, weights proportional to cosine).
    """

    neighbour: Numbers  # [page, k] most similar first; -1 where a page has fewer
    weight: Floats  # [page, k] every row sums to 1, or is all 0 for a page without related pages
    method: str  # "exact" or "approximate"
    recall: float  # share of the true k nearest that were found: 1.0 if exact, else measured on a sample

    def average(self, values: NDArray[np.floating]) -> Floats:
        """The weighted mean over related pages of values [page] or [page, column].

        Neighbours without a value (NaN) are left out and the others' weights scaled up; NaN where none has a value.
        """
        if values.ndim not in (1, 2) or len(values) != len(self.neighbour):
            raise ValueError(f"values has shape {values.shape}; give one row for each of {len(self.neighbour)} pages")
        table = np.ascontiguousarray(values if values.ndim == 2 else values[:, None])
        means = np.empty(table.shape, np.float32)
        _average(table, self.neighbour, self.weight, means)
        return means.reshape(values.shape)


def related_pages(
    vectors: NDArray[np.float32],
    k: int = 30,
    method: str = "auto",
    *,
    exact_up_to: int = EXACT_UP_TO,
    min_recall: float = 0.99,
    seed: int = 0,
    on_progress: Progress = unheard,
) -> Related:
    """The `k` pages with the highest cosine for every row of `vectors`, only those above 0, and never the page itself.

    Rows need not be of unit length. A row of zeros, or one with a NaN, is a page without text: it has no related pages and
    is nobody's. Pages with identical vectors are each other's first neighbours, in the order of their numbers. "auto" is
    exact up to `exact_up_to` distinct texts, and beyond if a search for `min_recall` would have to look at most of them.
    """
    if method not in METHODS:
        raise ValueError(f"No method named {method!r} to find related pages. Known: {', '.join(METHODS)}")
    if vectors.ndim != 2 or k < 1:
        raise ValueError(f"vectors has shape {vectors.shape} and k is {k}; give [page, dimension] and k of at least 1")
    page, unit = _unit_rows(vectors)
    same = identical(unit)
    texts = unit if len(same.first) == len(unit) else unit[same.first]
    if method != "exact" and len(texts) > (exact_up_to if method == "auto" else 1):
        cells = make_cells(texts, seed)
        n_cells, share = cells_needed(cells, texts, k, min_recall, seed)
        if method == "approximate" or share < _HALF:
            found, recall = approximate(cells, n_cells, same, unit, k, min_recall, seed, on_progress)
            return _as_related(found, page, len(vectors), "approximate", recall)
    found = same.expand(among_all(np.arange(len(texts), dtype=np.int32), texts, k, on_progress))
    return _as_related(found, page, len(vectors), "exact", 1.0)


def _unit_rows(vectors: NDArray[np.float32]) -> tuple[Numbers, Floats]:
    """The pages that have a text, and their vectors scaled to length 1."""
    largest = np.abs(vectors).max(axis=1, initial=0)
    page = np.flatnonzero(np.isfinite(largest) & (largest > 0)).astype(np.int32)
    # Divided by the largest entry first: the squares of very large or small entries are not float32 numbers.
    unit = (vectors[page] / largest[page, None]).astype(np.float32)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    return page, unit


def _as_related(found: Nearest, page: Numbers, n_pages: int, method: str, recall: float) -> Related:
    """Numbers of pages again, those without text included, and weights for cosines."""
    related = Nearest.none(n_pages, found.number.shape[1])
    # Number -1 (no neighbour) takes the last entry.
    related.number[page] = np.r_[page, np.int32(-1)][found.number]
    total = found.cosine.sum(axis=1, keepdims=True, dtype=np.float64)
    related.cosine[page] = found.cosine / np.where(total > 0, total, 1)
    return Related(related.number, related.cosine, method, recall)


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
