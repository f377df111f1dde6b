"""The loops behind `recrawl.world`: links numbered by hash tables, lists put in order, first sightings found."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
PART = 1 << 15  #: links of a part, about: its hash table fits the cache


def numbered(set_start: Ints, set_links: Ints, used: Ints) -> tuple[Ints, NDArray[np.int32], Ints]:
    """The used lists with small ascending numbers for links, and what those stand for, in the order of first sight.

    One hash table for all links would miss the cache at every look. So links are parted by their hash, each part small enough for
    a table in the cache, and all cores share the parts.
    """
    start: Ints = np.append(0, np.cumsum(np.diff(set_start)[used]))
    lists = (set_start, set_links, used, start)
    n, cores = int(start[-1]), os.cpu_count() or 1
    n_parts = 1 << (n // PART).bit_length()
    bounds = np.searchsorted(start, np.linspace(0, n, cores + 1).astype(np.int64))
    ranges = list(pairwise([0, *bounds[1:-1].tolist(), len(used)]))
    parts = list(pairwise(np.linspace(0, n_parts, cores + 1).astype(np.int64).tolist()))
    link, place = np.empty(n, np.int64), np.empty(n, np.int32 if n < 2**31 else np.int64)
    with ThreadPoolExecutor(cores) as threads:

        def shared(work: Callable[..., Any], *among: Iterable[Any]) -> list[Any]:
            return list(threads.map(work, *among))

        sizes = np.array(shared(partial(_part_sizes, lists, n_parts), ranges))
        # By part, then by range: within a part links stand in the order in which they are seen.
        begin = np.append(0, np.cumsum(sizes.T))
        shared(partial(_part, lists, link, place), ranges, begin[:-1].reshape(n_parts, cores).T.copy())
        first = np.empty_like(place)
        shared(partial(_first_places, begin[::cores], link, place, first), parts)
        del link, place
        stands_for = _number(lists, first)
        small = first.astype(np.int32, copy=False)
        shared(partial(_sort, start, small), ranges)
    return start, small, stands_for


@njit(cache=True, nogil=True)
def _hash(link):  # type: ignore[no-untyped-def]
    return np.uint64(link) * np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def _part_sizes(lists, n_parts, of):  # type: ignore[no-untyped-def]
    set_start, set_links, used, _ = lists
    sizes = np.zeros(n_parts, np.int64)
    for i in range(of[0], of[1]):
        for j in range(set_start[used[i]], set_start[used[i] + 1]):
            sizes[(_hash(set_links[j]) >> np.uint64(32)) & np.uint64(n_parts - 1)] += 1
    return sizes


@njit(cache=True, nogil=True)
def _part(lists, link, place, of, free):  # type: ignore[no-untyped-def]
    """Put every link of some lists, and where it stands, into its part."""
    set_start, set_links, used, start = lists
    mask = np.uint64(len(free) - 1)
    for i in range(of[0], of[1]):
        for j in range(start[i + 1] - start[i]):
            this = set_links[set_start[used[i]] + j]
            part = (_hash(this) >> np.uint64(32)) & mask
            link[free[part]], place[free[part]] = this, start[i] + j
            free[part] += 1


@njit(cache=True, nogil=True)
def _first_places(begin, link, place, first, of):  # type: ignore[no-untyped-def]
    """For every place of some parts, the first one that holds the same link."""
    for part in range(of[0], of[1]):
        size = 16
        while size < 2 * (begin[part + 1] - begin[part]):
            size *= 2
        mask, key, of_key = np.uint64(size - 1), np.empty(size, np.int64), np.full(size, -1, np.int64)
        for i in range(begin[part], begin[part + 1]):
            at = (_hash(link[i]) >> np.uint64(8)) & mask
            while of_key[at] >= 0 and key[at] != link[i]:
                at = (at + np.uint64(1)) & mask
            if of_key[at] < 0:
                key[at], of_key[at] = link[i], place[i]
            first[place[i]] = of_key[at]


@njit(cache=True, nogil=True)  # URLs are looked up meanwhile
def _number(lists, first):  # type: ignore[no-untyped-def]
    """Small numbers instead of the first places, and what they stand for."""
    set_start, set_links, used, start = lists
    n = 0
    for i in range(len(first)):
        n += first[i] == i
    link = np.empty(n, np.int64)
    n = 0
    for i in range(len(used)):
        for j in range(start[i], start[i + 1]):
            if first[j] == j:
                link[n] = set_links[set_start[used[i]] + j - start[i]]
                first[j] = n
                n += 1
            else:
                first[j] = first[first[j]]
    return link


@njit(cache=True, nogil=True)
def _sort(start, small, of):  # type: ignore[no-untyped-def]
    for i in range(of[0], of[1]):
        small[start[i] : start[i + 1]].sort()


@njit(cache=True)
def first_cycles(start, links, first_of_set, n_links):  # type: ignore[no-untyped-def]
    """The smallest cycle of all lists that hold a link."""
    first = np.full(n_links, np.iinfo(np.int32).max, np.int32)
    for i in range(len(start) - 1):
        for j in range(start[i], start[i + 1]):
            if first_of_set[i] < first[links[j]]:
                first[links[j]] = first_of_set[i]
    return first


@njit(cache=True, nogil=True)
def other_servers(text, start):  # type: ignore[no-untyped-def]
    """Whether each URL differs from the one before up to its third slash."""
    other = np.ones(len(start) - 1, np.bool_)
    for i in range(1, len(other)):
        a, b, n_slashes = start[i - 1], start[i], 0
        while n_slashes < 3 and a < start[i] and b < start[i + 1] and text[a] == text[b]:
            n_slashes += text[b] == 47  # "/"
            a += 1
            b += 1
        other[i] = n_slashes < 3
    return other
