"""Pick the best page, then the next best given that one: a page that was picked takes the links that its siblings share with it."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numba import njit

from recrawl.core.arrays import Flags, Floats, Ints, Ints8
from recrawl.policies.budget import Cause
from recrawl.policies.harvest.siblings import Neighbours
from recrawl.policies.harvest.streams import HAZARDS, seen_one, weigh
from recrawl.policies.picking import Caps, capped, count_picked

_PICKED, _CUT = int(Cause.PICKED), int(Cause.BELOW_CUT)


def no_caps(n_pages: int) -> Caps:
    """Any number of pages per host and site."""
    same, none = np.zeros(n_pages, np.int64), np.zeros(max(n_pages, 1), np.int64)
    return Caps(host=same, per_host=n_pages + 1, of_host=none, site=same, per_site=n_pages + 1, of_site=none.copy())


class _Stock(NamedTuple):
    """What is known of the pages' unseen links, as the kernel takes it."""

    score: Floats
    unshared: Floats
    now: float
    last: Floats
    followed: Floats
    prior: Floats
    hazards: Floats


class _Pairs(NamedTuple):
    """Pairs by the page that shows the links: `Neighbours`, as the kernel takes them."""

    start: Ints
    other: Ints
    if_shared: Floats


def pick(
    *,
    score: Floats,
    unshared: Floats,
    first: Ints,
    may: Flags,
    k: int,
    caps: Caps,
    now: float,
    last: Floats,
    followed: Floats,
    prior: Floats,
    pairs: Neighbours,
) -> tuple[Ints, Floats, Ints8, Floats]:
    """Up to `k` pages: those of `first` in their order, then greedily by score, ties in the order of the pages.

    When p is picked, the shared part of each sibling r is multiplied by 1 - b_rp · (share of r's stock that is newer than p's last
    visit). `unshared`: the part of each page's stock that no sibling could have shown; `pairs`: by the page that shows the
    links (`Siblings.neighbours` reversed). Returns the pages, the factor that is left of every page's score, its cause, and the
    negative worth by which it was picked or passed over when it was its turn: ascending in that order, those of `first` apart.
    """
    cause, worth = np.full(len(score), _CUT, np.int8), -score
    factor = np.ones(len(score))
    order = np.flatnonzero(may)
    order = order[np.argsort(-score[order], kind="stable")]
    has_caps = min(caps.per_host, caps.per_site) <= len(score)
    if not len(pairs.other) and not has_caps:  # nothing depends on what was picked before
        is_first = np.zeros(len(score), np.bool_)
        is_first[first] = True
        chosen = np.concatenate([first[may[first]], order[~is_first[order]]])[:k]
        cause[chosen] = _PICKED
        return chosen, factor, cause, worth
    stock = _Stock(
        score=score,
        unshared=unshared,
        now=float(now),
        last=last,
        followed=followed,
        prior=prior,
        hazards=HAZARDS,
    )
    by_shower = _Pairs(pairs.start, pairs.other, pairs.if_shared)
    chosen = _pick(stock, by_shower, order, first, may, k, caps, cause, factor, worth)
    return chosen, factor, cause, worth


@njit(cache=True)
def _pick(stock, pairs, order, first, may, k, caps, cause, factor, by_worth):  # type: ignore[no-untyped-def]
    score = stock.score
    n_pages = len(score)
    chosen = np.empty(min(k, n_pages), np.int64)
    n_chosen, n_first, n_seen = 0, 0, 0
    weights, left = np.empty(len(stock.prior)), np.ones(n_pages)
    # Only pages that are worth less than they were; all others are in `order`. The first entry fixes the type, and goes.
    heap = [(0.0, np.int64(0))]
    heap.pop()
    while n_chosen < len(chosen):
        if n_first < len(first):
            p = first[n_first]
            n_first += 1
        else:
            if n_seen == len(order) and not heap:
                break
            if n_seen < len(order) and (not heap or (-score[order[n_seen]], order[n_seen]) < heap[0]):
                p = order[n_seen]
                worth = -score[p]
                n_seen += 1
            else:
                worth, p = heapq.heappop(heap)
            if cause[p] != _PICKED and -score[p] * factor[p] > worth + 1e-12 * abs(worth):
                heapq.heappush(heap, (-score[p] * factor[p], p))  # a sibling was picked since
                continue
            if cause[p] == _CUT:
                by_worth[p] = worth
        if cause[p] == _PICKED or not may[p]:
            continue
        beyond = capped(p, caps)
        if beyond:
            cause[p] = beyond
            continue
        chosen[n_chosen] = p
        n_chosen += 1
        cause[p] = _PICKED
        count_picked(p, caps)
        _discount(p, stock, pairs, cause, weights, left, factor)
    return chosen[:n_chosen]


@njit(cache=True)
def _discount(p, stock, pairs, cause, weights, left, factor):  # type: ignore[no-untyped-def]
    """What is left of the siblings' value, now that `p` is picked."""
    now, last, unshared = stock.now, stock.last, stock.unshared
    for at in range(pairs.start[p], pairs.start[p + 1]):
        r = pairs.other[at]
        if cause[r] == _PICKED or np.isnan(last[r]):
            continue
        waited = max(now - last[r], 1e-6)
        newer = waited if np.isnan(last[p]) else min(waited, max(now - last[p], 0.0))
        part = 1.0
        if newer < waited:
            weigh(stock.followed[r], stock.prior, weights)
            part = seen_one(weights, stock.hazards, newer) / seen_one(weights, stock.hazards, waited)
        left[r] *= 1.0 - pairs.if_shared[at] * part
        factor[r] = unshared[r] + (1.0 - unshared[r]) * left[r]
