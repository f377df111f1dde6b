"""Pages that together show most distinct links: greedy set cover on what was seen, or with foreknowledge."""

from __future__ import annotations

import heapq
from dataclasses import replace
from datetime import datetime
from typing import ClassVar

import numpy as np
from numba import njit

from recrawl.core.arrays import Flags, Floats, Ints, Ints32
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.select import capped, caps_of, count_picked, take
from recrawl.world.pages import Need, Pages, Visits


def greedy_gains(
    start: Ints, links: Ints32, pages: Pages, budget: Budget, first: Flags | None = None
) -> tuple[Floats, Floats]:
    """For every page a score that falls in the order of greedy set cover, and the distinct links that it adds in its turn.

    Pages in `first` are taken before all others and cover what they show; barred pages take no part. Both are 0 for pages that
    add nothing or whose turn does not come within the budget.
    """
    n = len(pages)
    takes_part = np.ones(n, np.bool_) if budget.barred is None else budget.barred == 0
    turn, gain = _greedy(
        start,
        links,
        takes_part,
        np.zeros(n, np.bool_) if first is None else first & takes_part,
        min(budget.pages, n),
        caps_of(pages, replace(budget, taken=None)),
        int(links.max()) + 1 if len(links) else 0,
    )
    return np.where(turn >= 0, n - turn, 0).astype(np.float64), gain


class SetCover(Policy):
    """Visit the pages that together cover most of the new links of the past: greedy set cover on all that was seen.

    A page's set is the union of what was new on each of its visits. Pages not yet re-visited come first. What remains of the
    budget when everything is covered goes to the pages that waited longest.

    References: COV* of Pham, Santos and Freire (2018), section 5.3, after Dasgupta et al. (2007).
    """

    name: ClassVar[str] = "set-cover"
    paper: ClassVar[str | None] = "COV*"

    def start(self, pages: Pages) -> None:
        """Forget all that was seen."""
        self.owner_: Ints = np.empty(0, np.int64)
        self.links_: Ints32 = np.empty(0, np.int32)
        self.fresh_: list[tuple[Ints, Ints32]] = []
        self.n_pages_ = len(pages)

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """Greedily, the page that adds most links to those covered."""
        start, links = self.sets()
        score, gain = greedy_gains(start, links, pages, budget, pages.is_new)
        waited = pages.age_hours(now)
        rest = 0.5 - 0.5 / (1.0 + waited)  # below every page that adds links
        return take(
            np.where(score > 0, score, rest),
            pages,
            budget,
            first=pages.is_new,
            reason="adds {gain:.0f} links of the past to what the pages before it cover",
            detail={"gain": gain},
        )

    def sets(self) -> tuple[Ints, Ints32]:
        """All new links of each page so far, as lists in the order of the pages."""
        if self.fresh_:
            self.owner_ = np.concatenate([self.owner_, *(owner for owner, _ in self.fresh_)])
            self.links_ = np.concatenate([self.links_, *(links for _, links in self.fresh_)])
            self.fresh_ = []
            order = np.argsort(self.owner_, kind="stable")
            self.owner_, self.links_ = self.owner_[order], self.links_[order]
        return np.searchsorted(self.owner_, np.arange(self.n_pages_ + 1)), self.links_

    def observe(self, visits: Visits) -> None:
        """Add what was new."""
        self.fresh_.append((np.repeat(visits.page, visits.n_new), visits.new.links))


class Oracle(Policy):
    """Visit the pages that will show most unknown links, overlap taken into account: GREEDY with foreknowledge of this cycle.

    An upper bound for policies that decide cycle by cycle, not for those that plan ahead: it does not wait for links that will
    still be there tomorrow.

    References: GREEDY of Dasgupta et al. (2007) as in Pham, Santos and Freire (2018), section 5.3.
    """

    name: ClassVar[str] = "oracle"
    paper: ClassVar[str | None] = "GREEDY"
    needs = frozenset({Need.FUTURE})

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """Greedily, the page that adds most unknown links."""
        if pages.future is None:
            raise ValueError(f"{self.name} needs to know the future: it can only be replayed")
        unseen = pages.future.unseen_links()
        score, gain = greedy_gains(unseen.start, unseen.links, pages, budget)
        reason = "will show {gain:.0f} unknown links"
        return take(score, pages, budget, reason=reason, detail={"gain": gain}, expected=gain)


@njit(cache=True)
def _greedy(start, links, takes_part, first, k, caps, n_links):  # type: ignore[no-untyped-def]
    """Lazy greedy: a page's gain only falls as more is covered, so only the page on top needs to be counted again."""
    n = len(caps.host)
    turn, gain = np.full(n, -1, np.int64), np.zeros(n)
    covered = np.zeros(n_links, np.bool_)
    n_taken = 0
    for p in range(n):
        if first[p] and n_taken < k and not capped(p, caps):
            covered[links[start[p] : start[p + 1]]] = True
            count_picked(p, caps)
            n_taken += 1
    heap = [
        (-(start[p + 1] - start[p]), p) for p in range(n) if takes_part[p] and not first[p] and start[p + 1] > start[p]
    ]
    heapq.heapify(heap)
    while n_taken < k and len(heap) > 0:
        estimate, p = heapq.heappop(heap)
        if capped(p, caps):
            continue
        adds = 0
        for i in range(start[p], start[p + 1]):
            adds += not covered[links[i]]
        if adds == 0:
            continue
        if adds < -estimate and len(heap) > 0 and (-adds, p) > heap[0]:
            heapq.heappush(heap, (-adds, p))
            continue
        covered[links[start[p] : start[p + 1]]] = True
        turn[p], gain[p] = n_taken, adds
        count_picked(p, caps)
        n_taken += 1
    return turn, gain
