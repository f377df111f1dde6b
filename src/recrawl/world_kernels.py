"""The loops behind `recrawl.world`: links numbered by a hash table, lists put in order, first sightings found."""

from __future__ import annotations

import numpy as np
from numba import njit

from recrawl.policies.pairs import slot


@njit(cache=True, nogil=True)  # URLs are looked up meanwhile
def numbered(set_start, set_links, used):  # type: ignore[no-untyped-def]
    """The used lists with small ascending numbers for links, and what those stand for, in the order of first sight."""
    start = np.zeros(len(used) + 1, np.int64)
    for i in range(len(used)):
        start[i + 1] = start[i] + set_start[used[i] + 1] - set_start[used[i]]
    small = np.empty(start[-1], np.int32)
    size = 1024
    keys, number = np.full(size, -1, np.int64), np.zeros(size, np.int32)
    link = np.empty(1024, np.int64)
    n, minus_one = 0, np.int32(-1)  # -1 marks a free slot, so the link with that id is kept apart
    for i in range(len(used)):
        for j in range(start[i + 1] - start[i]):
            this = set_links[set_start[used[i]] + j]
            at = slot(keys, this) if this != -1 else -1
            known = minus_one >= 0 if this == -1 else keys[at] == this
            if known:
                small[start[i] + j] = minus_one if this == -1 else number[at]
                continue
            if n == len(link):
                link = np.concatenate((link, np.empty(n, np.int64)))
            link[n] = this
            small[start[i] + j] = n
            if this == -1:
                minus_one = np.int32(n)
            else:
                keys[at], number[at] = this, n
            n += 1
            if 2 * n > size:
                size *= 2
                keys, number = np.full(size, -1, np.int64), np.zeros(size, np.int32)
                for k in range(n):
                    if link[k] != -1:
                        at = slot(keys, link[k])
                        keys[at], number[at] = link[k], k
        small[start[i] : start[i + 1]].sort()
    return start, small, link[:n].copy()


@njit(cache=True)
def first_cycles(start, links, first_of_set, n_links):  # type: ignore[no-untyped-def]
    """The smallest cycle of all lists that hold a link."""
    first = np.full(n_links, np.iinfo(np.int32).max, np.int32)
    for i in range(len(start) - 1):
        for j in range(start[i], start[i + 1]):
            if first_of_set[i] < first[links[j]]:
                first[links[j]] = first_of_set[i]
    return first
