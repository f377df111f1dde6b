"""Pages with similar text: the k most related ones by cosine, and averages over them.

All pages are compared with all pages, which is a product of matrices. Up to some ten thousand distinct texts this is done in
full. Beyond, the texts are put into cells of similar ones, and each is compared only with those in the cells nearest to it:
as many cells as it takes to find the wanted share of the true neighbours, which is measured on a sample (see `nearest`).
"""

from __future__ import annotations

import numpy as np

from recrawl.core.arrays import Floats32, Ints32
from recrawl.core.suggest import unknown
from recrawl.insight.choices import NEIGHBOUR_SEARCHES
from recrawl.insight.nearest import (
    Nearest,
    Progress,
    among_all,
    approximate,
    cells_needed,
    identical,
    ignore,
    make_cells,
)
from recrawl.world.related import Related

__all__ = ["EXACT_UP_TO", "related_pages"]

EXACT_UP_TO = 20_000  #: distinct texts; two cores need a few seconds for this many
_HALF = 0.5  # of the texts: searching more is no faster than searching all


def related_pages(
    vectors: Floats32,
    k: int = 30,
    method: str = "auto",
    *,
    exact_up_to: int = EXACT_UP_TO,
    min_recall: float = 0.99,
    seed: int = 0,
    on_progress: Progress = ignore,
) -> Related:
    """The `k` pages with the highest cosine for every row of `vectors`, only those above 0, and never the page itself.

    Rows need not be of unit length. A row of zeros, or one with a NaN, is a page without text: it has no related pages and
    is related to none. Pages with identical vectors are each other's first neighbours, in the order of their numbers. "auto" is
    exact up to `exact_up_to` distinct texts, and beyond if a search for `min_recall` would have to compare most of them.

    >>> related = related_pages(np.array([[3, 0], [1, 1], [0, 0], [9, 0]], np.float32), k=2)
    >>> related.neighbour
    array([[ 3, 1], [ 0, 3], [-1, -1], [ 0, 1]], dtype=int32)
    >>> related.average(np.array([10, 20, 30, 40.0]))
    array([31.715..., 25. , nan, 14.142...], dtype=float32)
    """
    if method not in NEIGHBOUR_SEARCHES:
        raise ValueError(unknown("method to find related pages", method, NEIGHBOUR_SEARCHES))
    if vectors.ndim != 2 or k < 1:
        raise ValueError(f"vectors has shape {vectors.shape} and k is {k}; give [page, dimension] and k of at least 1")
    page, unit = _unit_rows(vectors)
    same = identical(unit)
    texts = unit if len(same.first) == len(unit) else unit[same.first]
    if method != "exact" and len(texts) > (exact_up_to if method == "auto" else 1):
        cells = make_cells(texts, seed)
        n_cells, share = cells_needed(cells, texts, k, min_recall, seed)
        if method == "approximate" or share < _HALF:
            nearest, recall = approximate(
                cells, n_cells, same, unit, k=k, min_recall=min_recall, seed=seed, on_progress=on_progress
            )
            return _as_related(nearest, page, len(vectors), "approximate", recall)
    nearest = same.expand(among_all(np.arange(len(texts), dtype=np.int32), texts, k, on_progress))
    return _as_related(nearest, page, len(vectors), "exact", 1.0)


def _unit_rows(vectors: Floats32) -> tuple[Ints32, Floats32]:
    """The pages with a text, and their vectors scaled to length 1."""
    largest = np.abs(vectors).max(axis=1, initial=0)
    page = np.flatnonzero(np.isfinite(largest) & (largest > 0)).astype(np.int32)
    # Divided by the largest entry first: the squares of very large or small entries are not float32 numbers.
    unit = (vectors[page] / largest[page, None]).astype(np.float32)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    return page, unit


def _as_related(nearest: Nearest, page: Ints32, n_pages: int, method: str, recall: float) -> Related:
    """Back to the numbers of all pages, those without text included; cosines become weights."""
    related = Nearest.none(n_pages, nearest.number.shape[1])
    # Number -1 (no neighbour) takes the last entry.
    related.number[page] = np.r_[page, np.int32(-1)][nearest.number]
    total = nearest.cosine.sum(axis=1, keepdims=True, dtype=np.float64)
    related.cosine[page] = nearest.cosine / np.where(total > 0, total, 1)
    return Related(related.number, related.cosine, method, recall)
