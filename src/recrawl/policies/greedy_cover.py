"""Greedy set cover within a budget: again and again the page that adds most links to those covered."""

from __future__ import annotations

import heapq
from dataclasses import replace

import numpy as np
from numba import njit

from recrawl.core.arrays import Flags, Floats, Ints, Ints32
from recrawl.policies.budget import Budget
from recrawl.policies.picking import capped, caps_of, count_picked
from recrawl.world.pages import Pages


def greedy_gains(
    start: Ints, links: Ints32, pages: Pages, budget: Budget, first: Flags | None = None
) -> tuple[Floats, Floats]:
    """For every page a score that falls in the order of greedy set cover, and the distinct links that it adds in its turn.

    Page p shows ``links[start[p]:start[p + 1]]``. Pages in `first` are taken before all others and cover what they show; barred
    pages take no part. Both are 0 for pages that add nothing or whose turn does not come within the budget. Where pages differ in
    importance, the next one is that with the greatest product of links and importance.

    >>> pages = Pages.unseen(site=np.arange(3), host=np.arange(3))
    >>> start, links = np.array([0, 2, 5, 6]), np.array([1, 2, 2, 3, 4, 1], np.int32)
    >>> greedy_gains(start, links, pages, Budget(3))
    (array([2., 3., 0.]), array([1., 3., 0.]))
    """
    n = len(pages)
    takes_part = np.ones(n, np.bool_) if budget.barred is None else budget.barred == 0
    turn, gain = _greedy(
        start,
        links,
        takes_part,
        np.zeros(n, np.bool_) if first is None else first & takes_part,
        np.ones(n) if pages.importance is None else pages.importance,
        min(budget.pages, n),
        caps_of(pages, replace(budget, taken=None)),
        int(links.max()) + 1 if len(links) else 0,
    )
    return np.where(turn >= 0, n - turn, 0).astype(np.float64), gain


@njit(cache=True)
def _greedy(start, links, takes_part, first, importance, k, caps, n_links):  # type: ignore[no-untyped-def]
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
        (-importance[p] * (start[p + 1] - start[p]), p)
        for p in range(n)
        if takes_part[p] and not first[p] and start[p + 1] > start[p]
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
        worth = importance[p] * adds
        if worth < -estimate and len(heap) > 0 and (-worth, p) > heap[0]:
            heapq.heappush(heap, (-worth, p))
            continue
        covered[links[start[p] : start[p + 1]]] = True
        turn[p], gain[p] = n_taken, adds
        count_picked(p, caps)
        n_taken += 1
    return turn, gain
