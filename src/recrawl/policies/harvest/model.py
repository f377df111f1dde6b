"""The stock model as a whole: what is known of every page's unseen links, and what all pages share.

How it learns from visits is in `learning`, how it says what visits would bring in `prediction`.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from recrawl.core.arrays import Floats, Ints
from recrawl.core.growing import grown
from recrawl.core.times import US_PER_HOUR, microseconds
from recrawl.core.whole import ONE_PIECE, Whole
from recrawl.policies.harvest import learning, prediction
from recrawl.policies.harvest.answering import Answering
from recrawl.policies.harvest.cohorts import Cohorts
from recrawl.policies.harvest.contribution import Contribution, Settled, settled
from recrawl.policies.harvest.interval import Calibration
from recrawl.policies.harvest.parts import Parts
from recrawl.policies.harvest.prior import Prior, sizes
from recrawl.policies.harvest.rhythm import Rhythm
from recrawl.policies.harvest.siblings import Neighbours, Siblings, no_pairs
from recrawl.policies.harvest.sightings import Sightings
from recrawl.policies.harvest.streams import Streams
from recrawl.policies.harvest.unshared import UnsharedLinks
from recrawl.world.pages import Pages, Visits

if TYPE_CHECKING:
    from recrawl.world.related import Related

REFIT = 1.1  #: what all pages share is learnt again when the number of visits or batches has grown by this factor
MOST_RELATED = 1_000_000  #: pages; for more of them related ones are not looked for, and what that needs is not kept
EVERY = slice(None)
RECENT = 50  #: batches that show how long one usually is


class StockModel:
    """Everything that was learnt about a collection's unseen links."""

    not_kept: ClassVar[tuple[str, ...]] = ("_with_related",)

    def __init__(self, pages: Pages, parts: Parts) -> None:
        n = len(pages)
        self.parts, self.site, self.ids = parts, pages.site, pages.keys
        self.n_of_whole = pages.n_of_whole
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
        #: What the last batch adds to what all pages share; None: that is learnt.
        self.unsettled: Contribution | None = None
        self._is_fit_due = False
        self._with_related: tuple[_Fitted, Related, Prior] | None = None

    def extend(self, pages: Pages) -> None:
        """More pages are known."""
        n = len(pages)
        self.site, self.ids, self.n_of_whole = pages.site, pages.keys, pages.n_of_whole
        self.groups = (pages.site, *(pages.url_groups if self.parts.folders else ()))
        for part in (self.streams, self.prior, self.cohorts, self.unshared):
            part.extend_to(n)
        self.siblings.extend(pages.site, pages.n_of_whole)
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

    def room(self, page: Ints, whole: Whole = ONE_PIECE) -> Floats:
        """The most links that each of these pages may show: as many as it has, or as pages have on average if those are more."""
        n_links, n_pages = whole.counts("links on pages", lambda: sizes(self.size)).tolist()
        usual = np.ceil(n_links / n_pages) if n_pages else np.inf
        return np.where(np.isnan(self.size[page]), np.inf, np.maximum(self.size[page], usual))

    def clock(self, hours: float) -> tuple[float, Floats]:
        """Now, and when each page was last seen (NaN: never), by the rhythm's clock."""
        if not self.parts.rhythm:
            return hours, self.seen_at
        return float(self.rhythm.at(hours)), self.rhythm.at(self.seen_at)

    def clock_at(self, hours: Floats | float) -> Floats:
        """The rhythm's clock at some times; NaN where the time is."""
        return self.rhythm.at(hours) if self.parts.rhythm else np.asarray(hours)

    def sweep(self, n_visits: float) -> float:
        """Hours in which all pages can be visited once, with `n_visits` per cycle."""
        return self.cycle_hours * max(self.n_of_whole / max(n_visits, 1), 1.0)

    @property
    def usual_sweep(self) -> float:
        """The same with as many visits as recent batches had."""
        return self.sweep(float(np.mean(self._n_visits)))

    def pairs(self, is_reversed: bool = False) -> Neighbours:
        """Siblings that show the same links; none where that part is left out."""
        if not self.parts.overlap or (is_reversed and not self.parts.discount):
            return replace(no_pairs(self.n_pages), unshared=self.unshared.share())
        return self.siblings.neighbours(self.unshared.share(), is_reversed)

    def predict(self, hours: float, sweep: float, patience: float) -> prediction.HarvestPrediction:
        """What a visit to each page would bring now; see `prediction.predict`."""
        return prediction.predict(self, hours, sweep, patience)

    def at(self, hours: float, related: Related | None, whole: Whole = ONE_PIECE) -> StockModel:
        """The model at a moment; a copy that shares what does not change, so that asking changes nothing.

        related: pages with similar text, if known. They count for what is expected, not for what is learnt, since pages are
        related by what they say now.
        """
        model = copy.copy(self)
        if len(self._times) == 1 or (related is not None and self.parts.related):
            model.prior = copy.deepcopy(self.prior)
            if len(self._times) == 1:
                model.expect_cycle(hours, whole)
            if related is not None and self.parts.related and self._fitted is not None:
                model.prior = self._related_prior(self._fitted, related, whole)
        return model

    def _related_prior(self, fitted: _Fitted, related: Related, whole: Whole) -> Prior:
        """The prior with related pages, worked out once for each that was learnt."""
        cached = self._with_related
        if cached is None or cached[0] is not fitted or cached[1] is not related:
            prior = copy.deepcopy(self.prior)
            self._refit(prior, fitted, related, whole.named("with related pages, "))
            cached = self._with_related = fitted, related, prior  # only now: asking may be interrupted
        return cached[2]

    def expect_cycle(self, hours: float, whole: Whole = ONE_PIECE) -> None:
        """After one crawl all that is known of a cycle's length is that it has lasted until now."""
        has_lasted = hours - self._times[0] if len(self._times) == 1 else 0.0
        if has_lasted > 0 and self.cycle_hours != has_lasted:
            self._refit_prior(has_lasted, whole)
            self.cycle_hours = has_lasted

    # -- learning ------------------------------------------------------------------------------------------------------

    def observe(self, visits: Visits) -> None:
        """Learn from a batch of visits, each with its own time."""
        self.learn(visits)
        self.settle(visits.whole)

    def learn(self, visits: Visits) -> None:
        """Learn of each page from its own visits and those of its siblings; what all pages share is learnt by `settle`."""
        if not self.n_of_whole:
            return
        ended, hours = microseconds(visits.ended_at) / US_PER_HOUR, visits.at / US_PER_HOUR
        adds, n = Contribution(), visits.n_of_whole
        self.expect_cycle(ended, visits.whole)
        brought = learning.judge(self, visits, hours, adds) if self.n_cycles else np.zeros(len(visits), np.int64)
        # From here on nothing is asked of the whole, so that it is learnt once.
        self._times, self.began = [*self._times[-RECENT:], ended], min(self.began, ended)
        self._n_visits = [*self._n_visits[-RECENT:], n]
        if self.n_cycles == 0:
            self.sightings.begin(visits)
            self.sightings.all_known(visits.shown, hours)
        if visits.elsewhere is not None:
            links, at = visits.elsewhere
            self.sightings.shown_elsewhere(links, at / US_PER_HOUR)
        learning.learn(self, visits, hours, adds)
        adds.returns, adds.answers = self.answering.observe(visits, hours, brought)
        adds.n_pairs = self.siblings.size
        page = visits.page[visits.answered]
        self.seen_at[page] = hours[visits.answered]
        self.n_answers[page] += 1
        self.size[page] = visits.shown.sizes[visits.answered]
        self.n_cycles += 1
        self.n_visits += n
        self.unsettled = adds

    def settle(self, whole: Whole) -> None:
        """Learn what all pages share. If it is interrupted, it can be called again."""
        if self.unsettled is not None:
            self._add(whole.together("batch", lambda: self.unsettled or Contribution(), settled))
            self.unsettled = None
            self._is_fit_due = self.n_visits >= self._next_fit or self.n_cycles >= self._next_cycle
        if self._is_fit_due:
            self.refit(whole)
            self._is_fit_due = False

    def _add(self, adds: Settled) -> None:
        if adds.is_judged:
            self.calibration.learn(adds.judged, adds.found, adds.due, self.dispersion)
        if self.n_cycles > 1:
            self._learn_dispersion(adds.squares, adds.n_squares)
            self.rhythm.learn(adds.arrivals)
        self.answering.settle(adds.returns, adds.answers, self._n_visits[-1] / self.n_of_whole)
        if self.siblings.is_too_large(adds.n_pairs):
            self.siblings.prune()

    def _learn_dispersion(self, squares: float, n_squares: int) -> None:
        """Add squared deviations of counts, in units of their mean."""
        self._squares = 0.999 * (self._squares + squares)
        self._n_squares = 0.999 * (self._n_squares + n_squares)

    def refit(self, whole: Whole = ONE_PIECE) -> None:
        """Learn again what all pages share."""
        if len(self._times) > 1:
            self.cycle_hours = max(float(np.median(np.diff(self._times))), 1e-3)
        if self.parts.lifetimes:
            self.streams.refit(whole)
        self.rhythm.refit()
        self.siblings.prune()
        self._refit_prior(self.cycle_hours, whole)
        self._next_fit = max(self.n_visits + 1, int(np.ceil(REFIT * self.n_visits)))
        self._next_cycle = max(self.n_cycles + 1, int(np.ceil(REFIT * self.n_cycles)))

    def _refit_prior(self, cycle_hours: float, whole: Whole) -> None:
        fitted = _Fitted(
            arrivals=self.streams.arrivals.copy(),
            exposure=whole.once("exposures", self.streams.exposures),
            size=self.size.copy(),
            dispersion=self.dispersion,
            cycle_hours=cycle_hours,
        )
        self._refit(self.prior, fitted, None, whole)
        is_used = self.parts.related and self.parts.around and self.n_of_whole <= MOST_RELATED
        self._fitted = fitted if is_used else None

    def _refit(self, prior: Prior, fitted: _Fitted, related: Related | None, whole: Whole) -> None:
        prior.refit(
            whole=whole,
            ids=self.ids,
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
