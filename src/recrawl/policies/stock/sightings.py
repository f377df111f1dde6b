"""When and where each link was first seen: what came on a page since its last visit, and which siblings show it, too."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from recrawl.policies.base import Flags, Floats, Ints, LinkLists

MAX_SHOWERS = 60  #: of a new link, the latest: those that more pages show are navigation
_UNSEEN = np.iinfo(np.int32).max


class Sightings:
    """First sightings of all links, and the pages on which each of them came.

    A link came on a page if nobody had seen it when the page was last seen. So one moment a link is enough to tell, and no page
    needs to remember all that it ever showed. Moments are numbered: a hundred million links are kept in half the memory.
    """

    def __init__(self) -> None:
        self.times: list[float] = []  # hours since 1970 of each moment, ascending
        self.first = np.full(1024, _UNSEEN, np.int32)  # the moment, by link
        self._newest = np.full(1024, -1, np.int32)  # the latest entry of a link below, and from there on the one before
        self._before = np.empty(1024, np.int32)
        self._page = np.empty(1024, np.int32)
        self._n = 0

    def all_known(self, links: LinkLists, hours: float) -> None:
        """Nothing of this is new: it is where the crawl begins."""
        self._reserve_links(links)
        _all_known(links.links, self._moment(hours), self.first)

    def came(self, page: Ints, answered: Flags, since: Floats, shown: LinkLists, hours: float) -> LinkLists:
        """The links that came on each page since it was last seen; infinite there: only those nobody has seen."""
        self._reserve_links(shown)
        last = (np.searchsorted(self.times, since, side="right") - 1).astype(np.int32)
        start, links = _came(shown.start, shown.links, answered, last, self.first)
        moment = self._moment(hours)
        self._reserve_entries(len(links))
        self._n = _note(start, links, page, moment, self.first, self._newest, self._before, self._page, self._n)
        return LinkLists(start, links)

    def shared(self, page: Ints, came: LinkLists, site: Ints) -> tuple[Ints, Ints]:
        """For each link that came, every page of the same site that shows it as well: the page it came on, and the other."""
        one, other = _shared(came.start, came.links, page, self._newest, self._before, self._page, site, MAX_SHOWERS)
        return one, other

    def _moment(self, hours: float) -> int:
        if not self.times or hours > self.times[-1]:
            self.times.append(hours)
        return len(self.times) - 1

    def _reserve_links(self, lists: LinkLists) -> None:
        n_links = int(lists.links.max(initial=-1)) + 1
        if n_links > len(self.first):
            room = max(n_links, 2 * len(self.first))
            self.first = _longer(self.first, room, _UNSEEN)
            self._newest = _longer(self._newest, room, -1)

    def _reserve_entries(self, more: int) -> None:
        if self._n + more > len(self._before):
            room = max(self._n + more, 2 * len(self._before))
            self._before, self._page = _longer(self._before, room), _longer(self._page, room)


def _longer(values: NDArray[Any], room: int, fill: int | None = None) -> NDArray[Any]:
    longer = np.empty(room, values.dtype)
    longer[: len(values)] = values
    if fill is not None:
        longer[len(values) :] = fill
    return longer


@njit(cache=True)
def _all_known(links, moment, first):  # type: ignore[no-untyped-def]
    for link in links:
        first[link] = min(first[link], moment)


@njit(cache=True)
def _came(start, links, answered, since, first):  # type: ignore[no-untyped-def]
    came = np.empty(len(links), links.dtype)
    came_start = np.zeros(len(answered) + 1, np.int64)
    n = 0
    for i in range(len(answered)):
        if answered[i]:
            for at in range(start[i], start[i + 1]):
                if first[links[at]] > since[i]:
                    came[n] = links[at]
                    n += 1
        came_start[i + 1] = n
    return came_start, came[:n].copy()


@njit(cache=True)
def _note(start, links, page, moment, first, newest, before, shower, n):  # type: ignore[no-untyped-def]
    # Backwards, so that the first pages stand first among those that show a link: where many share links, it is with the same few.
    for i in range(len(page) - 1, -1, -1):
        for at in range(start[i], start[i + 1]):
            link = links[at]
            first[link] = min(first[link], moment)
            shower[n], before[n], newest[link] = page[i], newest[link], n
            n += 1
    return n


@njit(cache=True)
def _shared(start, links, page, newest, before, shower, site, most):  # type: ignore[no-untyped-def]
    room = 1024
    one, other = np.empty(room, np.int64), np.empty(room, np.int64)
    n = 0
    for i in range(len(page)):
        for at in range(start[i], start[i + 1]):
            entry, left = newest[links[at]], most
            while entry >= 0 and left > 0:
                left -= 1
                q = shower[entry]
                if q != page[i] and site[q] == site[page[i]]:
                    if n == room:
                        room *= 2
                        more_one, more_other = np.empty(room, np.int64), np.empty(room, np.int64)
                        more_one[:n], more_other[:n] = one, other
                        one, other = more_one, more_other
                    one[n], other[n] = page[i], q
                    n += 1
                entry = before[entry]
    return one[:n], other[:n]
