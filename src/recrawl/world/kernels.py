"""The loops behind recorded worlds and streams: links numbered by hash tables, lists sorted, first sightings found."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
from numba import njit

from recrawl.core.arrays import Ints, Ints32
from recrawl.core.hashtable import room_for, slot
from recrawl.core.workers import cores, even_ranges, in_threads
from recrawl.web.visit import Outcome

PART = 1 << 15  #: links of a part, about: its hash table fits the cache
_FAILED, _GONE = int(Outcome.FAILED), int(Outcome.GONE)
_SPELLING = np.uint64(0xCBF29CE484222325)  # the hash of no letters (FNV-1a)


def numbered(set_start: Ints, set_links: Ints, n_internal: Ints, used: Ints, before: Ints) -> tuple[Ints, Ints32, Ints]:
    """The used lists with small ascending numbers for links, and the ids of these links, in the order of first sight.

    `before`: for each list an earlier one, among those used, that is probably similar (-1: none). Links that both have are found by
    going through them side by side. For all other links one hash table would miss the cache at every lookup. So they are split into
    parts by their hash, each small enough for a table in the cache, and all cores share the parts.
    """
    start: Ints = np.append(0, np.cumsum(np.diff(set_start)[used]))
    lists = (set_start, set_links, n_internal, used, start)
    n = int(start[-1])
    n_ranges = cores() if n > PART else 1  # few links are numbered before a thread would have begun
    n_parts = 1 << (n // PART).bit_length()
    bounds = np.searchsorted(start, [low for low, _ in even_ranges(n, n_ranges)])
    ranges = list(pairwise([*bounds.tolist(), len(used)]))
    # The first known place of the same link; -1: none.
    first = np.empty(n, np.int32 if n < 2**31 else np.int64)
    sizes = np.array(in_threads(partial(_find_again, lists, before, first, n_parts), zip(ranges, strict=True)))
    # By part, then by range: within a part links are in the order in which they are seen.
    begin = np.append(0, np.cumsum(sizes.T))
    link, place = np.empty(begin[-1], np.int64), np.empty(begin[-1], first.dtype)
    free = begin[:-1].reshape(n_parts, n_ranges).T.copy()
    in_threads(partial(_part, lists, first, link, place), zip(ranges, free, strict=True))
    in_threads(
        partial(_first_places, begin[::n_ranges], link, place, first), zip(even_ranges(n_parts, n_ranges), strict=True)
    )
    del link, place
    link_ids = _number(lists, first)
    small = first.astype(np.int32, copy=False)
    in_threads(partial(_sort, start, small), zip(ranges, strict=True))
    return start, small, link_ids


@njit(cache=True, nogil=True)
def _part_of(link, n_parts):  # type: ignore[no-untyped-def]
    # By other bits of the hash than those by which the part's own table is filled.
    return (np.uint64(link) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)) & np.uint64(n_parts - 1)


@njit(cache=True, nogil=True)
def _find_again(lists, before, first, n_parts, of):  # type: ignore[no-untyped-def]
    """The place of each link of some lists in the list before; return how many of the others there are in each part."""
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
    """Both ascending. If they were not, links would be missed here, and found by their hash."""
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
    """Put every link that was not in the list before, and its place, into its part."""
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
        index = np.full(room_for(begin[part + 1] - begin[part]), -1, np.int64)
        for i in range(begin[part], begin[part + 1]):
            at = slot(link, link[i], index)
            if index[at] < 0:
                index[at] = i
            first[place[i]] = place[index[at]]


@njit(cache=True, nogil=True)  # URLs are looked up meanwhile
def _number(lists, first):  # type: ignore[no-untyped-def]
    """Replace places of links by small numbers; return the ids of these links."""
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
    """The smallest number of all lists that hold a link."""
    first = np.full(n_links, np.iinfo(np.int64).max, np.int64)
    for i in range(len(start) - 1):
        for j in range(start[i], start[i + 1]):
            if first_of_set[i] < first[links[j]]:
                first[links[j]] = first_of_set[i]
    return first


@njit(cache=True, nogil=True)
def lists_of(set_start, set_links, number, use):  # type: ignore[no-untyped-def]
    """The chosen lists below each other; an empty one where it is not to be used."""
    start = np.zeros(len(number) + 1, np.int64)
    for i in range(len(number)):
        start[i + 1] = start[i] + (set_start[number[i] + 1] - set_start[number[i]] if use[i] else 0)
    links = np.empty(start[-1], np.int32)
    for i in range(len(number)):
        if use[i]:
            links[start[i] : start[i + 1]] = set_links[set_start[number[i]] : set_start[number[i] + 1]]
    return start, links


@njit(cache=True, nogil=True)
def unknown_links(start, links, known):  # type: ignore[no-untyped-def]
    """The links of each list that are not known."""
    fresh = np.zeros(len(start), np.int64)
    kept = np.empty(len(links), np.int32)
    n = 0
    for i in range(len(start) - 1):
        for j in range(start[i], start[i + 1]):
            if not known[links[j]]:
                kept[n] = links[j]
                n += 1
        fresh[i + 1] = n
    return fresh, kept[:n].copy()


@njit(cache=True, nogil=True)
def learn_links(links, known):  # type: ignore[no-untyped-def]
    """Every link once, in the order of first sight; from now on they are known."""
    found = np.empty(len(links), np.int32)
    n = 0
    for link in links:
        if not known[link]:
            known[link] = True
            found[n] = link
            n += 1
    return found[:n].copy()


@njit(cache=True)
def visits_that_count(start, outcome, is_read):  # type: ignore[no-untyped-def]
    """Of each group of visits in the order of time the one that counts.

    The last one that was read, unless the page was gone after that; else the last one that was seen or gone; else the last.
    """
    chosen = np.empty(len(start) - 1, np.int64)
    for group in range(len(chosen)):
        best = start[group + 1] - 1
        is_informed = is_read_now = False
        for visit in range(start[group], start[group + 1]):
            if outcome[visit] == _FAILED or (is_read_now and not is_read[visit] and outcome[visit] != _GONE):
                continue
            best, is_informed = visit, True
            is_read_now = is_read[visit]
        chosen[group] = best if is_informed else start[group + 1] - 1
    return chosen


_INDEX, _DEFAULT = np.frombuffer(b"index.", np.uint8), np.frombuffer(b"default.", np.uint8)


@njit(cache=True, nogil=True)
def path_depths(text, start):  # type: ignore[no-untyped-def]
    """The number of names in the path of each URL; an index file counts as its folder."""
    depths = np.zeros(len(start) - 1, np.int64)
    for i in range(len(depths)):
        n_slashes, name = 0, -1  # where the present name of the path begins; -1: none has begun
        for at in range(start[i], start[i + 1]):
            if text[at] == 63:  # ?
                break
            if text[at] == 47:  # /
                n_slashes += 1
                name = -1
            elif n_slashes > 2 and name < 0:
                depths[i] += 1
                name = at
        if name >= 0 and (_begins(text, name, start[i + 1], _INDEX) or _begins(text, name, start[i + 1], _DEFAULT)):
            depths[i] -= 1
    return depths


@njit(cache=True, nogil=True)
def _begins(text, at, end, beginning):  # type: ignore[no-untyped-def]
    """Whether the letters from a place on begin like this."""
    if end - at < len(beginning):
        return False
    n_same = 0
    while n_same < len(beginning) and text[at + n_same] == beginning[n_same]:
        n_same += 1
    return n_same == len(beginning)


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
