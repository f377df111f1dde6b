"""URLs looked up by id in a table of many more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numba import njit

from recrawl.core.arrays import Ints
from recrawl.core.workers import cores, even_ranges, in_threads
from recrawl.history.keys import distinct
from recrawl.history.row_groups import RowGroup, side_by_side

BITS_PER_ID = 16  #: of the filter that rules out nearly all other ids at once
MANY = 1_000_000  #: ids that all cores share the work on


def look_up(ids: Ints, groups: Sequence[RowGroup]) -> pa.Array:
    """The URL of each id, null where it is not known.

    Ids are read first, then URLs only of row groups that hold any of them, and only the URLs of these ids are kept.
    """
    wanted = IdFilter(distinct(ids))
    position = np.full(len(wanted.ids), -1, np.int64)  # of each id among the URLs read
    urls, n = [pa.array([], pa.large_string())], 0
    for which, read in side_by_side(lambda group: _urls(wanted, group), groups):
        position[which] = n + np.arange(len(which))
        n += len(which)
        urls.append(read)
    place = position[np.searchsorted(wanted.ids, ids)]
    return pa.concat_arrays(urls).take(pa.array(place, mask=place < 0))


class IdFilter:
    """Picks a few ids out of many.

    >>> [part.tolist() for part in IdFilter(np.array([3, 8])).among(np.array([9, 8, 7, 3]))]
    [[3, 1], [0, 1]]
    """

    def __init__(self, ascending: Ints) -> None:
        self.ids = ascending
        self._maybe = np.zeros(max(1 << (BITS_PER_ID * len(ascending)).bit_length(), 64) // 64, np.uint64)
        _mark(ascending, self._maybe)

    def among(self, ids: Ints) -> tuple[Ints, Ints]:
        """The positions of its ids among these, and which of its ids they are."""
        if not len(self.ids):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        n_ranges = cores() if len(ids) > MANY else 1
        parts = in_threads(lambda low, high: low + _marked(ids[low:high], self._maybe), even_ranges(len(ids), n_ranges))
        at = np.concatenate(parts)
        at = at[np.argsort(ids[at])]  # in random order every step of every search would miss the cache
        which = np.minimum(np.searchsorted(self.ids, ids[at]), len(self.ids) - 1)
        is_it = self.ids[which] == ids[at]
        return at[is_it], which[is_it]


@njit(cache=True, nogil=True)
def _place(one, maybe):  # type: ignore[no-untyped-def]
    """The bit of an id: its word, and its place therein; the number of words is a power of two."""
    bit = np.uint64(one) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)
    return (bit >> np.uint64(6)) & np.uint64(len(maybe) - 1), bit & np.uint64(63)


@njit(cache=True, nogil=True)
def _mark(ids, maybe):  # type: ignore[no-untyped-def]
    for one in ids:
        word, bit = _place(one, maybe)
        maybe[word] |= np.uint64(1) << bit


@njit(cache=True, nogil=True)
def _marked(ids, maybe):  # type: ignore[no-untyped-def]
    """The positions of ids that may be among those marked: in one pass, without arrays as long as `ids`."""
    at, n = np.empty(1024, np.int64), 0
    for i in range(len(ids)):
        word, bit = _place(ids[i], maybe)
        if maybe[word] >> bit & np.uint64(1):
            if n == len(at):
                longer = np.empty(2 * n, np.int64)
                longer[:n] = at
                at = longer
            at[n] = i
            n += 1
    return at[:n]


def _urls(wanted: IdFilter, group: RowGroup) -> tuple[Ints, pa.Array]:
    """Which of the ids a row group holds, and their URLs."""
    nothing = np.empty(0, np.int64), pa.array([], pa.large_string())
    span = group.span("id")
    if span and np.searchsorted(wanted.ids, span[0]) == np.searchsorted(wanted.ids, span[1], "right"):
        return nothing
    rows, which = wanted.among(group.read(["id"])["id"].to_numpy())
    if not len(rows):
        return nothing
    return which, group.read(["url"])["url"].take(pa.array(rows)).combine_chunks().cast(pa.large_string())
