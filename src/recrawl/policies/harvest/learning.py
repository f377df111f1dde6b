"""How the stock model learns from a batch of visits: what arrived, what stayed, who shares it, and how right it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from recrawl.core.arrays import Flags, Floats, Ints, LinkLists
from recrawl.core.whole import sampled
from recrawl.policies.harvest.contribution import Contribution
from recrawl.policies.harvest.interval import MAX_JUDGED
from recrawl.policies.harvest.pick import no_caps, pick
from recrawl.policies.harvest.prediction import predict_visits
from recrawl.policies.harvest.siblings import no_pairs, reversed_pairs
from recrawl.policies.harvest.unshared import share_if_shared
from recrawl.world.pages import Visits

if TYPE_CHECKING:
    from recrawl.policies.harvest.model import StockModel

USUAL = 0.3  #: weight of the newest gap in a page's usual one
SETTLED = 3  #: batches before predictions are judged: the first ones rest on next to nothing
FEW = 3  #: answers of a page before its counts show how links arrive in batches


def judge(model: StockModel, visits: Visits, hours: Floats, adds: Contribution) -> Ints:
    """Compare the prediction for the visits with what they brought: new links of each, every link counted once."""
    n = len(visits)
    if model.n_cycles < SETTLED:
        return credited(visits.page, np.zeros(n), visits)
    adds.is_judged = True
    predicted, here = predict_visits(model, visits, hours)
    order, factor, _, worth = pick(
        score=predicted.raw,
        unshared=predicted.worth.unshared,
        first=np.empty(0, np.int64),
        may=np.ones(n, np.bool_),
        k=n,
        caps=no_caps(n),
        now=here.until,
        last=np.where(np.isneginf(here.last[:n]), np.nan, here.last[:n]),
        followed=here.followed,
        prior=model.streams.pseudo_links * model.streams.shares,
        pairs=reversed_pairs(here.pairs, n) if model.parts.discount else no_pairs(n),
    )
    brought = np.zeros(n, np.int64)
    brought[order] = credited(visits.page[order], -worth[order], visits)
    raw, kind = predicted.raw * factor, predicted.is_unseen.astype(np.int64)
    adds.found = np.bincount(kind, brought, 2).astype(np.int64)
    adds.due.add(raw, kind)
    ids = model.ids[visits.page]
    some = sampled(ids, visits.n_of_whole, MAX_JUDGED)
    adds.judged = {
        "id": ids[some],
        "raw": raw[some],
        "brought": brought[some].astype(np.float64),
        "unseen": kind[some].astype(np.float64),
        "answers": predicted.answers[some],
        "shape": model.shape(visits.page[some]),
    }
    return brought


def learn(model: StockModel, visits: Visits, hours: Floats, adds: Contribution) -> None:
    """What arrived on pages that were seen before, how much of what had arrived stayed, and which siblings show it, too."""
    page = visits.page
    since = np.where(np.isnan(model.seen_at[page]), np.inf, model.seen_at[page])
    arrivals = model.sightings.arrivals(page, visits.answered, since, visits.shown, hours, model.site)
    place = np.flatnonzero(visits.answered & (visits.n_new_since >= 0) & np.isfinite(since))
    again, gap = page[place], np.maximum(hours[place] - since[place], 0.0)
    waited = np.maximum(model.clock_at(hours[place]) - model.clock_at(since[place]), 1e-6)
    usual = np.where(np.isnan(model.gap[again]), gap, model.gap[again])
    kept = 0.5 ** (gap / _half_life(model, usual))
    n_arrived = arrivals.sizes[place]
    rate = model.rate(again)
    if model.n_cycles:
        squares = _spread(model, again, n_arrived, rate, waited)
        adds.squares.add(squares)
        adds.n_squares = len(squares)
        adds.arrivals = model.rhythm.by_hour(since[place], hours[place], n_arrived.astype(np.float64), rate)
        if model.parts.overlap:
            _learn_sharing(model, visits, hours, arrivals, place, kept)
    n_before, gap_before = model.cohorts.size[again], model.cohorts.gap[again]
    n_stayed = model.cohorts.stayed(again, place, visits.shown)
    if model.parts.overlap:
        _learn_unshared(model, visits, again, n_before, kept)
    if not model.parts.lifetimes:
        n_before, n_stayed = np.zeros_like(n_before), np.zeros_like(n_stayed)
    model.streams.learn(again, waited, n_arrived.astype(np.float64), n_before, n_stayed, gap_before, kept)
    model.gap[again] = (1 - USUAL) * usual + USUAL * gap
    follows = np.zeros(len(page), np.bool_)
    follows[place] = True
    gaps = np.zeros(len(page))
    gaps[place] = waited
    answered = visits.answered
    model.cohorts.replace(page[answered], _of(arrivals, answered), gaps[answered], follows[answered])


def _half_life(model: StockModel, usual_gap: Floats) -> Floats:
    """Hours after which a page's past counts half: one that is hardly ever visited must not count as quiet for ever."""
    visits = model.parts.half_life_visits * np.minimum(usual_gap, model.usual_sweep)
    return np.maximum(24.0 * model.parts.half_life_days, visits)


