"""What visits would bring: the links that wait on each page, by what the stock model knows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.core.times import US_PER_HOUR, microseconds
from recrawl.policies.harvest.appraisal import Appraisal, appraise, kept_until_next
from recrawl.policies.harvest.siblings import Neighbours, no_pairs
from recrawl.policies.harvest.unshared import share_if_shared
from recrawl.world.pages import Visits

if TYPE_CHECKING:
    from recrawl.policies.harvest.model import StockModel


@dataclass(frozen=True, kw_only=True)
class HarvestPrediction:
    """What visits to some pages would bring: one entry per page."""

    worth: Appraisal
    answers: Floats  # the probability that the page answers
    raw: Floats  # links, by the model alone
    expected: Floats  # links, corrected by how right the model was so far
    is_unseen: Flags  # it never answered
    rate: Floats  # links per hour
    pairs: Neighbours  # that were taken into account


def predict(model: StockModel, hours: float, sweep: float, patience: float) -> HarvestPrediction:
    """What a visit to each page would bring now.

    sweep: hours in which all pages can be visited once; patience: hours after which a link is worth half.
    """
    page, pairs = np.arange(model.n_pages), model.pairs()
    now, last = model.clock(hours)
    gap = np.where(np.isnan(model.gap), sweep, model.gap)
    cycle = max(now - model.clock(hours - model.cycle_hours)[0], 1e-6)
    last = np.where(np.isnan(last), -np.inf, last)
    keeps = kept_until_next(now, last, gap, model.streams, cycle, patience)
    here = _Here(
        page=page,
        hours=np.full(len(page), hours),
        now=np.full(len(page), now),
        until=now,
        last=last,
        followed=model.streams.followed,
        pairs=pairs,
    )
    return _predicted(model, here, keeps, cycle, sweep, patience)


def predict_visits(model: StockModel, visits: Visits, hours: Floats) -> tuple[HarvestPrediction, _Here]:
    """What these visits were to bring, each at its own time; looks at no other pages than theirs and their siblings."""
    sweep, page = model.sweep(visits.n_of_whole), visits.page
    pairs, universe = _pairs_of(model, page)
    last = model.clock_at(model.seen_at[universe])
    last = np.where(np.isnan(last), -np.inf, last)
    now, ended = model.clock_at(hours), microseconds(visits.ended_at) / US_PER_HOUR
    until = float(model.clock_at(ended))
    cycle = max(until - float(model.clock_at(ended - model.cycle_hours)), 1e-6)
    here = _Here(
        page=page, hours=hours, now=now, until=until, last=last, followed=model.streams.followed[page], pairs=pairs
    )
    return _predicted(model, here, np.zeros(len(universe)), cycle, sweep, sweep), here


def _predicted(
    model: StockModel, here: _Here, keeps: Floats, cycle: float, sweep: float, patience: float
) -> HarvestPrediction:
    """The prediction for some pages."""
    page = here.page
    is_unseen = np.isneginf(here.last[: len(page)])
    rate, prior = model.rate(page), model.streams.pseudo_links * model.streams.shares
    worth = Appraisal(
        stock=model.answering.first_links(page),
        urgency=_urgency_of_unseen(model, page, here.hours, patience),
        safety=np.ones(len(page)),
        unshared=np.ones(len(page)),
    )
    seen = np.flatnonzero(~is_unseen)
    of_seen = appraise(
        seen,
        now=here.now[seen],
        last=here.last,
        rate=rate[seen],
        followed=here.followed,
        prior=prior,
        pairs=here.pairs,
        keeps=keeps,
        cycle=cycle,
        patience=patience,
    )
    for name in ("stock", "urgency", "safety", "unshared"):
        getattr(worth, name)[seen] = getattr(of_seen, name)
    answers = model.answering.probability(page, here.hours, sweep)
    if not model.parts.failures:
        answers = np.where(is_unseen, answers, 1.0)
    raw = worth.stock * answers
    return HarvestPrediction(
        worth=worth,
        answers=answers,
        raw=raw,
        expected=model.calibration.expected(raw, is_unseen),
        is_unseen=is_unseen,
        rate=rate,
        pairs=here.pairs,
    )


def _pairs_of(model: StockModel, page: Ints) -> tuple[Neighbours, Ints]:
    """The pairs of some pages, and the pages that they name: these pages first. Pairs name pages by their places there."""
    unshared = model.unshared.share(page)
    if not model.parts.overlap:
        return replace(no_pairs(len(page)), unshared=unshared), page
    of_visit, sibling, at = model.siblings.of_visits(page, np.ones(len(page), np.int64))
    others = np.setdiff1d(sibling, page)
    place = np.minimum(np.searchsorted(page, sibling), len(page) - 1)
    is_own = page[place] == sibling if len(page) else place < 0
    other = np.where(is_own, place, len(page) + np.searchsorted(others, sibling))
    share = model.siblings.shares(at)
    pairs = Neighbours(
        start=np.append(0, np.cumsum(np.bincount(of_visit, minlength=len(page)))),
        other=other,
        share=share,
        if_shared=share_if_shared(share, unshared[of_visit]),
        unshared=unshared,
    )
    return pairs, np.concatenate([page, others])


def _urgency_of_unseen(model: StockModel, page: Ints, hours: Floats, patience: float) -> Floats:
    """A page that never answered loses nothing by waiting, but links found late are worth less."""
    waited = hours - model.answering.visited_at[page]
    decay = np.log(2.0) / patience
    x = decay * np.maximum(np.nan_to_num(waited), 1e-3 * model.cycle_hours)
    cycle = decay * model.cycle_hours
    index = 1.0 - x / cycle * np.exp(-x) * np.expm1(-cycle) / np.expm1(-x)
    return np.where(np.isnan(waited), 1.0, np.clip(index, 0.0, 1.0))


@dataclass(frozen=True, kw_only=True)
class _Here:
    """Some pages at some times, with what is needed of their siblings."""

    page: Ints
    hours: Floats  # since 1970, one entry per page
    now: Floats  # the same by the rhythm's clock
    until: float  # the last of these
    last: Floats  # by that clock, of every page that pairs name, these pages first; -infinite: never seen
    followed: Floats  # one row per page, see `Streams`
    pairs: Neighbours
