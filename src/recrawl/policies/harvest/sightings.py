"""When and where each link was first seen: what arrived on a page since its last visit, and which siblings show it, too."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from recrawl.core.arrays import Flags, Floats, Ints, Ints32, LinkLists
from recrawl.core.hashtable import EMPTY, STRIDE, insert, new_keys, slot
from recrawl.policies.harvest.siblings import most_pairs

_UNSEEN = np.iinfo(np.int32).max
GROWTH = 9  #: eighths; room that is not used yet is kept and read with all that was learnt


class Sightings:
    """First sightings of all links, and the pages on which each of them arrived.

    A link arrived on a page if no page had shown it when the page was last seen. So one moment per link is enough, and no page
    needs to remember all that it ever showed. Moments are seconds since the crawl began, so that a hundred million links take
    half the memory.

    >>> sightings = Sightings()
    >>> sightings.all_known(LinkLists(np.array([0, 2]), np.array([0, 1], np.int32)), hours=np.array([0.0]))
    >>> shown = LinkLists(np.array([0, 2]), np.array([1, 2], np.int32))
    >>> sightings.arrivals(np.array([0]), np.array([True]), np.array([0.0]), shown, hours=np.array([5.0])).links
    array([2], dtype=int32)
    """

    def __init__(self) -> None:
        self.began = np.nan  # hours since 1970
        self.first = np.full(1024, _UNSEEN, np.int32)  # seconds since then, by link
        self._newest = np.full(1024, -1, np.int32)  # the latest entry of a link below, and from there on the one before
        self._before = np.zeros(1024, np.int32)
        self._page = np.zeros(1024, np.int32)
        self._n = 0

    def all_known(self, links: LinkLists, hours: Floats) -> None:
        """Nothing of this is new: it is where the crawl begins."""
        self._reserve_links(links)
        _all_known(links.start, links.links, self._seconds(hours), self.first)

    def arrivals(self, page: Ints, answered: Flags, since: Floats, shown: LinkLists, hours: Floats) -> LinkLists:
        """The links that arrived on each page since it was last seen; infinite: only those that no page has shown."""
        self._reserve_links(shown)
        seconds = self._seconds(hours)
        start, links = _arrivals(shown.start, shown.links, answered, self._seconds(since), self.first)
        self._reserve_entries(len(links))
        self._n = _note(start, links, page, seconds, self.first, self._newest, self._before, self._page, self._n)
        return LinkLists(start, links)

    def shared(self, page: Ints, arrivals: LinkLists, weight: Floats, site: Ints) -> tuple[Ints, Floats]:
        """How many of the links that arrived on a page another page of its site shows as well, each by the weight of its visit.

        One entry for each pair that shares any: its key (page · STRIDE + other page), ascending, and the sum. Visits without
        weight are passed over.
        """
        start, links, most = arrivals.start, arrivals.links, most_pairs(len(site))
        keys, sums = _shared(start, links, page, weight, self._newest, self._before, self._page, site, most)
        held = np.flatnonzero(keys != EMPTY)
        held = held[np.argsort(keys[held])]
        return keys[held], sums[held]

    def unshared(self, page: Ints, links: Ints32, begin: Ints, size: Ints, site: Ints) -> Ints:
        """How many of each page's links (`size` of them from `begin` on) no other page of its site has shown."""
        n: Ints = _unshared(
            links, begin, size, page, self._newest, self._before, self._page, site, most_pairs(len(site))
        )
        return n

    def _seconds(self, hours: Floats) -> Ints32:
        """Seconds since the crawl began; as late as can be for infinite times, and never before the beginning."""
        if np.isnan(self.began) and np.isfinite(hours).any():
            self.began = float(np.min(hours[np.isfinite(hours)]))
        whole = np.nan_to_num(np.floor(3600.0 * (hours - self.began)))
        seconds: Ints32 = np.clip(whole, 0, _UNSEEN - 1).astype(np.int32)
        return seconds

    def _reserve_links(self, lists: LinkLists) -> None:
        n_links = int(lists.links.max(initial=-1)) + 1
        if n_links > len(self.first):
            room = max(n_links, GROWTH * len(self.first) // 8)
            self.first = _longer(self.first, room, _UNSEEN)
            self._newest = _longer(self._newest, room, -1)

    def _reserve_entries(self, more: int) -> None:
        if self._n + more > len(self._before):
            room = max(self._n + more, GROWTH * len(self._before) // 8)
            self._before, self._page = _longer(self._before, room), _longer(self._page, room)


def _longer(values: NDArray[Any], room: int, fill: int | None = None) -> NDArray[Any]:
    longer = np.zeros(room, values.dtype)
    longer[: len(values)] = values
    if fill is not None:
        longer[len(values) :] = fill
    return longer


@njit(cache=True)
def _all_known(start, links, moment, first):  # type: ignore[no-untyped-def]
    for i in range(len(moment)):
        for at in range(start[i], start[i + 1]):
            first[links[at]] = min(first[links[at]], moment[i])


@njit(cache=True)
def _arrivals(start, links, answered, since, first):  # type: ignore[no-untyped-def]
    arrived = np.empty(len(links), links.dtype)
    arrived_start = np.zeros(len(answered) + 1, np.int64)
    n = 0
    for i in range(len(answered)):
        if answered[i]:
            for at in range(start[i], start[i + 1]):
                if first[links[at]] > since[i]:
                    arrived[n] = links[at]
                    n += 1
        arrived_start[i + 1] = n
    return arrived_start, arrived[:n].copy()


@njit(cache=True)
def _note(start, links, page, moment, first, newest, before, shower, n):  # type: ignore[no-untyped-def]
    # Backwards, so that the first pages come first among those that show a link: where many share links, it is with the same few.
    for i in range(len(page) - 1, -1, -1):
        for at in range(start[i], start[i + 1]):
            link = links[at]
            first[link] = min(first[link], moment[i])
            shower[n], before[n], newest[link] = page[i], newest[link], n
            n += 1
    return n


@njit(cache=True)
def _shared(start, links, page, weight, newest, before, shower, site, most):  # type: ignore[no-untyped-def]
    keys, sums = np.full(1024, EMPTY, np.int64), np.zeros(1024)
    n = 0
    for i in range(len(page)):
        if weight[i] <= 0.0:
            continue
        for at in range(start[i], start[i + 1]):
            entry, left = newest[links[at]], most
            while entry >= 0 and left > 0:
                left -= 1
                q = shower[entry]
                entry = before[entry]
                if q == page[i] or site[q] != site[page[i]]:
                    continue
                key = page[i] * STRIDE + q
                place = slot(keys, key)
                if keys[place] == EMPTY:
                    keys[place] = key
                    n += 1
                sums[place] += weight[i]
                if 2 * n > len(keys):
                    keys, sums = _roomier(keys, sums)
    return keys, sums


@njit(cache=True)
def _unshared(links, begin, size, page, newest, before, shower, site, most):  # type: ignore[no-untyped-def]
    n_unshared = np.zeros(len(page), np.int64)
    for i in range(len(page)):
        for at in range(begin[i], begin[i] + size[i]):
            entry, left, is_shared = newest[links[at]], most, False
            while entry >= 0 and left > 0 and not is_shared:
                is_shared = shower[entry] != page[i] and site[shower[entry]] == site[page[i]]
                entry = before[entry]
                left -= 1
            n_unshared[i] += not is_shared
    return n_unshared


@njit(cache=True)
def _roomier(keys, sums):  # type: ignore[no-untyped-def]
    held = np.flatnonzero(keys != EMPTY)
    more_keys = new_keys(len(keys))
    more_sums = np.zeros(len(more_keys))
    more_sums[insert(more_keys, keys[held])] = sums[held]
    return more_keys, more_sums
