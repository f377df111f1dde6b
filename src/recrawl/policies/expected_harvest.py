"""Visit the pages where most unseen links wait that would be lost: recrawl's own policy."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.core.times import US_PER_HOUR, microseconds
from recrawl.policies.base import TOP_OVERLAPS, Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice, PageName, Spread
from recrawl.policies.harvest.interval import Calibration
from recrawl.policies.harvest.model import Foreseen, Parts, StockModel
from recrawl.policies.harvest.pick import pick
from recrawl.policies.harvest.siblings import Neighbours
from recrawl.policies.harvest.streams import half_gone
from recrawl.policies.select import caps_of
from recrawl.world.pages import Need, Pages, Visits

FAVOURS = ("coverage", "freshness")
MIN_SHARE = 0.1  # of the links, that a sibling must show to be named
LIKELY = 0.9  # to answer: no need to mention it
HARDLY_GONE = 8_766.0  # hours: a year
LEAST_PATIENCE = 2.0  # sweeps: no crawl comes round sooner


class ExpectedHarvest(Policy):
    """Visit the pages whose stock of unseen links is largest and about to be lost.

    A page holds links that nobody has seen: they came since its last visit, some have left, and some were met on siblings. The
    score is stock · urgency · safety · probability of an answer (see `recrawl.policies.harvest`), picked greedily.

    favour: "coverage" finds most links in the end, and lets those wait that stay; "freshness" takes the largest stock at once.
    explore: share of the budget for pages that were not yet visited twice, while there are any; the largest first.
    patience: sweeps (the time in which the budget visits every page once) after which a link is worth half as much, at most.
    urgency, safety: parts of the score that can be left out. horizon: links need not wait for longer than the crawl is likely
    to go on. The best guess is, as long as it has gone on so far (Lindy's law), so the value of a link decays at a rate of one
    over the crawl's age. parts: which parts of the model are used, and how long a page's past counts; its settings can also be
    given by name.

    >>> ExpectedHarvest(parts=Parts(rhythm=False))
    ExpectedHarvest(rhythm=False)

    References: the urgency is an index as of Whittle (1988) for restless bandits; weights of own past against that of others are
    credibility as of Bühlmann and Straub (1970).
    """

    name: ClassVar[str] = "expected-harvest"
    components: ClassVar[dict[str, type]] = {"parts": Parts}

    def __init__(
        self,
        favour: str = "coverage",
        explore: float = 0.25,
        patience: float = 14.0,
        urgency: bool = True,
        safety: bool = True,
        horizon: bool = True,
        parts: Parts | None = None,
        **settings: Any,
    ) -> None:
        if favour not in FAVOURS:
            raise ValueError(f"favour is {favour!r}; it must be coverage or freshness")
        if not 0 <= explore <= 1:
            raise ValueError(f"explore is {explore}; it must be a share between 0 and 1")
        if not 0 < patience < np.inf:
            raise ValueError(f"patience is {patience}; it must be above 0")
        self.favour, self.explore, self.patience = favour, explore, patience
        self.urgency, self.safety, self.horizon = urgency, safety, horizon
        self.parts: Parts = self._component("parts", parts, settings)
        self._no_more(settings)
        self.needs = frozenset({Need.RELATED}) if self.parts.related and self.parts.around else frozenset()

    def start(self, pages: Pages) -> None:
        """Forget everything."""
        self.model_ = StockModel(pages, self.parts)
        self._cached: _Cached | None = None

    def observe(self, visits: Visits) -> None:
        """Learn from the visits of a cycle."""
        self._cached = None
        self.model_.observe(visits)

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The highest score first, each given those before it."""
        n, hours = len(pages), microseconds(now) / US_PER_HOUR
        if n == 0:
            return Choice.none()
        model, foreseen = self._foreseen(pages, budget, hours)
        score = foreseen.expected
        if self.favour == "coverage":
            score = score * (foreseen.worth.urgency if self.urgency else 1.0)
            score = score * (foreseen.worth.safety if self.safety else 1.0)
        may = np.ones(n, np.bool_) if budget.barred is None else budget.barred == 0
        clock, last = model.clock(hours)
        trials = self._unexplored(pages, foreseen, budget, may)
        chosen, factor, cause = pick(
            score=score,
            alone=foreseen.worth.alone,
            first=trials,
            may=may,
            k=min(budget.pages, n),
            caps=caps_of(pages, budget),
            now=clock,
            last=last,
            streams=model.streams,
            pairs=model.pairs(is_reversed=True),
        )
        if budget.barred is not None:
            cause[~may] = budget.barred[~may]
        why = _Why.of(chosen, hours, model, foreseen, factor[chosen], np.isin(chosen, trials))
        used = [name for name in ("urgency", "safety") if self.favour == "coverage" and getattr(self, name)]
        return Choice(
            page=chosen,
            score=(score * factor)[chosen],
            reason=why.sentence,
            expected=why.expected,
            cause=cause,
            spread=why.spread,
            factors={name: getattr(foreseen.worth, name)[chosen] for name in used},
        )

    def _overlaps(self, page: int) -> tuple[tuple[int, float], ...]:
        """The pages that show most of what is new on a page, with the share of it."""
        pairs = self.model_.pairs()
        mine = slice(pairs.start[page], pairs.start[page + 1])
        best = np.argsort(-pairs.share[mine], kind="stable")[:TOP_OVERLAPS]
        return tuple(zip(pairs.other[mine][best].tolist(), pairs.share[mine][best].tolist(), strict=True))

    def _foreseen(self, pages: Pages, budget: Budget, hours: float) -> tuple[StockModel, Foreseen]:
        """The model at this moment and what it says of all pages, kept until it learns something: a plan asks several times."""
        per_cycle = budget.per_cycle or budget.pages
        cached = self._cached
        if cached is not None and cached.fits(hours, per_cycle, pages):
            return cached.model, cached.foreseen
        model = self.model_.at(hours, pages.last_visit)
        sweep = model.cycle_hours * max(len(pages) / max(per_cycle, 1), 1.0)
        foreseen = model.foresee(np.arange(len(pages)), hours, sweep, self._patience(model, hours, sweep))
        self._cached = _Cached(hours, per_cycle, pages.last_visit.copy(), model, foreseen)
        return model, foreseen

    def _patience(self, model: StockModel, hours: float, sweep: float) -> float:
        """Hours after which a link is worth half as much."""
        most = self.patience * sweep
        if not self.horizon:
            return most
        return min(most, max(math.log(2.0) * (hours - model.began), LEAST_PATIENCE * sweep))

    def _unexplored(self, pages: Pages, foreseen: Foreseen, budget: Budget, may: Flags) -> Ints:
        """Pages not yet visited twice, those that answer and are large first, as many as the budget has room for."""
        new = np.flatnonzero(pages.is_new & may)
        per_cycle = budget.per_cycle or budget.pages
        worth = foreseen.answers[new] * np.nan_to_num(self.model_.size[new])
        share = self.explore * per_cycle  # seldom a whole number: what is left over goes to the next cycle
        n = math.floor((self.model_.n_cycles + 1) * share) - math.floor(self.model_.n_cycles * share)
        return new[np.argsort(-worth, kind="stable")][:n]


@dataclass(frozen=True)
class _Cached:
    """What was worked out at a moment, and for what."""

    hours: float
    per_cycle: int
    last_visit: Ints
    model: StockModel
    foreseen: Foreseen

    def fits(self, hours: float, per_cycle: int, pages: Pages) -> bool:
        """Whether it holds for this question as well."""
        is_same = (self.hours, self.per_cycle) == (hours, per_cycle)
        return is_same and np.array_equal(self.last_visit, pages.last_visit)


@dataclass(frozen=True, kw_only=True)
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
            page=page,
            hours=hours,
            expected=expected,
            stock=stock,
            size=size,
            room=room,
            answers=answers,
            is_unseen=foreseen.is_unseen[page],
            is_trial=is_trial,
            factor=factor,
            rate=rate,
            weights=model.streams.weights(page),
            shape=shape,
            dispersion=model.dispersion,
            seen_at=model.seen_at.copy(),
            pairs=foreseen.pairs,
            calibration=copy.deepcopy(model.calibration),
        )

    def sentence(self, i: int, name: PageName) -> str:
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
