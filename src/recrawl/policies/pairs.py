"""A number for every pair of pages that has one: a hash table in arrays, so that kernels can read it."""

from __future__ import annotations

import numpy as np
from numba import njit

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.core.hashtable import EMPTY, STRIDE, grown, room_for, slot


class PairTable:
    """Values of unordered pairs of pages; those set more than `memory` cycles ago are forgotten.

    >>> table = PairTable()
    >>> table.set(np.array([3]), np.array([7]), np.array([0.5]))
    >>> table.get(7, 3), table.get(1, 2)
    (0.5, None)
    """

    def __init__(self, memory: int | None = None) -> None:
        self.memory = memory
        self.keys: Ints = np.full(1024, EMPTY, np.int64)
        self.value: Floats = np.zeros(1024)
        self.cycle = np.zeros(1024, np.int32)
        self.now = 0
        self.size = 0
        self.twin: Ints = np.empty(0, np.int64)  # a number that pages share which are known to be alike; 0: none
        self.twins_are = 0.0  # how much alike these are, at least

    def set(self, first: Ints, second: Ints, value: Floats) -> None:
        """Remember a value for each pair; the newest counts."""
        self.reserve(len(first))
        self.size += _set(self.keys, self.value, self.cycle, first, second, value, self.now)

    def get(self, first: int, second: int) -> float | None:
        """The value of a pair, None where there is none or it is forgotten."""
        at = int(find(self.keys, first, second))
        return float(self.value[at]) if at >= 0 and self.valid()[at] else None

    def valid(self) -> Flags:
        """Which slots hold a value that is not forgotten."""
        held: Flags = self.keys != EMPTY
        return held if self.memory is None else held & (self.now - self.cycle <= self.memory)

    def pairs(self) -> tuple[Ints, Ints, Ints]:
        """All pairs that are remembered, the smaller page first, and their slots."""
        at = np.flatnonzero(self.valid())
        return self.keys[at] // STRIDE, self.keys[at] % STRIDE, at

    def of(self, page: int) -> list[tuple[int, float]]:
        """The pages that have a value with this one, the greatest first."""
        first, second, at = self.pairs()
        mine = np.flatnonzero((first == page) | (second == page))
        others = [(int(first[i] + second[i] - page), float(self.value[at[i]])) for i in mine]
        return sorted(others, key=lambda pair: (-pair[1], pair[0]))

    def reserve(self, more: int) -> None:
        """Make room for a number of further pairs."""
        size = room_for(self.size + more, len(self.keys))
        if size > len(self.keys):
            self.keys, old, new = grown(self.keys, size)
            values, cycles = self.value[old], self.cycle[old]
            self.value, self.cycle = np.zeros(size), np.zeros(size, np.int32)
            self.value[new], self.cycle[new] = values, cycles


@njit(cache=True)
def _key(first, second):  # type: ignore[no-untyped-def]
    return min(first, second) * STRIDE + max(first, second)


@njit(cache=True)
def find(keys, first, second):  # type: ignore[no-untyped-def]
    """The slot of a pair, -1 where it has none."""
    key = _key(first, second)
    at = slot(keys, key)
    return at if keys[at] == key else -1


@njit(cache=True)
def _set(keys, values, cycles, first, second, value, now):  # type: ignore[no-untyped-def]
    added = 0
    for i in range(len(first)):
        key = _key(first[i], second[i])
        at = slot(keys, key)
        added += keys[at] == EMPTY
        keys[at], values[at], cycles[at] = key, value[i], now
    return added
