"""Visit the pages where most unseen links wait that would be lost: recrawl's own policy."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from recrawl.policies.base import (
    US_PER_HOUR,
    Budget,
    Choice,
    Flags,
    Floats,
    Ints,
    Name,
    Pages,
    Policy,
    Spread,
    Visits,
    microseconds,
)
from recrawl.policies.select import caps_of
from recrawl.policies.stock.interval import Calibration
from recrawl.policies.stock.model import Foreseen, Parts, StockModel
from recrawl.policies.stock.pick import pick
from recrawl.policies.stock.siblings import Neighbours
from recrawl.policies.stock.streams import half_gone

FAVOURS = ("coverage", "freshness")
MIN_SHARE = 0.1  # of the links, that a sibling must show to be named
LIKELY = 0.9  # to answer: no need to mention it
HARDLY_GONE = 8_766.0  # hours: a year
LEAST_PATIENCE = 2.0  # sweeps: no crawl comes round sooner


class ExpectedHarvest(Policy):
    """Visit the pages whose stock of unseen links is largest and about to be lost.

    A page holds links that nobody has seen: they came since its last visit, some have left, and some were met on siblings. The
    score is stock · urgency · safety · probability of an answer (see `recrawl.policies.stock`), picked greedily.

    favour: "coverage" finds most links in the end, and lets those wait that stay; "freshness" takes the largest stock at once.
    explore: share of the budget for pages that were not yet visited twice, while there are any; the largest first.
    patience: sweeps (the time in which the budget visits every page once) after which a link is worth half as much, at most.
    horizon: nor may links wait for longer than the crawl is likely to go on. Nobody knows how long that is; the best guess is, as
    long as it has gone on so far (Lindy's law), so the value of a link decays at a rate of one over the crawl's age.
    half_life_days, half_life_visits: a page's past counts half after the longer of these, a sweep being the longest gap between
    visits that is reckoned with. The others are parts of the model that can be left out, to see what they are worth: the busy-hour
    clock, learnt lifetimes of links, siblings that show the same links, links that no sibling shows, the siblings' discount within
    a cycle, urgency, safety, failures, what pages of the same size, site, folder or name and text tell, how far rates differ from
    page to page.

    References: the urgency is an index as of Whittle (1988) for restless bandits; weights of own past against that of others are
    credibility as of Bühlmann and Straub (1970).
    """

    name: ClassVar[str] = "expected-harvest"
    judges_new: ClassVar[bool] = True

    def __init__(
        self,
        favour: str = "coverage",
        explore: float = 0.25,
        patience: float = 14.0,
        half_life_days: float = 60.0,
        half_life_visits: float = 30.0,
        rhythm: bool = True,
        lifetimes: bool = True,
        overlap: bool = True,
        alone: bool = True,
        discount: bool = True,
        urgency: bool = True,
        safety: bool = True,
        failures: bool = True,
        around: bool = True,
        folders: bool = True,
        related: bool = True,
        horizon: bool = True,
        levels: bool = True,
    ) -> None:
        if favour not in FAVOURS:
            raise ValueError(f"favour is {favour!r}; it must be coverage or freshness")
        if not 0 <= explore <= 1:
            raise ValueError(f"explore is {explore}; it must be a share between 0 and 1")
        for what, value in (
            ("patience", patience),
            ("half_life_days", half_life_days),
            ("half_life_visits", half_life_visits),
        ):
            if not 0 < value < np.inf:
                raise ValueError(f"{what} is {value}; it must be above 0")
        self.favour, self.explore, self.patience = favour, explore, patience
        self.half_life_days, self.half_life_visits = half_life_days, half_life_visits
        self.rhythm, self.lifetimes = rhythm, lifetimes
        self.overlap, self.alone, self.discount = overlap, alone, discount
        self.urgency, self.safety, self.failures = urgency, safety, failures
        self.around, self.folders, self.related = around, folders, related
        self.horizon, self.levels = horizon, levels

    @property
    def needs_related(self) -> bool:  # type: ignore[override]
        """Whether related pages are looked at."""
        return self.related and self.around

    def start(self, pages: Pages) -> None:
        """Forget everything."""
        self._last: tuple[tuple[float, float], Foreseen] | None = None
        self.model_ = StockModel(
            pages,
            Parts(
                self.half_life_days, self.half_life_visits, self.rhythm, self.lifetimes, self.overlap, self.alone,
                self.discount, self.failures, self.around, self.folders, self.related, self.levels,
            ),
        )  # fmt: skip

    def observe(self, visits: Visits) -> None:
        """Learn from the visits of a cycle."""
        self._last = None
        self.model_.observe(visits)

    def seen_at(self, last_visit: Ints) -> None:
        """Visits were earlier than the ends of their cycles."""
        self._last = None
        self.model_.visited_at(last_visit / US_PER_HOUR)

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The highest score first, each given those before it."""
        n, hours = len(pages), microseconds(now) / US_PER_HOUR
        if n == 0:
            return Choice(np.empty(0, np.int64), np.empty(0))
        self.model_.expect_cycle(hours)
        sweep = self.model_.cycle_hours * max(n / max(budget.per_cycle or budget.pages, 1), 1.0)
        foreseen = self._foreseen(n, hours, sweep)
        score = foreseen.expected
        if self.favour == "coverage":
            score = score * (foreseen.worth.urgency if self.urgency else 1.0)
            score = score * (foreseen.worth.safety if self.safety else 1.0)
        may = np.ones(n, np.bool_) if budget.barred is None else budget.barred == 0
        clock, last = self.model_.clock(hours)
        trials = self._unexplored(pages, foreseen, budget, may)
        chosen, factor, cause = pick(
            score, foreseen.worth.alone, trials, may, min(budget.pages, n), caps_of(pages, budget), clock, last,
            self.model_.streams, self.model_.pairs(is_reversed=True),
        )  # fmt: skip
        if budget.barred is not None:
            cause[~may] = budget.barred[~may]
        why = _Why.of(chosen, hours, self.model_, foreseen, factor[chosen], np.isin(chosen, trials))
        used = [name for name in ("urgency", "safety") if self.favour == "coverage" and getattr(self, name)]
        detail = {name: getattr(foreseen.worth, name)[chosen] for name in used}
        return Choice(chosen, (score * factor)[chosen], why.sentence, detail, why.expected, cause, spread=why.spread)

    def showers(self, page: int, top: int) -> list[tuple[int, float]]:
        """The pages that show most of what comes on a page, with the share of it."""
        pairs = self.model_.pairs()
        mine = slice(pairs.start[page], pairs.start[page + 1])
        best = np.argsort(-pairs.share[mine], kind="stable")[:top]
        return list(zip(pairs.other[mine][best].tolist(), pairs.share[mine][best].tolist(), strict=True))

    def _foreseen(self, n: int, hours: float, sweep: float) -> Foreseen:
        """What the model says of all pages, kept until it learns something: a plan asks several times."""
        if self._last is None or self._last[0] != (hours, sweep):
            foreseen = self.model_.foresee(np.arange(n), hours, sweep, self._patience(hours, sweep))
            self._last = (hours, sweep), foreseen
        return self._last[1]

    def _patience(self, hours: float, sweep: float) -> float:
        """Hours after which a link is worth half as much."""
        most = self.patience * sweep
        if not self.horizon:
            return most
        return min(most, max(math.log(2.0) * (hours - self.model_.began), LEAST_PATIENCE * sweep))

    def _unexplored(self, pages: Pages, foreseen: Foreseen, budget: Budget, may: NDArray[np.bool_]) -> Ints:
        """Pages not yet visited twice, those that answer and are large first, as many as the budget has room for."""
        new = np.flatnonzero(pages.is_new & may)
        per_cycle = budget.per_cycle or budget.pages
        worth = foreseen.answers[new] * np.nan_to_num(self.model_.size[new])
        share = self.explore * per_cycle  # seldom a whole number: what is left over goes to the next cycle
        n = math.floor((self.model_.n_cycles + 1) * share) - math.floor(self.model_.n_cycles * share)
        return new[np.argsort(-worth, kind="stable")][:n]


@dataclass(frozen=True)
class _Why:
    """What is told of the pages picked, worked out when somebody asks; all as it was when they were picked."""

    page: Ints
    hours: float
    expected: Floats
    stock: Floats
    size: Floats  # links on the page; NaN: nobody knows
    room: Floats  # links that it may show at most
    answers: Floats
    is_unseen: Flags
    is_trial: Flags  # picked because it was not visited twice
    factor: Floats  # what is left of its worth after the pages picked before it
    rate: Floats  # links an hour since the last visit, as they were expected to come
    weights: Floats  # of the streams
    shape: Floats
    dispersion: float
    seen_at: Floats  # of every page
    pairs: Neighbours
    calibration: Calibration

    @classmethod
    def of(
        cls,
        page: Ints,
        hours: float,
        model: StockModel,
        foreseen: Foreseen,
        factor: Floats,
        is_trial: Flags,
    ) -> _Why:
        """A copy of all that is needed of the model, which goes on learning."""
        size, room, answers = model.size[page], model.room(page), foreseen.answers[page]
        stock, shape = np.fmin(foreseen.expected[page] / np.maximum(answers, 1e-9), room), model.shape(page)
        expected = np.minimum(foreseen.expected[page] * factor, room * np.maximum(answers, 1e-300))
        # Where the page may show no more than that, it is no more than that times how likely there are any.
        likely = model.calibration.probability(expected, answers, shape, model.dispersion)
        expected = np.minimum(expected, room * likely)
        now, last = model.clock(hours)
        # By the user's clock, and corrected by how right the model was so far: else the sentence would not add up.
        pace = (now - last[page]) / np.maximum(hours - model.seen_at[page], 1e-6)
        rate = foreseen.rate[page] * pace * foreseen.expected[page] / np.maximum(foreseen.raw[page], 1e-300)
        return cls(
            page, hours, expected, stock, size, room, answers, foreseen.is_unseen[page], is_trial, factor, rate,
            model.streams.weights(page), shape, model.dispersion, model.seen_at.copy(), foreseen.pairs,
            copy.deepcopy(model.calibration),
        )  # fmt: skip

    def sentence(self, i: int, name: Name) -> str:
        """Why the i-th page was picked."""
        answers = self.answers[i]
        if self.is_unseen[i]:
            return f"its links were never read yet; {answers:.0%} likely to answer, with {_count(self.stock[i])} new links then"
        waited, gone = self.hours - self.seen_at[self.page[i]], half_gone(self.weights[i])
        told = f"about {_count(self.stock[i])} unseen links: {_often(self.rate[i])} for {_long(waited)}"
        told += f", half of them gone after {_long(gone)}" if gone < HARDLY_GONE else ", hardly any leave"
        sibling, share = self.pairs.closest(int(self.page[i]))
        if share >= MIN_SHARE:
            told += f"; {share:.0%} also on {name(sibling)}, visited {_long(self.hours - self.seen_at[sibling])} ago"
        if self.factor[i] <= 1 - MIN_SHARE:
            told += f"; {1 - self.factor[i]:.0%} of them on pages picked before it"
        if self.stock[i] >= self.room[i]:
            told += f"; no more links than {'it has' if self.size[i] >= self.room[i] else 'pages have on average'}"
        if self.is_trial[i]:
            told += "; read only once so far, so tried to learn its ways"
        return told if answers >= LIKELY else f"{told}; {answers:.0%} likely to answer"

    def spread(self, which: Ints, level: float) -> Spread:
        """Intervals for some of the pages picked."""
        law = (self.expected[which], self.answers[which], self.shape[which], self.dispersion)
        low, high, stated = self.calibration.interval(*law, level)
        room = self.room[which]
        return Spread(np.fmin(low, room), np.fmin(high, room), stated, self.calibration.probability(*law))


def _count(value: float) -> str:
    """
    >>> _count(14.68), _count(0.034), _count(250.3)
    ('14.7', '0.03', '250')
    """
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 0.1 else f"{value:.2f}"


def _long(hours: float) -> str:
    """A time as minutes, hours, days or years, whatever reads best.

    >>> _long(2.3), _long(100.0), _long(0.25), _long(30_000.0)
    ('2.3 h', '4.2 days', '15 min', '3.4 years')
    """
    if hours < 1:
        return f"{60 * max(hours, 0.0):.0f} min"
    if hours < 48:
        return f"{hours:.1f} h"
    return f"{hours / 24:.1f} days" if hours < 2 * HARDLY_GONE else f"{hours / HARDLY_GONE:.1f} years"


def _often(rate: float) -> str:
    """Links an hour, a day or a month, whatever reads best.

    >>> _often(25.5), _often(0.1), _often(0.002)
    ('25.5 an hour', '2.4 a day', '1.5 a month')
    """
    if rate >= 1:
        return f"{_count(rate)} an hour"
    return f"{_count(24 * rate)} a day" if rate >= 1 / 24 else f"{_count(730.5 * rate)} a month"
