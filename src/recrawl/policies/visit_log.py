"""Notes of visits in order of time, the oldest forgotten first, with quick access to those of a few pages."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import DTypeLike, NDArray

from recrawl.core.arrays import Ints
from recrawl.core.growing import grown


class VisitLog:
    """Columns of equal length, one row per visit; they grow at one end and are dropped at the other.

    >>> log = VisitLog(n_pages=5, days=np.float64)
    >>> log.add(np.array([1, 3]), days=np.array([0.5, 2.0]))
    >>> log.add(np.array([3]), days=np.array([1.0]))
    >>> start, row = log.of(np.array([3, 4]))
    >>> start, log["days"][row]
    (array([0, 2, 2]), array([2., 1.]))
    """

    def __init__(self, n_pages: int, **columns: DTypeLike) -> None:
        self._begin, self._end = 0, 0
        self._columns: dict[str, NDArray[Any]] = {
            name: np.empty(1024, dtype) for name, dtype in {"page": np.int64, **columns}.items()
        }
        self._place = np.full(n_pages, -1, np.int64)

    def extend_to(self, n_pages: int) -> None:
        """More pages are known."""
        self._place = grown(self._place, n_pages, -1)

    def __len__(self) -> int:
        return self._end - self._begin

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self._columns[column][self._begin : self._end]

    def add(self, page: Ints, **values: NDArray[Any]) -> None:
        """Note visits, later than all others."""
        if self._end + len(page) > len(self._columns["page"]):
            self._make_room(len(page))
        for name, column in {"page": page, **values}.items():
            self._columns[name][self._end : self._end + len(page)] = column
        self._end += len(page)

    def _make_room(self, more: int) -> None:
        """Twice the rows that are in use: what was dropped is not copied."""
        for name in self._columns:
            kept = self[name]
            bigger = np.empty(2 * (len(kept) + more), kept.dtype)
            bigger[: len(kept)] = kept
            self._columns[name] = bigger
        self._begin, self._end = 0, len(self)

    def drop(self, n: int) -> Ints:
        """Forget the oldest visits; the pages they were of."""
        page: Ints = self["page"][:n].copy()
        self._begin += n
        return page

    def of(self, page: Ints) -> tuple[Ints, Ints]:
        """The rows of these pages in the order of time: page i has ``row[start[i]:start[i + 1]]``."""
        self._place[page] = np.arange(len(page))
        start, row = _grouped(self["page"], self._place, len(page))
        self._place[page] = -1
        return start, row


@njit(cache=True)
def _grouped(page, place, n_places):  # type: ignore[no-untyped-def]
    start = np.zeros(n_places + 1, np.int64)
    for p in page:
        if place[p] >= 0:
            start[place[p] + 1] += 1
    start = np.cumsum(start)
    at = start[:-1].copy()
    row = np.empty(start[-1], np.int64)
    for i in range(len(page)):
        to = place[page[i]]
        if to >= 0:
            row[at[to]] = i
            at[to] += 1
    return start, row
