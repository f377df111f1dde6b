"""Types of arrays, and lists of different lengths kept in one array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Ints8 = NDArray[np.int8]
Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Flags = NDArray[np.bool_]
Times = NDArray[np.datetime64]


@dataclass(frozen=True)
class LinkLists:
    """One list of links per visit: list i is ``links[start[i]:start[i + 1]]``, ascending numbers.

    >>> lists = LinkLists(np.array([0, 2, 3]), np.array([4, 9, 1], np.int32))
    >>> lists.sizes, lists[0]
    (array([2, 1]), array([4, 9], dtype=int32))
    """

    start: Ints
    links: Ints32

    @property
    def sizes(self) -> Ints:
        """The length of each list."""
        return np.diff(self.start)

    def __getitem__(self, i: int) -> Ints32:
        return self.links[self.start[i] : self.start[i + 1]]

    def led_to(self, page_of: Ints32, n_pages: int) -> LinkLists:
        """The lists with the number of the page behind each link (`page_of`); without links to others than the first `n_pages`.

        >>> LinkLists(np.array([0, 2, 3]), np.array([0, 1, 2], np.int32)).led_to(np.array([5, -1, 0], np.int32), 6).links
        array([5, 0], dtype=int32)
        """
        page = page_of[self.links]
        is_known = (page >= 0) & (page < n_pages)
        start = np.append(0, np.cumsum(is_known))[self.start]
        of_list = np.repeat(np.arange(len(start) - 1), np.diff(start))
        links = page[is_known]
        return LinkLists(start, links[np.lexsort((links, of_list))])
