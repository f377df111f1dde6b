"""The stock model as a whole: it learns from visits, and predicts how many unseen links wait on each page."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numba import njit

from recrawl.core.arrays import Flags, Floats, Ints, LinkLists
from recrawl.core.growing import grown
from recrawl.core.times import US_PER_HOUR, microseconds
from recrawl.policies.harvest.answering import Answering
from recrawl.policies.harvest.appraisal import Appraisal, appraise, kept_until_next
from recrawl.policies.harvest.cohorts import Cohorts
from recrawl.policies.harvest.interval import Calibration
from recrawl.policies.harvest.parts import Parts
from recrawl.policies.harvest.pick import no_caps, pick
from recrawl.policies.harvest.prior import Prior
from recrawl.policies.harvest.rhythm import Rhythm
from recrawl.policies.harvest.siblings import Neighbours, Siblings
from recrawl.policies.harvest.sightings import Sightings
from recrawl.policies.harvest.streams import Streams
from recrawl.policies.harvest.unshared import UnsharedLinks, share_if_shared
from recrawl.world.pages import Pages, Visits

if TYPE_CHECKING:
    from recrawl.world.related import Related

USUAL = 0.3  #: weight of the newest gap in a page's usual one
REFIT = 1.1  #: what all pages share is learnt again when the number of visits or batches has grown by this factor
SETTLED = 3  #: batches before predictions are judged: the first ones rest on next to nothing
FEW = 3  #: answers of a page before its counts show how links arrive in batches
EVERY = slice(None)
RECENT = 50  #: batches that show how long one usually is


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


class StockModel:
    """Everything that was learnt about a collection's unseen links."""

    not_kept: ClassVar[tuple[str, ...]] = ("_with_related",)

    def __init__(self, pages: Pages, parts: Parts) -> None:
        n = len(pages)
        self.parts, self.site = parts, pages.site
        self.groups = (pages.site, *(pages.url_groups if parts.folders else ()))
        self.rhythm, self.streams, self.prior = Rhythm(), Streams(n), Prior(n)
        self.sightings, self.siblings, self.cohorts = Sightings(), Siblings(pages.site), Cohorts(n)
        self.unshared = UnsharedLinks(n) if parts.alone else UnsharedLinks(n, share=0.0)
        self.answering, self.calibration = Answering(pages.site), Calibration()
        self.seen_at = np.full(n, np.nan)  # hours since 1970 of the last answer
        self.n_answers = np.zeros(n, np.int64)
        self.gap = np.full(n, np.nan)  # usual hours between two answers
        self.size = np.full(n, np.nan)  # links on the page
        self.cycle_hours = 24.0
        self.began = np.inf  # hours since 1970 of the first visits
        self._squares, self._n_squares = 50.0, 10.0  # of the counts' deviations: a dispersion of 5 to begin with
        self._times: list[float] = []
        self._n_visits: list[int] = []  # of recent batches
        self.n_cycles = 0  # batches so far
        self.n_visits, self._next_fit, self._next_cycle = 0, 1, 1  # after how many of both all is learnt again
        self._fitted: _Fitted | None = None  # what the prior was last learnt from
        self._with_related: tuple[_Fitted, Related, Prior] | None = None

    def extend(self, pages: Pages) -> None:
        """More pages are known."""
        n = len(pages)
        self.site = pages.site
        self.groups = (pages.site, *(pages.url_groups if self.parts.folders else ()))
        for part in (self.streams, self.prior, self.cohorts, self.unshared):
            part.extend_to(n)
        self.siblings.extend(pages.site)
        self.answering.extend(pages.site)
        self.n_answers = grown(self.n_answers, n)
        for name in ("seen_at", "gap", "size"):
            setattr(self, name, grown(getattr(self, name), n, np.nan))

    @property
    def n_pages(self) -> int:
        """How many pages there are."""
        return len(self.site)

    # -- what is expected ----------------------------------------------------------------------------------------------

    @property
    def dispersion(self) -> float:
        """φ: the variance of a page's counts, in units of their mean."""
        return max(self._squares / self._n_squares, 1.0)

    def rate(self, page: Ints | slice = EVERY) -> Floats:
        """Links per hour (of the rhythm's clock), for some pages or all."""
        return self._rates(page)[0]

    def shape(self, page: Ints) -> Floats:
        """The shape of the gamma distribution of each page's rate: how well it is known."""
        return self._rates(page)[1]

    def _rates(self, page: Ints | slice) -> tuple[Floats, Floats]:
        return self.prior.posterior(self.streams.arrivals[page], self.streams.exposures(page), page, self.dispersion)

    def room(self, page: Ints) -> Floats:
        """The most links that each of these pages may show: as many as it has, or as pages have on average if those are more."""
        usual = np.ceil(self.size[~np.isnan(self.size)].mean()) if (self.n_answers > 0).any() else np.inf
        return np.where(np.isnan(self.size[page]), np.inf, np.maximum(self.size[page], usual))

    def clock(self, hours: float) -> tuple[float, Floats]:
        """Now, and when each page was last seen (NaN: never), by the rhythm's clock."""
        if not self.parts.rhythm:
            return hours, self.seen_at
        return float(self.rhythm.at(hours)), self.rhythm.at(self.seen_at)

    def pairs(self, is_reversed: bool = False) -> Neighbours:
        """Siblings that show the same links; none where that part is left out."""
        if not self.parts.overlap or (is_reversed and not self.parts.discount):
            return replace(_no_pairs(self.n_pages), unshared=self.unshared.share())
        return self.siblings.neighbours(self.unshared.share(), is_reversed)

    def clock_at(self, hours: Floats | float) -> Floats:
        """The rhythm's clock at some times; NaN where the time is."""
        return self.rhythm.at(hours) if self.parts.rhythm else np.asarray(hours)

    def predict(self, hours: float, sweep: float, patience: float) -> HarvestPrediction:
        """What a visit to each page would bring now.

        sweep: hours in which all pages can be visited once; patience: hours after which a link is worth half.
        """
        page, pairs = np.arange(self.n_pages), self.pairs()
        now, last = self.clock(hours)
        gap = np.where(np.isnan(self.gap), sweep, self.gap)
        cycle = max(now - self.clock(hours - self.cycle_hours)[0], 1e-6)
        last = np.where(np.isnan(last), -np.inf, last)
        keeps = kept_until_next(now, last, gap, self.streams, cycle, patience)
        here = _Here(
            page=page,
            hours=np.full(len(page), hours),
            now=np.full(len(page), now),
            last=last,
            followed=self.streams.followed,
            pairs=pairs,
        )
        return self._predicted(here, keeps, cycle, sweep, patience)

    def _predict_visits(self, visits: Visits, hours: Floats) -> tuple[HarvestPrediction, _Here]:
        """What these visits were to bring, each at its own time; looks at no other pages than theirs and their siblings."""
        sweep, page = self._sweep(len(visits)), visits.page
        pairs, universe = self._pairs_of(page)
        last = self.clock_at(self.seen_at[universe])
        last = np.where(np.isnan(last), -np.inf, last)
        now = self.clock_at(hours)
        cycle = max(
            float(np.max(now, initial=0.0) - self.clock_at(float(np.max(hours, initial=0.0)) - self.cycle_hours)), 1e-6
        )
        here = _Here(page=page, hours=hours, now=now, last=last, followed=self.streams.followed[page], pairs=pairs)
        return self._predicted(here, np.zeros(len(universe)), cycle, sweep, sweep), here

    def _predicted(self, here: _Here, keeps: Floats, cycle: float, sweep: float, patience: float) -> HarvestPrediction:
        """The prediction for some pages."""
        page = here.page
        is_unseen = np.isneginf(here.last[: len(page)])
        rate, prior = self.rate(page), self.streams.pseudo_links * self.streams.shares
        worth = Appraisal(
            stock=self.answering.first_links(page),
            urgency=self._urgency_of_unseen(page, here.hours, patience),
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
        answers = self.answering.probability(page, here.hours, sweep)
        if not self.parts.failures:
            answers = np.where(is_unseen, answers, 1.0)
        raw = worth.stock * answers
        return HarvestPrediction(
            worth=worth,
            answers=answers,
            raw=raw,
            expected=self.calibration.expected(raw, is_unseen),
            is_unseen=is_unseen,
            rate=rate,
            pairs=here.pairs,
        )

    def _pairs_of(self, page: Ints) -> tuple[Neighbours, Ints]:
        """The pairs of some pages, and the pages that they name: these pages first. Pairs name pages by their places there."""
        unshared = self.unshared.share(page)
        if not self.parts.overlap:
            return replace(_no_pairs(len(page)), unshared=unshared), page
        of_visit, sibling, at = self.siblings.of_visits(page, np.ones(len(page), np.int64))
        others = np.setdiff1d(sibling, page)
        place = np.minimum(np.searchsorted(page, sibling), len(page) - 1)
        is_own = page[place] == sibling if len(page) else place < 0
        other = np.where(is_own, place, len(page) + np.searchsorted(others, sibling))
        share = self.siblings.shares(at)
        pairs = Neighbours(
            start=np.append(0, np.cumsum(np.bincount(of_visit, minlength=len(page)))),
            other=other,
            share=share,
            if_shared=share_if_shared(share, unshared[of_visit]),
            unshared=unshared,
        )
        return pairs, np.concatenate([page, others])

    def at(self, hours: float, related: Related | None) -> StockModel:
        """The model at a moment; a copy that shares what does not change, so that asking changes nothing.

        related: pages with similar text, if known. They count for what is expected, not for what is learnt, since pages are
        related by what they say now.
        """
        model = copy.copy(self)
        if len(self._times) == 1 or (related is not None and self.parts.related):
            model.prior = copy.deepcopy(self.prior)
            if len(self._times) == 1:
                model.expect_cycle(hours)
            if related is not None and self.parts.related and self._fitted is not None:
                model.prior = self._related_prior(self._fitted, related)
        return model

    def _related_prior(self, fitted: _Fitted, related: Related) -> Prior:
        """The prior with related pages, worked out once for each that was learnt."""
        cached = self._with_related
        if cached is None or cached[0] is not fitted or cached[1] is not related:
            cached = self._with_related = fitted, related, copy.deepcopy(self.prior)
            self._refit(cached[2], fitted, related)
        return cached[2]

    def expect_cycle(self, hours: float) -> None:
        """After one crawl all that is known of a cycle's length is that it has lasted until now."""
        has_lasted = hours - self._times[0] if len(self._times) == 1 else 0.0
        if has_lasted > 0 and self.cycle_hours != has_lasted:
            self.cycle_hours = has_lasted
            self._refit_prior()

    def _urgency_of_unseen(self, page: Ints, hours: Floats, patience: float) -> Floats:
        """A page that never answered loses nothing by waiting, but links found late are worth less."""
        waited = hours - self.answering.visited_at[page]
        decay = np.log(2.0) / patience
        x = decay * np.maximum(np.nan_to_num(waited), 1e-3 * self.cycle_hours)
        cycle = decay * self.cycle_hours
        index = 1.0 - x / cycle * np.exp(-x) * np.expm1(-cycle) / np.expm1(-x)
        return np.where(np.isnan(waited), 1.0, np.clip(index, 0.0, 1.0))

    # -- learning ------------------------------------------------------------------------------------------------------

    def observe(self, visits: Visits) -> None:
        """Learn from a batch of visits, each with its own time."""
        if not self.n_pages:
            return
        ended, hours = microseconds(visits.ended_at) / US_PER_HOUR, visits.at / US_PER_HOUR
        self.expect_cycle(ended)
        self._times, self.began = [*self._times[-RECENT:], ended], min(self.began, ended)
        self._n_visits = [*self._n_visits[-RECENT:], len(visits)]
        brought = self._judge(visits, hours) if self.n_cycles else np.zeros(len(visits), np.int64)
        if self.n_cycles == 0:
            self.sightings.all_known(visits.shown, hours)
        self._learn(visits, hours)
        self.answering.observe(visits, hours, brought)
        page = visits.page[visits.answered]
        self.seen_at[page] = hours[visits.answered]
        self.n_answers[page] += 1
        self.size[page] = visits.shown.sizes[visits.answered]
        self.n_cycles += 1
        self.n_visits += len(visits)
        if self.n_visits >= self._next_fit or self.n_cycles >= self._next_cycle:
            self.refit()

    def _judge(self, visits: Visits, hours: Floats) -> Ints:
        """Compare the prediction for the visits with what they brought: new links of each, every link counted once."""
        n = len(visits)
        if self.n_cycles < SETTLED or not n:
            return credited(visits.page, visits)
        predicted, here = self._predict_visits(visits, hours)
        order, factor, _ = pick(
            score=predicted.raw,
            unshared=predicted.worth.unshared,
            first=np.empty(0, np.int64),
            may=np.ones(n, np.bool_),
            k=n,
            caps=no_caps(n),
            now=float(here.now.max()),
            last=np.where(np.isneginf(here.last[:n]), np.nan, here.last[:n]),
            followed=here.followed,
            prior=self.streams.pseudo_links * self.streams.shares,
            pairs=_reversed(here.pairs, n) if self.parts.discount else _no_pairs(n),
        )
        brought = np.zeros(n, np.int64)
        brought[order] = credited(visits.page[order], visits)
        shape = self.shape(visits.page)
        self.calibration.learn(
            predicted.raw * factor, brought, predicted.is_unseen, predicted.answers, shape, self.dispersion
        )
        return brought

    def _learn(self, visits: Visits, hours: Floats) -> None:
        """What arrived on pages that were seen before, how much of what had arrived stayed, and which siblings show it, too."""
        page = visits.page
        since = np.where(np.isnan(self.seen_at[page]), np.inf, self.seen_at[page])
        arrivals = self.sightings.arrivals(page, visits.answered, since, visits.shown, hours)
        place = np.flatnonzero(visits.answered & (visits.n_new_since >= 0) & np.isfinite(since))
        again, gap = page[place], np.maximum(hours[place] - since[place], 0.0)
        waited = np.maximum(self.clock_at(hours[place]) - self.clock_at(since[place]), 1e-6)
        usual = np.where(np.isnan(self.gap[again]), gap, self.gap[again])
        kept = 0.5 ** (gap / self._half_life(usual))
        n_arrived = arrivals.sizes[place]
        rate = self.rate(again)
        if self.n_cycles:
            self._learn_spread(again, n_arrived, rate, waited)
            self.rhythm.learn(since[place], hours[place], n_arrived.astype(np.float64), rate)
            if self.parts.overlap:
                self._learn_sharing(visits, hours, arrivals, place, kept)
        n_before, gap_before = self.cohorts.size[again], self.cohorts.gap[again]
        n_stayed = self.cohorts.stayed(again, place, visits.shown)
        if self.parts.overlap:
            self._learn_unshared(visits, again, n_before, kept)
        if not self.parts.lifetimes:
            n_before, n_stayed = np.zeros_like(n_before), np.zeros_like(n_stayed)
        self.streams.learn(again, waited, n_arrived.astype(np.float64), n_before, n_stayed, gap_before, kept)
        self.gap[again] = (1 - USUAL) * usual + USUAL * gap
        follows = np.zeros(len(page), np.bool_)
        follows[place] = True
        gaps = np.zeros(len(page))
        gaps[place] = waited
        answered = visits.answered
        self.cohorts.replace(page[answered], _of(arrivals, answered), gaps[answered], follows[answered])

    def _sweep(self, n_visits: float) -> float:
        """Hours in which all pages can be visited once, with `n_visits` per cycle."""
        return self.cycle_hours * max(self.n_pages / max(n_visits, 1), 1.0)

    def _half_life(self, usual_gap: Floats) -> Floats:
        """Hours after which a page's past counts half: one that is hardly ever visited must not count as quiet for ever."""
        sweep = self._sweep(float(np.mean(self._n_visits)))
        visits = self.parts.half_life_visits * np.minimum(usual_gap, sweep)
        return np.maximum(24.0 * self.parts.half_life_days, visits)

    def _learn_spread(self, page: Ints, n_arrived: Ints, rate: Floats, waited: Floats) -> None:
        """How much counts vary beyond chance."""
        mean = rate * self.streams.seen(page, waited)
        counts = (self.n_answers[page] >= FEW) & (mean > 0)
        squares = np.minimum((n_arrived - mean) ** 2 / np.maximum(mean, 0.05), 400.0)[counts]
        self._squares = 0.999 * (self._squares + squares.sum())
        self._n_squares = 0.999 * (self._n_squares + len(squares))

    def _learn_sharing(self, visits: Visits, hours: Floats, arrivals: LinkLists, place: Ints, kept: Floats) -> None:
        """Which siblings show the links that arrived."""
        again, n_arrived = visits.page[place], arrivals.sizes[place]
        weight = np.zeros(len(visits))  # 0 for pages seen for the first time: what arrived there is not known
        weight[place] = np.minimum(1.0, self.siblings.per_visit / np.maximum(n_arrived, 1))
        keys, links = self.sightings.shared(visits.page, arrivals, weight, self.site)
        self.siblings.add_new(keys)
        of_visit, sibling, at = self.siblings.of_visits(again, n_arrived)
        visible = self._share_visible(visits, hours, place[of_visit], sibling)
        self.siblings.learn(again, n_arrived, at, of_visit, visible, kept)
        self.siblings.hit(keys, links)

    def _learn_unshared(self, visits: Visits, again: Ints, n_before: Ints, kept: Floats) -> None:
        """Which of the links that had arrived on pages when they were last seen no sibling has shown since."""
        of_visit, sibling, at = self.siblings.of_visits(again, n_before)
        page = again[of_visit]
        was_visited = (_place_of(sibling, visits) >= 0) | (self.seen_at[sibling] >= self.seen_at[page])
        shown = share_if_shared(self.siblings.shares(at), self.unshared.share(page)) * was_visited
        missed = np.exp(np.bincount(of_visit, np.log1p(-shown), len(again)))
        n_unshared = self.sightings.unshared(again, *self.cohorts.held(again), self.site)
        self.unshared.learn(again, n_before, n_unshared, missed, kept)

    def _share_visible(self, visits: Visits, hours: Floats, visit: Ints, sibling: Ints) -> Floats:
        """The share of the links that arrived at some visits that had arrived when a sibling of the page was last visited."""
        page, place = visits.page[visit], _place_of(sibling, visits)
        now = self.clock_at(hours[visit])
        waited = np.maximum(now - self.clock_at(self.seen_at[page]), 1e-6)
        seen_at = np.where(place >= 0, hours[np.maximum(place, 0)], self.seen_at[sibling])
        since = np.maximum(now - self.clock_at(seen_at), 0.0)
        since = np.clip(np.where(np.isnan(since), waited, since), 0.0, waited)
        later, whole = self.streams.seen(page, since), self.streams.seen(page, waited)
        visible: Floats = 1.0 - later / np.maximum(whole, 1e-12)
        return visible

    def refit(self) -> None:
        """Learn again what all pages share."""
        self._next_fit = max(self.n_visits + 1, int(np.ceil(REFIT * self.n_visits)))
        self._next_cycle = max(self.n_cycles + 1, int(np.ceil(REFIT * self.n_cycles)))
        if len(self._times) > 1:
            self.cycle_hours = max(float(np.median(np.diff(self._times))), 1e-3)
        if self.parts.lifetimes:
            self.streams.refit()
        self.rhythm.refit()
        self.siblings.prune()
        self._refit_prior()

    def _refit_prior(self) -> None:
        if not self.n_pages:
            return
        fitted = _Fitted(
            arrivals=self.streams.arrivals.copy(),
            exposure=self.streams.exposures(),
            size=self.size.copy(),
            dispersion=self.dispersion,
            cycle_hours=self.cycle_hours,
        )
        self._refit(self.prior, fitted, None)
        self._fitted = fitted if self.parts.related and self.parts.around else None

    def _refit(self, prior: Prior, fitted: _Fitted, related: Related | None) -> None:
        prior.refit(
            groups=self.groups,
            related=related,
            around=self.parts.around,
            levels=self.parts.levels,
            **fitted.to(self.n_pages),
        )


@dataclass(frozen=True, kw_only=True)
class _Fitted:
    """What a prior was learnt from: kept, so that related pages can be taken into account whenever they are known."""

    arrivals: Floats
    exposure: Floats
    size: Floats
    dispersion: float
    cycle_hours: float

    def to(self, n_pages: int) -> dict[str, Any]:
        """The same for more pages: nothing was seen of those that are new."""
        more = n_pages - len(self.arrivals)
        return {
            "arrivals": np.append(self.arrivals, np.zeros(more)),
            "exposure": np.append(self.exposure, np.zeros(more)),
            "size": np.append(self.size, np.full(more, np.nan)),
            "dispersion": self.dispersion,
            "cycle_hours": self.cycle_hours,
        }


@dataclass(frozen=True, kw_only=True)
class _Here:
    """Some pages at some times, with what is needed of their siblings."""

    page: Ints
    hours: Floats  # since 1970, one entry per page
    now: Floats  # the same by the rhythm's clock
    last: Floats  # by that clock, of every page that pairs name, these pages first; -infinite: never seen
    followed: Floats  # one row per page, see `Streams`
    pairs: Neighbours


def _place_of(page: Ints, visits: Visits) -> Ints:
    """The place of each page among the visits that answered; -1 where it has none."""
    if not len(visits):
        return np.full(len(page), -1, np.int64)
    place = np.minimum(np.searchsorted(visits.page, page), len(visits) - 1)
    return np.where((visits.page[place] == page) & visits.answered[place], place, -1)


def _no_pairs(n: int) -> Neighbours:
    none = np.empty(0)
    others, start = none.astype(np.int64), np.zeros(n + 1, np.int64)
    return Neighbours(start=start, other=others, share=none, if_shared=none, unshared=np.zeros(n))


def _reversed(pairs: Neighbours, n: int) -> Neighbours:
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


def _of(lists: LinkLists, which: Flags) -> LinkLists:
    """Some of the lists."""
    start = np.append(0, np.cumsum(lists.sizes[which]))
    return LinkLists(start, lists.links[np.repeat(which, lists.sizes)])


def credited(order: Ints, visits: Visits) -> Ints:
    """New links of the pages in this order: a link counts for the first page that shows it."""
    links, number = np.unique(
        visits.new.links, return_inverse=True
    )  # small numbers: there may be a hundred million links
    new: Ints = _credited(np.searchsorted(visits.page, order), visits.new.start, number, len(links))
    return new


@njit(cache=True)
def _credited(place, start, links, n_links):  # type: ignore[no-untyped-def]
    new = np.zeros(len(place), np.int64)
    is_known = np.zeros(n_links, np.bool_)
    for i in range(len(place)):
        for at in range(start[place[i]], start[place[i] + 1]):
            new[i] += not is_known[links[at]]
            is_known[links[at]] = True
    return new
