"""The stock model as a whole: it learns from visits, and predicts how many unseen links wait on each page."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
from numba import njit

from recrawl.core.arrays import Flags, Floats, Ints, LinkLists
from recrawl.core.times import NEVER, US_PER_HOUR, microseconds
from recrawl.policies.harvest.answering import Answering
from recrawl.policies.harvest.appraisal import Appraisal, appraise
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

USUAL = 0.3  #: weight of the newest gap in a page's usual one
REFIT = 1.1  #: what all pages share is learnt again when the number of cycles has grown by this factor
SETTLED = 3  #: cycles before predictions are judged: the first ones rest on next to nothing
FEW = 3  #: answers of a page before its counts show how links arrive in batches
EVERY = slice(None)
RECENT = 50  #: cycles that show how long one usually is


@dataclass(frozen=True, kw_only=True)
class HarvestPrediction:
    """What visits to some pages would bring: one entry per page."""

    worth: Appraisal
    answers: Floats  # the probability that the page answers
    raw: Floats  # links, by the model alone
    expected: Floats  # links, corrected by how right the model was so far
    is_unseen: Flags  # it never answered
    rate: Floats  # links per hour; one entry for every page there is, 0 for those not predicted
    pairs: Neighbours  # that were taken into account


class StockModel:
    """Everything that was learnt about a collection's unseen links."""

    def __init__(self, pages: Pages, parts: Parts) -> None:
        n = len(pages)
        self.parts, self.n_pages, self.site = parts, n, pages.site
        self.groups = (pages.site, *(pages.url_groups if parts.folders else ()))
        self.related = pages.related if parts.related else None
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
        self._n_visits: list[int] = []  # of recent cycles
        self.n_cycles, self._next_fit = 0, 1  # cycles so far, and after how many all is learnt again

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
            none = np.empty(0)
            return Neighbours(
                start=np.zeros(self.n_pages + 1, np.int64),
                other=none.astype(np.int64),
                share=none,
                if_shared=none,
                unshared=self.unshared.share(),
            )
        return self.siblings.neighbours(self.unshared.share(), is_reversed)

    def predict(self, page: Ints, hours: float, sweep: float, patience: float) -> HarvestPrediction:
        """What a visit to each of these pages would bring now.

        sweep: hours in which all pages can be visited once; patience: hours after which a link is worth half.
        """
        now, last = self.clock(hours)
        is_unseen = np.isnan(last[page])
        seen = page[~is_unseen]
        gap = np.where(np.isnan(self.gap), sweep, self.gap)
        cycle = now - self.clock(hours - self.cycle_hours)[0]
        last = np.where(np.isnan(last), -np.inf, last)
        rate, pairs = np.zeros(self.n_pages), self.pairs()
        rate[page] = self.rate(page)
        of_seen = appraise(
            seen,
            now=now,
            last=last,
            rate=rate,
            streams=self.streams,
            pairs=pairs,
            usual_gap=gap,
            cycle=max(cycle, 1e-6),
            patience=patience,
        )
        worth = Appraisal(
            stock=self.answering.first_links(page),
            urgency=self._urgency_of_unseen(page, hours, patience),
            safety=np.ones(len(page)),
            unshared=np.ones(len(page)),
        )
        for name in ("stock", "urgency", "safety", "unshared"):
            getattr(worth, name)[~is_unseen] = getattr(of_seen, name)
        answers = self.answering.probability(page, hours, sweep)
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
            pairs=pairs,
        )

    def at(self, hours: float, last_visit: Ints) -> StockModel:
        """The model at a moment, with pages last visited when they really were rather than at the end of that cycle.

        A copy that shares what does not change, so that asking changes nothing.
        """
        model = copy.copy(self)
        if len(self._times) == 1:
            model.prior = copy.deepcopy(self.prior)
            model.expect_cycle(hours)
        visited = np.where(last_visit == NEVER, np.inf, last_visit / US_PER_HOUR)
        model.answering = copy.copy(self.answering)
        model.seen_at = np.minimum(self.seen_at, visited)  # NaN stays: never seen
        model.answering.visited_at = np.minimum(self.answering.visited_at, visited)
        return model

    def expect_cycle(self, hours: float) -> None:
        """After one crawl all that is known of a cycle's length is that it has lasted until now."""
        has_lasted = hours - self._times[0] if len(self._times) == 1 else 0.0
        if has_lasted > 0 and self.cycle_hours != has_lasted:
            self.cycle_hours = has_lasted
            self._refit_prior()

    def _urgency_of_unseen(self, page: Ints, hours: float, patience: float) -> Floats:
        """A page that never answered loses nothing by waiting, but links found late are worth less."""
        waited = hours - self.answering.visited_at[page]
        decay = np.log(2.0) / patience
        x = decay * np.maximum(np.nan_to_num(waited), 1e-3 * self.cycle_hours)
        cycle = decay * self.cycle_hours
        index = 1.0 - x / cycle * np.exp(-x) * np.expm1(-cycle) / np.expm1(-x)
        return np.where(np.isnan(waited), 1.0, np.clip(index, 0.0, 1.0))

    # -- learning ------------------------------------------------------------------------------------------------------

    def observe(self, visits: Visits) -> None:
        """Learn from the visits of a cycle."""
        if not self.n_pages:
            return
        hours = microseconds(visits.at) / US_PER_HOUR
        self.expect_cycle(hours)
        self._times, self.began = [*self._times[-RECENT:], hours], min(self.began, hours)
        self._n_visits = [*self._n_visits[-RECENT:], len(visits)]
        brought = self._judge(visits, hours) if self.n_cycles else np.zeros(len(visits), np.int64)
        if self.n_cycles == 0:
            self.sightings.all_known(visits.shown, hours)
        self._learn(visits, hours)
        self.answering.observe(visits, hours, brought)
        page = visits.page[visits.answered]
        self.seen_at[page] = hours
        self.n_answers[page] += 1
        self.size[page] = visits.shown.sizes[visits.answered]
        self.n_cycles += 1
        if self.n_cycles >= self._next_fit:
            self.refit()

    def _judge(self, visits: Visits, hours: float) -> Ints:
        """Compare the prediction for the visits with what they brought: new links of each, every link counted once."""
        if self.n_cycles < SETTLED:
            return credited(visits.page, visits)
        sweep = self._sweep(len(visits))
        predicted = self.predict(visits.page, hours, sweep, sweep)
        raw, unshared, may = np.zeros(self.n_pages), np.ones(self.n_pages), np.zeros(self.n_pages, np.bool_)
        raw[visits.page], unshared[visits.page], may[visits.page] = predicted.raw, predicted.worth.unshared, True
        now, last = self.clock(hours)
        order, factor, _ = pick(
            score=raw,
            unshared=unshared,
            first=np.empty(0, np.int64),
            may=may,
            k=len(visits),
            caps=no_caps(self.n_pages),
            now=now,
            last=last,
            streams=self.streams,
            pairs=self.pairs(is_reversed=True),
        )
        new = credited(order, visits)
        brought = np.zeros(len(visits), np.int64)
        brought[np.searchsorted(visits.page, order)] = new
        raw_here, shape = predicted.raw * factor[visits.page], self.shape(visits.page)
        self.calibration.learn(raw_here, brought, predicted.is_unseen, predicted.answers, shape, self.dispersion)
        return brought

    def _learn(self, visits: Visits, hours: float) -> None:
        """What arrived on pages that were seen before, how much of what had arrived stayed, and which siblings show it, too."""
        page = visits.page
        since = np.where(np.isnan(self.seen_at[page]), np.inf, self.seen_at[page])
        arrivals = self.sightings.arrivals(page, visits.answered, since, visits.shown, hours)
        place = np.flatnonzero(visits.answered & (visits.n_new_since >= 0) & np.isfinite(since))
        now, last = self.clock(hours)
        again, gap = page[place], np.maximum(hours - since[place], 0.0)
        waited = np.maximum(now - last[again], 1e-6)
        usual = np.where(np.isnan(self.gap[again]), gap, self.gap[again])
        kept = 0.5 ** (gap / self._half_life(usual))
        n_arrived = arrivals.sizes[place]
        rate = self.rate(again)
        if self.n_cycles:
            self._learn_spread(again, n_arrived, rate, waited)
            self.rhythm.learn(since[place], hours, n_arrived.astype(np.float64), rate)
            if self.parts.overlap:
                self._learn_sharing(visits, arrivals, place, hours, kept)
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

    def _learn_sharing(self, visits: Visits, arrivals: LinkLists, place: Ints, hours: float, kept: Floats) -> None:
        """Which siblings show the links that arrived."""
        again, n_arrived = visits.page[place], arrivals.sizes[place]
        weight = np.zeros(len(visits))  # 0 for pages seen for the first time: what arrived there is not known
        weight[place] = np.minimum(1.0, self.siblings.per_visit / np.maximum(n_arrived, 1))
        keys, links = self.sightings.shared(visits.page, arrivals, weight, self.site)
        self.siblings.add_new(keys)
        of_visit, sibling, at = self.siblings.of_visits(again, n_arrived)
        visible = self._share_visible(again[of_visit], sibling, visits, hours)
        self.siblings.learn(again, n_arrived, at, of_visit, visible, kept)
        self.siblings.hit(keys, links)

    def _learn_unshared(self, visits: Visits, again: Ints, n_before: Ints, kept: Floats) -> None:
        """Which of the links that had arrived on pages when they were last seen no sibling has shown since."""
        of_visit, sibling, at = self.siblings.of_visits(again, n_before)
        page = again[of_visit]
        was_visited = self._seen_in(visits)[sibling] | (self.seen_at[sibling] >= self.seen_at[page])
        shown = share_if_shared(self.siblings.shares(at), self.unshared.share(page)) * was_visited
        missed = np.exp(np.bincount(of_visit, np.log1p(-shown), len(again)))
        n_unshared = self.sightings.unshared(again, *self.cohorts.held(again), self.site)
        self.unshared.learn(again, n_before, n_unshared, missed, kept)

    def _seen_in(self, visits: Visits) -> Flags:
        """Which of all pages answered."""
        seen = np.zeros(self.n_pages, np.bool_)
        seen[visits.page[visits.answered]] = True
        return seen

    def _share_visible(self, page: Ints, sibling: Ints, visits: Visits, hours: float) -> Floats:
        """The share of each page's arrivals that had arrived when its sibling was last visited."""
        seen_now = self._seen_in(visits)
        now, last = self.clock(hours)
        waited = np.maximum(now - last[page], 1e-6)
        since = np.where(seen_now[sibling], 0.0, now - last[sibling])
        since = np.clip(np.where(np.isnan(since), waited, since), 0.0, waited)
        later, whole = self.streams.seen(page, since), self.streams.seen(page, waited)
        visible: Floats = 1.0 - later / np.maximum(whole, 1e-12)
        return visible

    def refit(self) -> None:
        """Learn again what all pages share."""
        self._next_fit = max(self.n_cycles + 1, int(np.ceil(REFIT * self.n_cycles)))
        if len(self._times) > 1:
            self.cycle_hours = max(float(np.median(np.diff(self._times))), 1e-3)
        if self.parts.lifetimes:
            self.streams.refit()
        self.rhythm.refit()
        self.siblings.prune()
        self._refit_prior()

    def _refit_prior(self) -> None:
        self.prior.refit(
            self.streams.arrivals,
            self.streams.exposures(),
            size=self.size,
            groups=self.groups,
            related=self.related,
            dispersion=self.dispersion,
            cycle_hours=self.cycle_hours,
            around=self.parts.around,
            levels=self.parts.levels,
        )


def _of(lists: LinkLists, which: Flags) -> LinkLists:
    """Some of the lists."""
    start = np.append(0, np.cumsum(lists.sizes[which]))
    return LinkLists(start, lists.links[np.repeat(which, lists.sizes)])


def credited(order: Ints, visits: Visits) -> Ints:
    """New links of the pages in this order: a link counts for the first page that shows it."""
    new: Ints = _credited(np.searchsorted(visits.page, order), visits.new.start, visits.new.links)
    return new


@njit(cache=True)
def _credited(place, start, links):  # type: ignore[no-untyped-def]
    new = np.zeros(len(place), np.int64)
    is_known = np.zeros(links.max() + 1 if len(links) else 0, np.bool_)
    for i in range(len(place)):
        for at in range(start[place[i]], start[place[i] + 1]):
            new[i] += not is_known[links[at]]
            is_known[links[at]] = True
    return new
