"""Which share of the links that arrive on a page also arrives on another page of its site, for pairs that shared a link."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.core.growing import grown
from recrawl.core.hashtable import EMPTY, STRIDE, insert, room_for, slots
from recrawl.policies.harvest.unshared import MOST_SHARED, share_if_shared

#: Pairs per page that are kept, and pages that are remembered per link: links that more pages show are navigation.
MOST_PAIRS = 60
LEAST_PAIRS = 10  #: pairs per page that are kept however many pages there are
MAX_PAIRS = 10_000_000  #: pairs in all, above which fewer are kept per page
PAST = 0.5  #: of the links that arrived before a pair shared its first, the share that could have been shared already


def most_pairs(n_pages: int) -> int:
    """How many pairs of each page are kept: a site may add a link to a million pages at once.

    >>> most_pairs(100), most_pairs(300_000), most_pairs(10_000_000)
    (60, 33, 10)
    """
    return int(np.clip(MAX_PAIRS // max(n_pages, 1), LEAST_PAIRS, MOST_PAIRS))


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """The pairs by their first page: those of page p are ``start[p]:start[p + 1]``."""

    start: Ints
    other: Ints
    share: Floats  # of the page's new links, that the other page shows as well
    if_shared: Floats  # the same, as a share of those that are on other pages at all
    unshared: Floats  # one entry per page: the share of its new links that is on no other page

    def closest(self, page: int) -> tuple[int, float]:
        """The page that shows most of a page's links, and the share of them; -1 where there is none."""
        mine = slice(self.start[page], self.start[page + 1])
        if mine.start == mine.stop:
            return -1, 0.0
        best = int(np.argmax(self.share[mine]))
        return int(self.other[mine][best]), float(self.share[mine][best])


def no_pairs(n: int) -> Neighbours:
    """No pairs at all, for `n` pages."""
    none = np.empty(0)
    others, start = none.astype(np.int64), np.zeros(n + 1, np.int64)
    return Neighbours(start=start, other=others, share=none, if_shared=none, unshared=np.zeros(n))


def reversed_pairs(pairs: Neighbours, n: int) -> Neighbours:
    """The pairs among the first `n` pages, by the page that shows the links of the other."""
    page = np.repeat(np.arange(n), np.diff(pairs.start))
    among = np.flatnonzero(pairs.other < n)
    order = among[np.argsort(pairs.other[among], kind="stable")]
    start = np.append(0, np.cumsum(np.bincount(pairs.other[among], minlength=n)))
    return Neighbours(
        start=start,
        other=page[order],
        share=pairs.share[order],
        if_shared=pairs.if_shared[order],
        unshared=pairs.unshared,
    )