def _spread(model: StockModel, page: Ints, n_arrived: Ints, rate: Floats, waited: Floats) -> Floats:
    """How much counts vary beyond chance: squared deviations, in units of their mean."""
    mean = rate * model.streams.seen(page, waited)
    counts = (model.n_answers[page] >= FEW) & (mean > 0)
    squares: Floats = np.minimum((n_arrived - mean) ** 2 / np.maximum(mean, 0.05), 400.0)[counts]
    return squares


def _learn_sharing(
    model: StockModel, visits: Visits, hours: Floats, arrivals: LinkLists, place: Ints, kept: Floats
) -> None:
    """Which siblings show the links that arrived."""
    again, n_arrived = visits.page[place], arrivals.sizes[place]
    weight = np.zeros(len(visits))  # 0 for pages seen for the first time: what arrived there is not known
    weight[place] = np.minimum(1.0, model.siblings.per_visit / np.maximum(n_arrived, 1))
    keys, links = model.sightings.shared(visits.page, arrivals, weight, model.site, model.siblings.most)
    model.siblings.add_new(keys)
    of_visit, sibling, at = model.siblings.of_visits(again, n_arrived)
    visible = _share_visible(model, visits, hours, place[of_visit], sibling)
    model.siblings.learn(again, n_arrived, at, of_visit, visible, kept)
    model.siblings.hit(keys, links)


def _learn_unshared(model: StockModel, visits: Visits, again: Ints, n_before: Ints, kept: Floats) -> None:
    """Which of the links that had arrived on pages when they were last seen no sibling has shown since."""
    of_visit, sibling, at = model.siblings.of_visits(again, n_before)
    page = again[of_visit]
    was_visited = (_place_of(sibling, visits) >= 0) | (model.seen_at[sibling] >= model.seen_at[page])
    shown = share_if_shared(model.siblings.shares(at), model.unshared.share(page)) * was_visited
    missed = np.exp(np.bincount(of_visit, np.log1p(-shown), len(again)))
    n_unshared = model.sightings.unshared(again, *model.cohorts.held(again), model.site)
    model.unshared.learn(again, n_before, n_unshared, missed, kept)


def _share_visible(model: StockModel, visits: Visits, hours: Floats, visit: Ints, sibling: Ints) -> Floats:
    """The share of the links that arrived at some visits that had arrived when a sibling of the page was last visited."""
    page, place = visits.page[visit], _place_of(sibling, visits)
    now = model.clock_at(hours[visit])
    waited = np.maximum(now - model.clock_at(model.seen_at[page]), 1e-6)
    seen_at = np.where(place >= 0, hours[np.maximum(place, 0)], model.seen_at[sibling])
    since = np.maximum(now - model.clock_at(seen_at), 0.0)
    since = np.clip(np.where(np.isnan(since), waited, since), 0.0, waited)
    later, whole = model.streams.seen(page, since), model.streams.seen(page, waited)
    visible: Floats = 1.0 - later / np.maximum(whole, 1e-12)
    return visible


def _place_of(page: Ints, visits: Visits) -> Ints:
    """The place of each page among the visits that answered; -1 where it has none."""
    if not len(visits):
        return np.full(len(page), -1, np.int64)
    place = np.minimum(np.searchsorted(visits.page, page), len(visits) - 1)
    return np.where((visits.page[place] == page) & visits.answered[place], place, -1)


def _of(lists: LinkLists, which: Flags) -> LinkLists:
    """Some of the lists."""
    start = np.append(0, np.cumsum(lists.sizes[which]))
    return LinkLists(start, lists.links[np.repeat(which, lists.sizes)])


def credited(order: Ints, worth: Floats, visits: Visits) -> Ints:
    """New links of the pages in this order, by worth: a link counts for the first page that shows it, here or in other parts."""
    # There may be a hundred million links, but those that are new were numbered last; and memory is used where it is written to.
    low, high = (int(visits.new.links.min()), int(visits.new.links.max())) if len(visits.new.links) else (0, -1)
    first = np.full(high - low + 1, -1, np.int32)
    new: Ints = _credited(np.searchsorted(visits.page, order), visits.new.start, visits.new.links, low, first)
    if visits.contested is not None:
        claim = first[visits.contested - low]  # the place of the page
        is_first = visits.whole.first_claims(visits.contested, worth[claim], order[claim])
        np.subtract.at(new, claim[~is_first], 1)
    return new


@njit(cache=True)
def _credited(place, start, links, low, first):  # type: ignore[no-untyped-def]
    new = np.zeros(len(place), np.int64)
    for i in range(len(place)):
        for at in range(start[place[i]], start[place[i] + 1]):
            if first[links[at] - low] < 0:
                first[links[at] - low] = i
                new[i] += 1
    return new
