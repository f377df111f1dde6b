"""Pick the best page, then the next best given that one: a page that was picked takes what its siblings would have shown."""

from __future__ import annotations

import heapq

import numpy as np
from numba import njit
from numpy.typing import NDArray

from recrawl.policies.base import Cause, Flags, Floats, Ints
from recrawl.policies.select import Caps
from recrawl.policies.stock.siblings import Neighbours
from recrawl.policies.stock.streams import HAZARDS, Streams, seen_one, weigh

_PICKED, _CUT, _HOST, _SITE = (int(c) for c in (Cause.PICKED, Cause.BELOW_CUT, Cause.HOST_CAP, Cause.SITE_CAP))


def no_caps(n_pages: int) -> Caps:
    """As many pages of one host or site as anyone likes."""
    one = np.zeros(n_pages, np.int64)
    return one, n_pages + 1, np.zeros(max(n_pages, 1), np.int64), one, n_pages + 1, np.zeros(max(n_pages, 1), np.int64)


def pick(
    score: Floats,
    alone: Floats,
    first: Ints,
    may: Flags,
    n: int,
    caps: Caps,
    now: float,
    last: Floats,
    streams: Streams,
    showers: Neighbours,
) -> tuple[Ints, Floats, NDArray[np.int8]]:
    """Up to `n` pages: those of `first` in their order, then greedily by score, ties in the order of the pages.

    When p is picked, what each sibling r has not alone is multiplied by 1 - b_rp · (share of r's stock that came after p's last
    visit). `alone`: the part of each page's stock that no sibling could have shown; `showers`: the pairs by the page that shows the
    links (`Siblings.neighbours` reversed). The pages, the factor that is left of every page's score, and its cause.
    """
    cause = np.full(len(score), _CUT, np.int8)
    factor = np.ones(len(score))
    order = np.flatnonzero(may)
    order = order[np.argsort(-score[order], kind="stable")]
    if not len(showers.other) and min(caps[1], caps[4]) > len(score):  # nothing depends on what was picked before
        is_first = np.zeros(len(score), np.bool_)
        is_first[first] = True
        chosen = np.concatenate([first[may[first]], order[~is_first[order]]])[:n]
        cause[chosen] = _PICKED
        return chosen, factor, cause
    prior = streams.pseudo_links * streams.shares
    chosen = _pick(
        score, alone, order, first, may, n, *caps, now, last, streams.followed, prior, HAZARDS, showers.start, showers.other,
        showers.given, cause, factor,
    )  # fmt: skip
    return chosen, factor, cause


@njit(cache=True)
def _pick(  # type: ignore[no-untyped-def]
    score, alone, order, first, may, n, host, per_host, of_host, site, per_site, of_site, now, last, followed, prior, hazards,
    start, other, given, cause, factor,
):  # fmt: skip
    n_pages = len(score)
    chosen = np.empty(min(n, n_pages), np.int64)
    n_chosen, n_first, n_seen = 0, 0, 0
    weights, left = np.empty(len(prior)), np.ones(n_pages)
    heap = [
        (0.0, np.int64(0)) for _ in range(0)
    ]  # only pages that are worth less than they were: all others stand in order
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
        if cause[p] == _PICKED or not may[p]:
            continue
        if of_host[host[p]] >= per_host:
            cause[p] = _HOST
            continue
        if of_site[site[p]] >= per_site:
            cause[p] = _SITE
            continue
        chosen[n_chosen] = p
        n_chosen += 1
        cause[p] = _PICKED
        of_host[host[p]] += 1
        of_site[site[p]] += 1
        for at in range(start[p], start[p + 1]):
            r = other[at]
            if cause[r] == _PICKED or np.isnan(last[r]):
                continue
            waited = max(now - last[r], 1e-6)
            newer = waited if np.isnan(last[p]) else min(waited, max(now - last[p], 0.0))
            part = 1.0
            if newer < waited:
                weigh(followed[r], prior, weights)
                part = seen_one(weights, hazards, newer) / seen_one(weights, hazards, waited)
            left[r] *= 1.0 - given[at] * part
            factor[r] = alone[r] + (1.0 - alone[r]) * left[r]
    return chosen[:n_chosen]
