"""The links that were new on each page when it was last seen: at the next visit they show how long links stay."""

from __future__ import annotations

import numpy as np
from numba import njit

from recrawl.core.arrays import Flags, Floats, Ints, Ints32, LinkLists
from recrawl.core.growing import grown


class Cohorts:
    """One list of links per page, in one growing array.

    >>> cohorts = Cohorts(n_pages=3)
    >>> lists = LinkLists(np.array([0, 3]), np.array([4, 7, 9], np.int32))
    >>> cohorts.replace(np.array([1]), lists, gap=np.array([2.5]), keep=np.array([True]))
    >>> cohorts.stayed(np.array([1]), np.array([0]), LinkLists(np.array([0, 2]), np.array([7, 8], np.int32)))
    array([1])
    """

    def __init__(self, n_pages: int) -> None:
        self.start = np.zeros(n_pages, np.int64)
        self.size = np.zeros(n_pages, np.int64)
        self.gap = np.zeros(n_pages)  # clock hours in which they arrived
        self._links: Ints32 = np.zeros(1024, np.int32)
        self._end = 0

    def extend_to(self, n_pages: int) -> None:
        """More pages are known."""
        for name in ("start", "size", "gap"):
            setattr(self, name, grown(getattr(self, name), n_pages))

    def held(self, page: Ints) -> tuple[Ints32, Ints, Ints]:
        """All links, and where the lists of some pages begin and how long they are."""
        return self._links, self.start[page], self.size[page]

    def stayed(self, page: Ints, place: Ints, shown: LinkLists) -> Ints:
        """How many links of each page's list it still shows; `place` is its entry in `shown`."""
        n: Ints = _n_common(self._links, self.start[page], self.size[page], shown.start, shown.links, place)
        return n

    def replace(self, page: Ints, lists: LinkLists, gap: Floats, keep: Flags) -> None:
        """New lists for these pages; where `keep` is off, the page has none from now on."""
        sizes = np.where(keep, lists.sizes, 0)
        more = int(sizes.sum())
        if self._end + more > len(self._links):
            self._make_room(more)
        self.start[page] = self._end + np.append(0, np.cumsum(sizes))[:-1]
        self.size[page], self.gap[page] = sizes, gap
        self._links[self._end : self._end + more] = lists.links[np.repeat(keep, lists.sizes)]
        self._end += more

    def _make_room(self, more: int) -> None:
        """Leave out what no page needs any more."""
        start = np.append(0, np.cumsum(self.size))
        bigger: Ints32 = np.zeros(2 * (int(start[-1]) + more) + 1024, np.int32)
        _move(self._links, self.start, self.size, bigger, start)
        self._links, self.start, self._end = bigger, start[:-1].copy(), int(start[-1])


@njit(cache=True)
def _n_common(links, begin, size, start, shown, place):  # type: ignore[no-untyped-def]
    """Both lists are ascending."""
    n_common = np.zeros(len(begin), np.int64)
    for i in range(len(begin)):
        a, end_a = begin[i], begin[i] + size[i]
        b, end_b = start[place[i]], start[place[i] + 1]
        while a < end_a and b < end_b:
            if links[a] == shown[b]:
                n_common[i] += 1
                a += 1
                b += 1
            elif links[a] < shown[b]:
                a += 1
            else:
                b += 1
    return n_common


@njit(cache=True)
def _move(links, start, size, to, to_start):  # type: ignore[no-untyped-def]
    for p in range(len(start)):
        for i in range(size[p]):
            to[to_start[p] + i] = links[start[p] + i]
