"""One open-addressing hash table in arrays, so that numba kernels can read and fill it.

A table's length is a power of two, and at most half of it is in use. It has one of two layouts; both share one probe loop, `slot`:

- keys: the table holds the keys themselves, any integers but -1; values are in arrays beside it, by slot. It can grow (`grown`).
- index: the table holds positions in a list of keys, which may be any 64-bit integers. Positions before `first` count as free, so
  that a table can be used again for the next part of a list without being cleared.

>>> keys = new_keys(3)
>>> at = insert(keys, np.array([10, 20, 30]))
>>> value = np.zeros(len(keys))
>>> value[at] = [1.0, 2.0, 3.0]
>>> value[slots(keys, np.array([30, 10]))]
array([3., 1.])
"""

from __future__ import annotations

import numpy as np
from numba import njit

from recrawl.core.arrays import Ints, Ints32

EMPTY = -1  #: a slot without a key
#: Two numbers below it are one key: first · STRIDE + second. A prime, so that the low bits of the key depend on both.
STRIDE = 4_294_967_291
_unsigned = np.uint64
_MIX = _unsigned(0x9E3779B97F4A7C15)  # odd, near 2^64 / φ: neighbouring keys are spread over the table


@njit(cache=True, nogil=True)
def slot(keys, key, index=None, first=0):  # type: ignore[no-untyped-def]
    """Where a key is, or the free slot where it belongs: in `keys`, or in an `index` of them.

    >>> names = np.array([-5, 7])
    >>> index = new_index(2)
    >>> index[slot(names, names[0], index)] = 0
    >>> index[slot(names, -5, index)], index[slot(names, 7, index)], index[slot(names, -5, index, first=1)] < 1
    (np.int32(0), np.int32(-1), np.True_)
    """
    # Unsigned, or every access would be checked for a position counted from the end.
    mask = _unsigned((len(keys) if index is None else len(index)) - 1)
    at = (_unsigned(key) * _MIX >> _unsigned(20)) & mask
    while True:
        if index is None:  # decided when a kernel is compiled, not in the loop
            if keys[at] == EMPTY or keys[at] == key:
                return np.int64(at)
        elif index[at] < first or keys[_unsigned(index[at])] == key:
            return np.int64(at)
        at = (at + _unsigned(1)) & mask


@njit(cache=True, nogil=True)
def room_for(n, least=16):  # type: ignore[no-untyped-def]
    """The length of a table for `n` keys: a power of two, at least twice as many.

    >>> room_for(8), room_for(9)
    (16, 32)
    """
    size = least
    while size < 2 * n:
        size *= 2
    return size


@njit(cache=True, nogil=True)
def new_keys(n):  # type: ignore[no-untyped-def]
    """A table without keys, with room for `n`."""
    return np.full(room_for(n), EMPTY, np.int64)


@njit(cache=True, nogil=True)
def numbers_of(values):  # type: ignore[no-untyped-def]
    """A small number for each value, equal ones for equal values, in the order in which they are first seen.

    >>> numbers_of(np.array([7, 5, 7, 9])).tolist()
    [0, 1, 0, 2]
    """
    index, number, n = np.full(room_for(len(values)), -1, np.int64), np.empty(len(values), np.int64), 0
    for i in range(len(values)):
        at = slot(values, values[i], index)
        if index[at] < 0:
            index[at], number[i] = i, n
            n += 1
        else:
            number[i] = number[index[at]]
    return number


def new_index(n: int) -> Ints | Ints32:
    """An index without positions, with room for those of `n` keys."""
    return np.full(room_for(n), EMPTY, np.int32 if n < 2**31 else np.int64)


@njit(cache=True, nogil=True)
def slots(keys, wanted):  # type: ignore[no-untyped-def]
    """The `slot` of each wanted key."""
    at = np.empty(len(wanted), np.int64)
    for i in range(len(wanted)):
        at[i] = slot(keys, wanted[i])
    return at


@njit(cache=True, nogil=True)
def insert(keys, wanted):  # type: ignore[no-untyped-def]
    """Put keys into a table that has room for them; where they are now."""
    at = np.empty(len(wanted), np.int64)
    for i in range(len(wanted)):
        at[i] = slot(keys, wanted[i])
        keys[at[i]] = wanted[i]
    return at


def grown(keys: Ints, size: int) -> tuple[Ints, Ints, Ints]:
    """A larger table with the same keys; the slots that were in use, and where each of them is now.

    >>> keys = new_keys(2)
    >>> before = insert(keys, np.array([7, 5]))
    >>> bigger, old, new = grown(keys, 64)
    >>> len(bigger), sorted(bigger[new].tolist()), bool((bigger[new] == keys[old]).all())
    (64, [5, 7], True)
    """
    # Allocated by numpy, which asks for large memory pages: a table made in a kernel takes several times as long to fill.
    bigger = np.full(size, EMPTY, np.int64)
    old = np.flatnonzero(keys != EMPTY)
    return bigger, old, insert(bigger, keys[old])


class HashSet:
    """A growing set of 64-bit integers; -1 is never in it, and counts as new every time.

    >>> seen = HashSet()
    >>> seen.add(np.array([5, 7, 5]))
    array([0, 1])
    >>> seen.add(np.array([7, 8])), len(seen)
    (array([1]), 3)
    """

    keys: Ints
    size: int

    def __init__(self) -> None:
        self.clear()

    def __len__(self) -> int:
        return self.size

    def clear(self) -> None:
        """Forget all keys."""
        self.keys, self.size = np.full(1 << 12, EMPTY, np.int64), 0

    def reserve(self, more: int) -> None:
        """Make room for `more` keys; a caller that fills `keys` in its own kernel adds their number to `size`."""
        size = room_for(self.size + more, len(self.keys))
        if size > len(self.keys):
            bigger = np.full(size, EMPTY, np.int64)
            _copy(self.keys, bigger)
            self.keys = bigger

    def add(self, keys: Ints) -> Ints:
        """Add keys; the positions of those that are new, each once."""
        self.reserve(len(keys))
        new: Ints = _add(self.keys, keys)
        self.size += len(new)
        return new


@njit(cache=True, nogil=True)
def _copy(keys, bigger):  # type: ignore[no-untyped-def]
    for key in keys:
        if key != EMPTY:
            bigger[slot(bigger, key)] = key


@njit(cache=True, nogil=True)
def _add(table, keys):  # type: ignore[no-untyped-def]
    new = np.empty(len(keys), np.int64)
    n = 0
    for i in range(len(keys)):
        at = slot(table, keys[i])
        if table[at] == EMPTY:
            table[at] = keys[i]
            new[n] = i
            n += 1
    return new[:n]
