"""Visit the pages where most unseen links wait that would otherwise be lost: recrawl's own policy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.core.times import US_PER_HOUR, microseconds
from recrawl.core.whole import Whole
from recrawl.policies.base import TOP_OVERLAPS, Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.harvest.parts import Parts
from recrawl.world.pages import Need, Pages, Visits

if TYPE_CHECKING:
    from recrawl.policies.harvest.model import StockModel
    from recrawl.policies.harvest.prediction import HarvestPrediction
    from recrawl.policies.harvest.siblings import Neighbours

FAVOURS = ("coverage", "freshness")
LEAST_PATIENCE = 2.0  #: sweeps: no crawl visits a page sooner


class ExpectedHarvest(Policy):
    """Visit the pages whose stock of unseen links is largest and about to be lost.

    The default for finding new links. A page holds links that no visit has shown: they arrived since its last visit, some have
    left, and some were seen on siblings. The score is stock · urgency · safety · probability of an answer (see
    `recrawl.policies.harvest`), picked greedily.

    favour: "coverage" finds most links in the end, and lets links wait that stay; "freshness" takes the largest stock at once.
    explore: share of the budget for pages that were not yet visited twice, while there are any; the largest first.
    patience: sweeps (the time in which the budget visits every page once) after which a link is worth half as much, at most.
    urgency, safety: parts of the score that can be left out. horizon: links need not wait for longer than the crawl is likely
    to go on. The best guess is as long as it has gone on so far (Lindy's law), so the value of a link decays at a rate of one
    over the crawl's age. parts: which parts of the model are used, and how long a page's past counts; its settings can also be
    given by name.

    >>> ExpectedHarvest(parts=Parts(rhythm=False))
    ExpectedHarvest(rhythm=False)
    >>> from recrawl.testing import Case, choices, tiny_world
    >>> gains = [[{100 * page + page * cycle + i for i in range(page)} for page in range(4)] for cycle in range(10)]
    >>> *_, last = choices(ExpectedHarvest(), Case(tiny_world(gains), (Budget(2),)))
    >>> last.page  # page p gains p links per cycle
    array([3, 2])

    References: the urgency is an index as of Whittle (1988) for restless bandits; weights of own past against that of others are
    credibility as of Bühlmann and Straub (1970).
    """

    name: ClassVar[str] = "expected-harvest"
    parted: ClassVar[bool] = True
    weighs: ClassVar[bool] = True
    components: ClassVar[dict[str, type]] = {"parts": Parts}
    not_kept: ClassVar[tuple[str, ...]] = ("_cached",)

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
        from recrawl.policies.harvest.model import StockModel

        self.model_ = StockModel(pages, self.parts)
        self._cached: _Cached | None = None

    def extend(self, pages: Pages, n_before: int) -> None:
        """More pages are known."""
        self._cached = None
        self.model_.extend(pages)

    def observe(self, visits: Visits) -> None:
        """Learn from a batch of visits."""
        self._cached = None
        self.model_.observe(visits)

    def learn_part(self, visits: Visits) -> None:
        """Learn from some of the visits of a batch."""
        self._cached = None
        self.model_.learn(visits)

    def settle(self, whole: Whole) -> None:
        """Learn what all pages share."""
        self._cached = None
        self.model_.settle(whole)

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The highest score first, each given those before it."""
        from recrawl.policies.harvest.pick import pick
        from recrawl.policies.harvest.reasons import HarvestReasons
        from recrawl.policies.picking import caps_of

        n, hours = len(pages), microseconds(now) / US_PER_HOUR
        if pages.n_of_whole == 0:
            return Choice.none()
        at_hand = self._predicted(pages, budget, hours)
        model, predicted = at_hand.model, at_hand.predicted
        used = [name for name in ("urgency", "safety") if self.favour == "coverage" and getattr(self, name)]
        factors = {name: getattr(predicted.worth, name) for name in used}
        if pages.importance is not None:
            factors["importance"] = pages.importance
        score = predicted.expected
        for factor in factors.values():
            score = score * factor
        may = np.ones(n, np.bool_) if budget.barred is None else budget.barred == 0
        clock, last = at_hand.clock
        trials, hopes = self._unexplored(pages, predicted, budget, may)
        chosen, left, cause, worth = pick(
            score=score,
            unshared=predicted.worth.unshared,
            first=trials,
            may=may,
            k=min(budget.pages, n),
            caps=caps_of(pages, budget),
            now=clock,
            last=last,
            followed=model.streams.followed,
            prior=model.streams.pseudo_links * model.streams.shares,
            pairs=at_hand.pairs_by_shower,
        )
        if budget.barred is not None:
            cause[~may] = budget.barred[~may]
        is_first = np.zeros(n, np.bool_)
        is_first[trials], worth[trials] = True, -hopes
        is_trial = is_first[chosen]
        reasons = HarvestReasons.of(
            chosen, hours, model, predicted, factor=left[chosen], is_trial=is_trial, whole=pages.whole
        )
        return Choice(
            page=chosen,
            score=(score * left)[chosen],
            reason=reasons.sentence,
            expected=reasons.expected,
            cause=cause,
            spread=reasons.spread,
            factors={name: factor[chosen] for name, factor in factors.items()},
            is_trial=is_trial,
            turn=(~is_first, worth),
        )

    def _overlaps(self, page: int) -> tuple[tuple[int, float], ...]:
        """The pages that show most of what is new on a page, with the share of it."""
        pairs = self.model_.pairs()
        mine = slice(pairs.start[page], pairs.start[page + 1])
        best = np.argsort(-pairs.share[mine], kind="stable")[:TOP_OVERLAPS]
        return tuple(zip(pairs.other[mine][best].tolist(), pairs.share[mine][best].tolist(), strict=True))

    def _predicted(self, pages: Pages, budget: Budget, hours: float) -> _Cached:
        """The model at this moment and its prediction for all pages, kept until it learns: a plan needs it several times."""
        per_cycle = budget.per_cycle or budget.pages
        cached = self._cached
        if cached is not None and (cached.hours, cached.per_cycle) == (hours, per_cycle):
            return cached
        model = self.model_.at(hours, pages.related, pages.whole)
        sweep = model.sweep(per_cycle)
        predicted = model.predict(hours, sweep, self._patience(model, hours, sweep))
        self._cached = _Cached(hours, per_cycle, model, predicted)
        return self._cached

    def _patience(self, model: StockModel, hours: float, sweep: float) -> float:
        """Hours after which a link is worth half as much."""
        most = self.patience * sweep
        if not self.horizon:
            return most
        return min(most, max(math.log(2.0) * (hours - model.began), LEAST_PATIENCE * sweep))

    def _unexplored(
        self, pages: Pages, predicted: HarvestPrediction, budget: Budget, may: Flags
    ) -> tuple[Ints, Floats]:
        """Pages not yet visited twice, as many as there is room for, and their ranks: those that answer and are large first."""
        new = np.flatnonzero(pages.is_new & may)
        per_cycle = budget.per_cycle or budget.pages
        value = predicted.answers[new] * np.nan_to_num(self.model_.size[new])
        if pages.importance is not None:
            value = value * pages.importance[new]
        share = self.explore * per_cycle  # seldom a whole number: what is left over goes to the next cycle
        n = math.floor((self.model_.n_cycles + 1) * share) - math.floor(self.model_.n_cycles * share)
        best = pages.whole.best("trials", n, value, new)
        return new[best], value[best]


@dataclass(frozen=True)
class _Cached:
    """What was worked out at a moment, for a budget per cycle; valid until the policy learns."""

    hours: float
    per_cycle: int
    model: StockModel
    predicted: HarvestPrediction

    @cached_property
    def clock(self) -> tuple[float, Floats]:
        """Now, and when each page was last seen, by the rhythm's clock."""
        return self.model.clock(self.hours)

    @cached_property
    def pairs_by_shower(self) -> Neighbours:
        """Siblings, by the page that shows the links."""
        return self.model.pairs(is_reversed=True)
