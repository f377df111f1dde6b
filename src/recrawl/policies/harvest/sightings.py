"""When and where each link was first seen: what arrived on a page since its last visit, and which siblings show it, too."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from recrawl.core.arrays import Flags, Floats, Ints, Ints32, LinkLists
from recrawl.core.hashtable import EMPTY, STRIDE, insert, new_keys, slot
from recrawl.core.times import US_PER_HOUR
from recrawl.world.pages import Visits

_UNSEEN = np.iinfo(np.int32).max
MOST_SITES = 4096  #: sites on which a link arrived that are looked at: those that gained pages last
GROWTH = 9  #: eighths; room that is not used yet is kept and read with all that was learnt


class Sightings:
    """First sightings of all links, and the pages on which each of them arrived.

    A link arrived on a page if no page had shown it when the page was last seen. So one moment per link is enough, and no page
    needs to remember all that it ever showed. Moments are seconds since the crawl began, so that a hundred million links take
    half the memory.

    >>> sightings = Sightings()
    >>> sightings.all_known(LinkLists(np.array([0, 2]), np.array([0, 1], np.int32)), hours=np.array([0.0]))
    >>> shown = LinkLists(np.array([0, 2]), np.array([1, 2], np.int32))
    >>> sightings.arrivals(np.array([0]), np.array([True]), np.array([0.0]), shown, np.array([5.0]), np.array([0])).links
    array([2], dtype=int32)
    """

    def __init__(self) -> None:
        self.began = np.nan  # hours since 1970
        self.first = np.full(1024, _UNSEEN, np.int32)  # seconds since then, by link
        # Arrivals of a link: the latest entry of one site, from there on the one before on the same site, and the latest one of
        # another site.
        self._newest = np.full(1024, -1, np.int32)
        self._before = np.zeros(1024, np.int32)
        self._elsewhere = np.zeros(1024, np.int32)
        self._page = np.zeros(1024, np.int32)
        self._n = 0

    def begin(self, visits: Visits) -> None:
        """The crawl begins with these visits."""
        began_at = visits.began_at
        if began_at is not None or len(visits):
            self.began = float((int(visits.at.min()) if began_at is None else began_at) / US_PER_HOUR)

    def all_known(self, links: LinkLists, hours: Floats) -> None:
        """Nothing of this is new: it is where the crawl begins."""
        self._reserve_links(links)
        _all_known(links.start, links.links, self._seconds(hours), self.first)

    def shown_elsewhere(self, links: Ints32, hours: Floats) -> None:
        """Pages that are not followed here showed these links before, the first of them at these hours."""
        self._reserve_links(LinkLists(np.array([0, len(links)]), links))
        np.minimum.at(self.first, links, self._seconds(hours))

    def arrivals(
        self, page: Ints, answered: Flags, since: Floats, shown: LinkLists, hours: Floats, site: Ints
    ) -> LinkLists:
        """The links that arrived on each page since it was last seen; infinite: only those that no page has shown."""
        self._reserve_links(shown)
        seconds = self._seconds(hours)
        start, links = _arrivals(shown.start, shown.links, answered, self._seconds(since), self.first)
        self._reserve_entries(len(links))
        self._n = _note(start, links, page, seconds, self.first, *self._chains, site, self._n)
        return LinkLists(start, links)

    @property
    def _chains(self) -> tuple[Ints32, Ints32, Ints32, Ints32]:
        return self._newest, self._before, self._elsewhere, self._page

    def shared(self, page: Ints, arrivals: LinkLists, weight: Floats, site: Ints, most: int) -> tuple[Ints, Floats]:
        """How many of the links that arrived on a page another page of its site shows as well, each by the weight of its visit.

        One entry for each pair that shares any: its key (page · STRIDE + other page), ascending, and the sum. Visits without
        weight are passed over. Of each link the last `most` pages of the site count.
        """
        keys, sums = _shared(arrivals.start, arrivals.links, page, weight, *self._chains, site, most)
        held = np.flatnonzero(keys != EMPTY)
        held = held[np.argsort(keys[held])]
        return keys[held], sums[held]

    def unshared(self, page: Ints, links: Ints32, begin: Ints, size: Ints, site: Ints) -> Ints:
        """How many of each page's links (`size` of them from `begin` on) no other page of its site has shown."""
        n: Ints = _unshared(links, begin, size, page, *self._chains, site)
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
            for name in ("_before", "_elsewhere", "_page"):
                setattr(self, name, _longer(getattr(self, name), room))


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
def _latest_on(link, site, newest, elsewhere, shower, of):  # type: ignore[no-untyped-def]
    """The latest entry of a link on a site, and that of the site looked at before it; -1 where there is none."""
    entry, previous, left = newest[link], -1, MOST_SITES
    while entry >= 0 and of[shower[entry]] != site:
        left -= 1
        if left == 0:
            return -1, previous
        entry, previous = elsewhere[entry], entry
    return entry, previous


@njit(cache=True)
def _note(start, links, page, moment, first, newest, before, elsewhere, shower, site, n):  # type: ignore[no-untyped-def]
    # Backwards, so that the first pages come first among those that show a link: where many share links, it is with the same few.
    for i in range(len(page) - 1, -1, -1):
        for at in range(start[i], start[i + 1]):
            link = links[at]
            first[link] = min(first[link], moment[i])
            latest, previous = _latest_on(link, site[page[i]], newest, elsewhere, shower, site)
            if latest >= 0 and previous >= 0:  # the site that gained a page comes first now
                elsewhere[previous] = elsewhere[latest]
            is_front = latest >= 0 and previous < 0
            shower[n], before[n] = page[i], latest
            elsewhere[n] = elsewhere[latest] if is_front else newest[link]
            newest[link] = n
            n += 1
    return n


@njit(cache=True)
def _shared(start, links, page, weight, newest, before, elsewhere, shower, site, most):  # type: ignore[no-untyped-def]
    keys, sums = np.full(1024, EMPTY, np.int64), np.zeros(1024)
    n = 0
    for i in range(len(page)):
        if weight[i] <= 0.0:
            continue
        for at in range(start[i], start[i + 1]):
            entry, left = _latest_on(links[at], site[page[i]], newest, elsewhere, shower, site)[0], most
            while entry >= 0 and left > 0:
                left -= 1
                q = shower[entry]
                entry = before[entry]
                if q == page[i]:
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
def _unshared(links, begin, size, page, newest, before, elsewhere, shower, site):  # type: ignore[no-untyped-def]
    n_unshared = np.zeros(len(page), np.int64)
    for i in range(len(page)):
        for at in range(begin[i], begin[i] + size[i]):
            entry = _latest_on(links[at], site[page[i]], newest, elsewhere, shower, site)[0]
            while entry >= 0 and shower[entry] == page[i]:
                entry = before[entry]
            n_unshared[i] += entry < 0
    return n_unshared


@njit(cache=True)
def _roomier(keys, sums):  # type: ignore[no-untyped-def]
    held = np.flatnonzero(keys != EMPTY)
    more_keys = new_keys(len(keys))
    more_sums = np.zeros(len(more_keys))
    more_sums[insert(more_keys, keys[held])] = sums[held]
    return more_keys, more_sums
