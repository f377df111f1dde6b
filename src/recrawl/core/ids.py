"""Where some ids are among others: ids are 64-bit integers in no order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numba import njit

from recrawl.core.arrays import Ints
from recrawl.core.hashtable import new_index, slot
from recrawl.core.workers import cores, even_ranges, in_threads

T = TypeVar("T")
BITS_PER_ID = 16  #: of the filter that rules out nearly all other ids at once
MANY = 1_000_000  #: ids that all cores share the work on
FEW = 8  #: times fewer ids than those that they are among are looked for one by one


def places_of(ids: Ints, wanted: Ints) -> Ints:
    """The place of each wanted id among some ids, in any order and none twice; -1 where it is not among them.

    >>> places_of(np.array([7, 3, 5]), np.array([5, 4, 7]))
    array([ 2, -1, 0])
    """
    if not len(ids):
        return np.full(len(wanted), -1, np.int64)
    if FEW * len(wanted) < len(ids):  # then all ids need not be sorted
        few, which = np.unique(wanted, return_inverse=True)
        return IdFilter(few).places_in(ids)[which]
    order = np.argsort(ids)
    at = np.minimum(np.searchsorted(ids[order], wanted), len(ids) - 1)
    return np.where(ids[order][at] == wanted, order[at], -1)


class IdFilter:
    """Picks a few ids out of many; its own ids differ from each other.

    >>> [part.tolist() for part in IdFilter(np.array([3, 8])).among(np.array([9, 8, 7, 3]))]
    [[1, 3], [1, 0]]
    """

    def __init__(self, ids: Ints) -> None:
        self.ids = ids
        self._maybe = np.zeros(max(1 << (BITS_PER_ID * len(ids)).bit_length(), 64) // 64, np.uint64)
        self._index = new_index(len(ids))
        _mark(ids, self._maybe, self._index)

    def among(self, ids: Ints) -> tuple[Ints, Ints]:
        """The positions of its ids among these, ascending, and which of its ids they are."""
        at, which = zip(*self._in_ranges(_found, ids), strict=True)
        return np.concatenate(at), np.concatenate(which)

    def places_in(self, ids: Ints) -> Ints:
        """The position of each of its ids among these, none of which is there twice; -1 where it is not."""
        place = np.full(len(self.ids), -1, np.int64)
        self._in_ranges(_find, ids, place)
        return place

    def _in_ranges(self, work: Callable[..., T], ids: Ints, *more: Ints) -> list[T]:
        """What the work makes of some of the ids and of the others; the cores share many of them."""

        def work_on(low: int, high: int) -> T:
            return work(ids, low, high, self._maybe, self.ids, self._index, *more)

        return in_threads(work_on, even_ranges(len(ids), cores() if len(ids) > MANY else 1))


@njit(cache=True, nogil=True)
def _place(one, maybe):  # type: ignore[no-untyped-def]
    """The bit of an id: its word, and its place therein; the number of words is a power of two."""
    bit = np.uint64(one) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)
    return (bit >> np.uint64(6)) & np.uint64(len(maybe) - 1), bit & np.uint64(63)


@njit(cache=True, nogil=True)
def _mark(ids, maybe, index):  # type: ignore[no-untyped-def]
    for i in range(len(ids)):
        word, bit = _place(ids[i], maybe)
        maybe[word] |= np.uint64(1) << bit
        index[slot(ids, ids[i], index)] = i


@njit(cache=True, nogil=True)
def _found(ids, low, high, maybe, wanted, index):  # type: ignore[no-untyped-def]
    """The positions of wanted ids within a range, and which they are: in one pass, without arrays as long as the range."""
    at, which, n = np.empty(1024, np.int64), np.empty(1024, np.int64), 0
    for i in range(low, high):
        word, bit = _place(ids[i], maybe)
        if maybe[word] >> bit & np.uint64(1):
            place = index[slot(wanted, ids[i], index)]
            if place >= 0:
                if n == len(at):
                    at, which = np.append(at, np.empty(n, np.int64)), np.append(which, np.empty(n, np.int64))
                at[n], which[n] = i, place
                n += 1
    return at[:n], which[:n]


@njit(cache=True, nogil=True)
def _find(ids, low, high, maybe, wanted, index, places):  # type: ignore[no-untyped-def]
    """Note the positions of wanted ids within a range."""
    for i in range(low, high):
        word, bit = _place(ids[i], maybe)
        if maybe[word] >> bit & np.uint64(1):
            place = index[slot(wanted, ids[i], index)]
            if place >= 0:
                places[place] = i
