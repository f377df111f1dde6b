"""What a visit to each page is worth now: the stock of unseen links, how soon it will be lost, and whether a sibling keeps it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from recrawl.core.arrays import Floats, Ints
from recrawl.core.workers import over_ranges
from recrawl.policies.harvest.siblings import Neighbours
from recrawl.policies.harvest.streams import HAZARDS, Streams, seen_one, weigh

OVERDUE = 2.0  #: usual gaps after which a page is overdue


@dataclass(frozen=True, kw_only=True)
class Appraisal:
    """What a visit to some pages is worth: one entry per page."""

    stock: Floats  # links that wait there, and that no sibling has shown
    urgency: Floats  # which part of it will be lost if the page waits, in proportion
    safety: Floats  # which part no sibling will show
    unshared: Floats  # which part of the stock no sibling could have shown


def appraise(
    page: Ints,
    *,
    now: Floats,
    last: Floats,
    rate: Floats,
    followed: Floats,
    prior: Floats,
    pairs: Neighbours,
    keeps: Floats,
    cycle: float,
    patience: float,
) -> Appraisal:
    """Appraise pages that were seen before. Times are clock hours; `now` and `rate` have one entry for each of them.

    `last`, `keeps` (see `kept_until_next`), `followed` and `pairs` have one for every page that a pair may name.

    stock: G = λ ∫ S(now - s) [o_p + (1 - o_p) ∏ (1 - b_pq)] ds from the last visit until now, with S(t) = Σ w_j e^(-δ_j t) the
    links' survival by streams, o_p the share of links that are on p only, and the product over the siblings q visited after s,
    each of which shows b_pq of the other links; piecewise between their visits, in closed form.

    urgency: with g(τ) = ∫₀^τ S, the index [g(τ) - τ (g(τ+1) - g(τ))]/g(τ), τ in cycles. It is 0 where nothing is lost by waiting
    and 1 where nothing can be gained by it. A link found late is worth less: its value halves in `patience` hours, as if it might
    leave.

    safety: o_p + (1 - o_p) ∏ (1 - b_pq · S_q(usual gap of q)): a sibling that shows a link and keeps it until its next visit saves
    it.
    """
    stock, urgency, safety, unshared = (np.zeros(len(page)) for _ in range(4))
    decay = np.log(2.0) / patience
    of_pairs = (pairs.start, pairs.other, pairs.if_shared, pairs.unshared)
    known = (page, now, last, rate, followed, prior, HAZARDS, *of_pairs, keeps)
    result = (stock, urgency, safety, unshared)
    over_ranges(len(page), lambda low, high: _appraise(low, high, known, cycle, decay, result))
    return Appraisal(stock=stock, urgency=urgency, safety=safety, unshared=unshared)


def kept_until_next(
    now: float, last: Floats, usual_gap: Floats, streams: Streams, cycle: float, patience: float
) -> Floats:
    """The share of each page's links that its next visit will still find; 0 for pages that are overdue.

    Siblings that are overdue (`OVERDUE` usual gaps and a cycle) must not count: else each would wait for the others, for ever.
    """
    keeps = np.empty(len(last))
    prior, decay = streams.pseudo_links * streams.shares, np.log(2.0) / patience
    over_ranges(
        len(last), lambda low, high: _keeps(low, high, streams.followed, prior, HAZARDS, decay, usual_gap, keeps)
    )
    keeps[~(now - last <= OVERDUE * usual_gap + cycle)] = 0.0
    return keeps


@njit(cache=True, nogil=True)
def _keeps(low, high, followed, prior, hazards, decay, gap, keeps):  # type: ignore[no-untyped-def]
    """The share of each page's links that are still there after its usual gap, as far as they are worth something then."""
    weights = np.empty(len(prior))
    for p in range(low, high):
        weigh(followed[p], prior, weights)
        keeps[p] = 0.0
        for j in range(len(prior)):
            keeps[p] += weights[j] * np.exp(-(hazards[j] + decay) * gap[p])


@njit(cache=True, nogil=True)
def _appraise(low, high, known, cycle, decay, result):  # type: ignore[no-untyped-def]
    page, now, last, rate, followed, prior, hazards, start, other, if_shared, share_unshared, keeps = known
    stock, urgency, safety, unshared = result
    weights = np.empty(len(prior))
    decayed = hazards + decay
    for i in range(low, high):
        p = page[i]
        waited = max(now[i] - last[p], 1e-6)
        weigh(followed[p], prior, weights)
        gained, gained_later = seen_one(weights, decayed, waited), seen_one(weights, decayed, waited + cycle)
        index = (gained - waited / cycle * (gained_later - gained)) / gained
        urgency[i] = min(max(index, 0.0), 1.0)
        own, saved_by_none = share_unshared[p], 1.0
        n_later = 0
        for at in range(start[p], start[p + 1]):
            saved_by_none *= 1.0 - if_shared[at] * keeps[other[at]]
            n_later += last[other[at]] > last[p]
        safety[i] = own + (1.0 - own) * saved_by_none
        whole = seen_one(weights, hazards, waited)
        if n_later == 0:
            stock[i], unshared[i] = rate[i] * whole, own
            continue
        ago, kept = np.empty(n_later), np.empty(n_later)
        n = 0
        for at in range(start[p], start[p + 1]):
            if last[other[at]] > last[p]:
                ago[n], kept[n] = min(max(now[i] - last[other[at]], 0.0), waited), 1.0 - if_shared[at]
                n += 1
        # From now backwards: links newer than the latest visit to a sibling are on none of them, older ones may be on that one.
        before, remaining, unseen = 0.0, 1.0, 0.0
        for at in np.argsort(ago):
            until = seen_one(weights, hazards, ago[at])
            unseen += remaining * (until - before)
            before = until
            remaining *= kept[at]
        unseen = own * whole + (1.0 - own) * (unseen + remaining * (whole - before))
        stock[i], unshared[i] = rate[i] * unseen, own * whole / unseen
