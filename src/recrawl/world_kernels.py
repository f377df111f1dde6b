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
_SPELLING = np.uint64(0xCBF29CE484222325)  # the hash of no letters (FNV-1a)


def numbered(
    set_start: Ints, set_links: Ints, n_internal: Ints, used: Ints, before: Ints
) -> tuple[Ints, NDArray[np.int32], Ints]:
    """The used lists with small ascending numbers for links, and what those stand for, in the order of first sight.

    `before`: for each list an earlier one, among those used, that is likely much the same (-1: none). What both have is found by
    going through them side by side. For all other links one hash table would miss the cache at every look: so they are parted by
    their hash, each part small enough for a table in the cache, and all cores share the parts.
    """
    start: Ints = np.append(0, np.cumsum(np.diff(set_start)[used]))
    lists = (set_start, set_links, n_internal, used, start)
    n, cores = int(start[-1]), os.cpu_count() or 1
    n_parts = 1 << (n // PART).bit_length()
    bounds = np.searchsorted(start, np.linspace(0, n, cores + 1).astype(np.int64))
    ranges = list(pairwise([0, *bounds[1:-1].tolist(), len(used)]))
    parts = list(pairwise(np.linspace(0, n_parts, cores + 1).astype(np.int64).tolist()))
    first = np.empty(
        n, np.int32 if n < 2**31 else np.int64
    )  # the place of the same link that is known so far; -1: none
    with ThreadPoolExecutor(cores) as threads:

        def shared(work: Callable[..., Any], *among: Iterable[Any]) -> list[Any]:
            return list(threads.map(work, *among))

        sizes = np.array(shared(partial(_find_again, lists, before, first, n_parts), ranges))
        # By part, then by range: within a part links stand in the order in which they are seen.
        begin = np.append(0, np.cumsum(sizes.T))
        link, place = np.empty(begin[-1], np.int64), np.empty(begin[-1], first.dtype)
        shared(partial(_part, lists, first, link, place), ranges, begin[:-1].reshape(n_parts, cores).T.copy())
        shared(partial(_first_places, begin[::cores], link, place, first), parts)
        del link, place
        stands_for = _number(lists, first)
        small = first.astype(np.int32, copy=False)
        shared(partial(_sort, start, small), ranges)
    return start, small, stands_for


@njit(cache=True, nogil=True)
def _part_of(link, n_parts):  # type: ignore[no-untyped-def]
    return (_hash(link) >> np.uint64(32)) & np.uint64(n_parts - 1)


@njit(cache=True, nogil=True)
def _hash(link):  # type: ignore[no-untyped-def]
    return np.uint64(link) * np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def _find_again(lists, before, first, n_parts, of):  # type: ignore[no-untyped-def]
    """Where each link of some lists stands in the list before; and how many of the others there are in each part."""
    set_start, set_links, n_internal, used, start = lists
    sizes = np.zeros(n_parts, np.int64)
    for i in range(of[0], of[1]):
        a, end = set_start[used[i]], set_start[used[i] + 1]
        at = start[i] - a  # from a place among all links to one among those used
        first[at + a : at + end] = -1
        if before[i] >= 0:
            b, b_end = set_start[used[before[i]]], set_start[used[before[i]] + 1]
            at_b = start[before[i]] - b
            middle, b_middle = a + n_internal[used[i]], b + n_internal[used[before[i]]]
            _match(set_links, a, middle, b, b_middle, at, at_b, first)
            _match(set_links, middle, end, b_middle, b_end, at, at_b, first)
        for j in range(a, end):
            if first[at + j] < 0:
                sizes[_part_of(set_links[j], n_parts)] += 1
    return sizes


@njit(cache=True, nogil=True)
def _match(links, a, end_a, b, end_b, at_a, at_b, first):  # type: ignore[no-untyped-def]
    """Both ascending. Were they not, links would be missed here, and found by their hash."""
    while a < end_a and b < end_b:
        if links[a] == links[b]:
            first[at_a + a] = at_b + b
            a += 1
            b += 1
        elif links[a] < links[b]:
            a += 1
        else:
            b += 1


@njit(cache=True, nogil=True)
def _part(lists, first, link, place, of, free):  # type: ignore[no-untyped-def]
    """Put every link that was not found again, and where it stands, into its part."""
    set_start, set_links, _, used, start = lists
    for i in range(of[0], of[1]):
        for j in range(start[i], start[i + 1]):
            if first[j] < 0:
                this = set_links[set_start[used[i]] + j - start[i]]
                part = _part_of(this, len(free))
                link[free[part]], place[free[part]] = this, j
                free[part] += 1


@njit(cache=True, nogil=True)
def _first_places(begin, link, place, first, of):  # type: ignore[no-untyped-def]
    """For every place of some parts, the first of them that holds the same link."""
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
    """Small numbers instead of earlier places of the same link, and what they stand for."""
    set_start, set_links, _, used, start = lists
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


@njit(cache=True)
def spellings(text, start):  # type: ignore[no-untyped-def]
    """Hashes of the folder of each URL, and of its host with its name: digits and values of the query are left out of that."""
    folder, name = np.empty(len(start) - 1, np.uint64), np.empty(len(start) - 1, np.uint64)
    for i in range(len(folder)):
        path = query = end = start[i + 1]
        n_slashes, last = 0, start[i]
        for at in range(start[i], end):
            if text[at] == 63 and n_slashes >= 3:  # "?"
                query = at
                break
            if text[at] == 47:  # "/"
                n_slashes += 1
                path = at if n_slashes == 3 else path
                last = at
        folder[i] = _spelt(text, start[i], last + 1, _SPELLING)
        of_host = _spelt(text, start[i], path, _SPELLING)
        name[i] = _name(text, last, query, end, of_host)
    return folder, name


@njit(cache=True)
def _letter(letter, before):  # type: ignore[no-untyped-def]
    return (before ^ np.uint64(letter)) * np.uint64(0x100000001B3)


@njit(cache=True)
def _spelt(text, start, end, before):  # type: ignore[no-untyped-def]
    for at in range(start, end):
        before = _letter(text[at], before)
    return before


@njit(cache=True)
def _name(text, start, query, end, before):  # type: ignore[no-untyped-def]
    was_digit = is_value = False
    for at in range(start, end):
        is_escape = text[at - 1] == 37 or text[at - 2] == 37  # %D0 is part of a letter, not a number
        is_digit = 48 <= text[at] <= 57 and not is_escape
        is_value = at > query and text[at] != 38 and (is_value or text[at] == 61)  # from "=" to "&"
        if not is_value and not (is_digit and was_digit):  # one mark for a number, however long
            before = _letter(35 if is_digit else text[at], before)
        was_digit = is_digit
    return before