class Siblings:
    """Trials and hits of ordered pairs (p, q): links that arrived on p, and those of them that q showed.

    A link that arrived on p is a trial if q was visited after it arrived. The share is (hits + α·a0)/(trials + α) with a0 =
    min(`share`, 2/pages of the site). Links that arrive together are shared together, so those of one visit count as at most
    `per_visit`.
    """

    def __init__(self, site: Ints, pseudo_links: float = 5.0, share: float = 0.05, per_visit: float = 10.0) -> None:
        self.pseudo_links, self.share, self.per_visit = pseudo_links, share, per_visit
        self.keys: Ints = np.full(1024, EMPTY, np.int64)
        self.hits, self.trials = np.zeros(1024), np.zeros(1024)
        self.size = 0
        # The pairs of a page: its newest slot, and from each slot on the one before.
        self._newest: Ints = np.full(len(site), -1, np.int64)
        self._before: Ints = np.full(1024, -1, np.int64)
        self._n_pairs = np.zeros(len(site), np.int64)  # of each page
        self.n_of_whole = len(site)  # pages of the collection
        self.n_arrived = np.zeros(len(site))  # links so far, as they count
        self._fading = np.ones(len(site))  # what is left of a page's pairs since links last arrived on it
        self._of_sites(site)

    def extend(self, site: Ints, n_of_whole: int | None = None) -> None:
        """More pages are known; `site` is that of all pages here, of `n_of_whole` in the collection."""
        n = len(site)
        self.n_of_whole = n if n_of_whole is None else n_of_whole
        self._newest, self._fading = grown(self._newest, n, -1), grown(self._fading, n, 1.0)
        self._n_pairs, self.n_arrived = grown(self._n_pairs, n), grown(self.n_arrived, n)
        self._of_sites(site)

    def _of_sites(self, site: Ints) -> None:
        self.site, self.of_site = site, np.bincount(site, minlength=1)  # pages of each site

    @property
    def n_pages(self) -> int:
        """How many pages there are."""
        return len(self.site)

    def of_visits(self, page: Ints, n_arrived: Ints) -> tuple[Ints, Ints, Ints]:
        """The known pairs of the pages on which links arrived: place in `page`, the other page, and slot."""
        places = np.flatnonzero(n_arrived > 0)
        sizes = self._n_pairs[page[places]]
        at: Ints = _slots_of(page[places], np.append(0, np.cumsum(sizes)), self._newest, self._before)
        return np.repeat(places, sizes), self.keys[at] % STRIDE, at

    def add_new(self, keys: Ints) -> None:
        """Make room for pairs that share a link for the first time."""
        keys = keys[self.keys[slots(self.keys, keys)] == EMPTY]
        self._reserve(len(keys))
        at = insert(self.keys, keys)
        self.trials[at] = PAST * self.n_arrived[keys // STRIDE]
        _link(at, keys // STRIDE, self._newest, self._before, self._n_pairs)
        self.size += len(keys)

    def learn(self, page: Ints, n_arrived: Ints, at: Ints, place: Ints, visible: Floats, kept: Floats) -> None:
        """Add the trials of pairs: `visible` is the share of the page's arrivals that the other page could have shown.

        `kept`: the share of each page's past that still counts. Where no links arrived, its pairs fade the next time some do.
        """
        counts = np.minimum(n_arrived, self.per_visit)
        self._fading[page] *= kept
        left = self._fading[page[place]]
        self.hits[at] *= left
        self.trials[at] = self.trials[at] * left + counts[place] * visible
        self._fading[page[n_arrived > 0]] = 1.0
        self.n_arrived[page] = self.n_arrived[page] * kept + counts

    def hit(self, keys: Ints, links: Floats) -> None:
        """Add links that both pages of known pairs show."""
        at = slots(self.keys, keys)
        self.hits[at] += links
        self.trials[at] = np.maximum(self.trials[at], self.hits[at])

    @property
    def most(self) -> int:
        """How many pairs of each page are kept."""
        return most_pairs(self.n_of_whole)

    def is_too_large(self, size_of_whole: int) -> bool:
        """Whether there are so many pairs in the whole collection that the weaker ones must go."""
        return size_of_whole > 2 * self.most * self.n_of_whole

    def prune(self) -> None:
        """Keep the strongest pairs of each page: in a site where all share their links there would be no end of them."""
        most, n_pairs = self.most, self._n_pairs
        has_many = n_pairs > most
        if not has_many.any():
            return
        at = self._all()[1]
        is_of_many = np.repeat(has_many, n_pairs)
        of_many, page = at[is_of_many], np.repeat(np.flatnonzero(has_many), n_pairs[has_many])
        order = np.lexsort((-self.shares(of_many), page))
        is_held = np.zeros(len(self.keys), np.bool_)
        is_held[at[~is_of_many]] = is_held[of_many[order[_ramps(n_pairs[has_many]) < most]]] = True
        self._rebuild(is_held, 0)

    def shares(self, at: Ints) -> Floats:
        """The shares of the pairs in these slots."""
        alpha, prior = self.pseudo_links, self._prior(self.keys[at] // STRIDE)
        return np.minimum((self.hits[at] + alpha * prior) / (self.trials[at] + alpha), MOST_SHARED)

    def _prior(self, page: Ints) -> Floats:
        """The share of a pair of which nothing is known: small where a site has many pages."""
        return np.minimum(self.share, 2.0 / np.maximum(self.of_site[self.site[page]], 1))

    def neighbours(self, unshared: Floats, is_reversed: bool = False) -> Neighbours:
        """All pairs by their first page; reversed: by the other one, with the share of the first page's new links.

        unshared: the share of each page's new links that is on no other page.
        """
        start, at = self._all()
        share, page, other = self.shares(at), self.keys[at] // STRIDE, self.keys[at] % STRIDE
        if_shared = share_if_shared(share, unshared[page])
        if not is_reversed:
            return Neighbours(start=start, other=other, share=share, if_shared=if_shared, unshared=unshared)
        order = np.argsort(other, kind="stable")
        start = np.append(0, np.cumsum(np.bincount(other, minlength=self.n_pages)))
        return Neighbours(
            start=start, other=page[order], share=share[order], if_shared=if_shared[order], unshared=unshared
        )

    def _all(self) -> tuple[Ints, Ints]:
        """The slots of all pairs by page: where those of each page begin, and the slots."""
        start = np.append(0, np.cumsum(self._n_pairs))
        return start, _slots_of(np.arange(self.n_pages), start, self._newest, self._before)

    def _reserve(self, more: int) -> None:
        if 2 * (self.size + more) > len(self.keys):
            self._rebuild(self.keys != EMPTY, more)

    def _rebuild(self, is_held: Flags, more: int) -> None:
        """A table of some slots with room for `more`. Pairs of a page stay in the order in which they became known."""
        at = self._all()[1]
        held = at[is_held[at]][::-1]  # the oldest first, as they are linked
        room = room_for(len(held) + more, 1024)
        keys, hits, trials = self.keys[held], self.hits[held], self.trials[held]
        self.keys, self.hits, self.trials = np.full(room, EMPTY, np.int64), np.zeros(room), np.zeros(room)
        at = insert(self.keys, keys)
        self.hits[at], self.trials[at] = hits, trials
        self._newest[:], self._n_pairs[:], self._before = -1, 0, np.full(room, -1, np.int64)
        _link(at, keys // STRIDE, self._newest, self._before, self._n_pairs)
        self.size = len(keys)


@njit(cache=True)
def _link(at, page, newest, before, n_pairs):  # type: ignore[no-untyped-def]
    """Add slots to the lists of their pages."""
    for i in range(len(at)):
        before[at[i]], newest[page[i]] = newest[page[i]], at[i]
        n_pairs[page[i]] += 1


@njit(cache=True)
def _slots_of(page, start, newest, before):  # type: ignore[no-untyped-def]
    """The slots of some pages, one page after the other."""
    slots = np.empty(start[-1], np.int64)
    for i in range(len(page)):
        slot, at = newest[page[i]], start[i]
        while slot >= 0:
            slots[at] = slot
            at += 1
            slot = before[slot]
    return slots


def _ramps(sizes: Ints) -> Ints:
    """0, 1, … for each size.

    >>> _ramps(np.array([2, 0, 3]))
    array([0, 1, 0, 1, 2])
    """
    ends = np.cumsum(sizes)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - sizes, sizes)
