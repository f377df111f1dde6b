"""Keep copies fresh by predicting change: from a page's past, from its words, or with related pages as experts.

References: Radinsky and Bennett (2013), "Predicting content change on the web", section 8.3.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from recrawl.core.arrays import Floats, Ints
from recrawl.core.growing import grown
from recrawl.core.times import US_PER_DAY, microseconds
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.select import take
from recrawl.world.pages import Need, Pages, Visits

if TYPE_CHECKING:
    from recrawl.policies.change_rates import ChangeRates
    from recrawl.policies.expert_panel import ExpertPanel, ExpertSelection

PICKS = ("coin", "gain")
TARGETS = (
    "change",
    "new-links",
)  #: what is predicted of a page: that it has changed, or that it shows links it did not show


def throws(probability: Floats, uniform: Floats) -> Floats:
    """At which throw the biased coin of each page first shows heads: the least g with 1 - (1 - p)^g above the uniform number.

    >>> throws(np.array([0.5, 0.5, 0.1, 1.0, 0.0]), np.array([0.4, 0.6, 0.6, 0.99, 0.0]))
    array([ 1.,  2.,  9.,  1., inf])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.floor(np.log1p(-uniform) / np.log1p(-probability)) + 1.0
    return np.where(probability > 0, needed, np.inf)


def _weighed_throws(throw: Floats, pages: Pages) -> Floats:
    """A page that matters twice as much is thrown for twice as often: its chance is p times its importance, where p is small."""
    with np.errstate(divide="ignore"):
        return throw if pages.importance is None else throw / pages.importance


class ChangeFrequency(Policy):
    """Visit pages in proportion to how often they changed so far.

    The baseline for predicting change by content. The probability p of a change is the share of changes among a page's last
    `n_train` visits with a known outcome, and one more that is like the mean of all pages. `pick` says how pages are picked by it.
    ``coin`` (the paper's way): throw each page's biased coin, again and again until the budget is used up. ``gain``: by what a
    visit is expected to add to freshness, which is the probability that the copy is out of date, 1 - (1 - p)^w after w cycles,
    times that of no other change before the next cycle (by `ChangeRates`); those that waited longest first among equals. Pages
    never visited come before all others. `target` is what counts: ``change``, or ``new-links`` that the last copy did not have.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> restless, quiet = [{i} for i in range(7)], [{100}] * 7
    >>> case = Case(tiny_world(list(zip(restless, quiet))), (Budget(1),))
    >>> [choice.page.tolist() for choice in choices(ChangeFrequency(seed=3), case)]
    [[1], [0], [0], [0], [0], [0]]

    References: 1D, the baseline of Radinsky and Bennett (2013), sections 5.1 and 8.3.
    """

    name: ClassVar[str] = "change-frequency"
    paper: ClassVar[str | None] = "1D"
    weighs: ClassVar[bool] = True

    def __init__(self, n_train: int = 50, pick: str = "coin", target: str = "change", seed: int = 0) -> None:
        require(n_train >= 2, f"n_train is {n_train}: it takes two cycles to learn anything")
        require(pick in PICKS, f"pick is {pick!r}: there are {' and '.join(PICKS)}")
        require(target in TARGETS, f"target is {target!r}: there are {' and '.join(TARGETS)}")
        self.n_train, self.pick, self.target, self.seed = n_train, pick, target, seed

    def start(self, pages: Pages) -> None:
        """Forget all changes."""
        from recrawl.policies.change_rates import ChangeRates

        self.outcomes_ = Outcomes(len(pages), self.n_train)
        self.rates_ = ChangeRates(pages) if self.pick == "gain" else None
        self.began_, self.last_, self.n_cycles_ = 0, 0, 0

    def extend(self, pages: Pages, n_before: int) -> None:
        """More pages are known."""
        self.outcomes_.extend_to(len(pages))
        if self.rates_ is not None:
            self.rates_.extend_to(len(pages))

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """By the coin or by the gain."""
        return self._by_coin(pages, budget) if self.rates_ is None else self._by_gain(pages, budget, now, self.rates_)

    def _by_coin(self, pages: Pages, budget: Budget) -> Choice:
        probability, basis = self.predict()
        chance = np.random.default_rng([self.seed, self.n_cycles_])
        throw = throws(probability, chance.random(len(pages)))
        return take(
            -_weighed_throws(throw, pages),
            pages,
            budget,
            first=pages.n_visits == 0,
            ties=chance.random(len(pages)),
            reason=f"changes with probability {{probability:.2f}} {basis}; its coin showed heads at throw {{throw:.0f}}",
            detail={"probability": probability, "throw": throw},
        )

    def _by_gain(self, pages: Pages, budget: Budget, now: datetime, rates: ChangeRates) -> Choice:
        probability, basis = self.predict()
        waited, days = pages.age_hours(now), self._days_between_cycles()
        outdated = 1.0 - (1.0 - probability) ** np.maximum(np.round(waited / 24.0 / days), 1.0)
        again = -np.expm1(-rates.per_day * days)
        return take(
            outdated * (1.0 - again),
            pages,
            budget,
            first=pages.n_visits == 0,
            ties=waited,
            weighs=True,
            reason=f"its copy is out of date with probability {{probability:.2f}} {basis}, "
            "and a new one would be before the next cycle with {again:.2f}",
            detail={"probability": outdated, "again": again},
        )

    def predict(self) -> tuple[Floats, str]:
        """The probability that each page changes in a cycle, and what it is estimated from."""
        return self.outcomes_.share(), "(by how often it changed so far)"

    def observe(self, visits: Visits) -> None:
        """Remember what had changed."""
        self._learn(visits if self.target == "change" else _by_links(visits))

    def _learn(self, visits: Visits) -> None:
        """Learn from visits whose changes are those that count."""
        self.last_ = microseconds(visits.ended_at)
        self.began_ = self.began_ if self.n_cycles_ else self.last_
        self.n_cycles_ += 1
        self.outcomes_.observe(visits)
        if self.rates_ is not None:
            self.rates_.observe(visits)

    def _days_between_cycles(self) -> float:
        """The mean up to now; a day before there is one."""
        days = (self.last_ - self.began_) / US_PER_DAY / max(self.n_cycles_ - 1, 1)
        return days if days > 0 else 1.0


class SingleExpert(ChangeFrequency):
    """Visit the pages that have probably changed, by their own words and changes so far.

    Good where what a page says shows when it changes again. A support vector machine per page is trained with those of the last
    `n_train` cycles in which the page was visited, and again every `retrain` cycles; `c` is its penalty, `word_scale` multiplies
    the word distribution beside the other features. Decisions become probabilities by Platt's method over all pages. Until
    `n_train` cycles and twenty decisions of either outcome were seen, and where words are not known, it goes by how often a page
    changed. A change at a visit may be from any cycle since the visit before, so pages seldom visited look busier than they are.
    Features look back over `window` cycles (the paper's l), and predict `ahead` cycles ahead (its σ). `pick`, `target` and `seed`
    as in `ChangeFrequency`.

    >>> SingleExpert(n_train=20, pick="gain")
    SingleExpert(n_train=20, pick='gain')

    References: 2D of Radinsky and Bennett (2013), sections 5.2 and 8.3.
    """

    name: ClassVar[str] = "single-expert"
    paper: ClassVar[str | None] = "2D"
    needs = frozenset({Need.WORDS})

    def __init__(
        self,
        n_train: int = 50,
        pick: str = "coin",
        target: str = "change",
        window: int = 1,
        ahead: int = 1,
        retrain: int = 1,
        c: float = 1.0,
        word_scale: float = 1.0,
        seed: int = 0,
    ) -> None:
        super().__init__(n_train, pick, target, seed)
        require(window >= 1, f"window is {window}: it is a number of cycles")
        require(ahead >= 1, f"ahead is {ahead}: it is a number of cycles, 1 for the next one")
        least = max(window + ahead, ahead + 1)
        require(
            n_train >= least, f"n_train is {n_train}: with window={window} and ahead={ahead} it must be {least} or more"
        )
        self.window, self.ahead = window, ahead
        require(retrain >= 1, f"retrain is {retrain}: it is a number of cycles, 1 for every cycle")
        require(c > 0, f"c is {c}: a penalty is above 0")
        self.retrain, self.c, self.word_scale = retrain, c, word_scale

    def start(self, pages: Pages) -> None:
        """Forget all that was seen."""
        super().start(pages)
        from recrawl.models.experts.learn import Machine
        from recrawl.policies.expert_panel import ExpertPanel

        self.panel_: ExpertPanel = ExpertPanel(
            len(pages),
            Machine(n_train=self.n_train, c=self.c),
            self._selection(),
            word_scale=self.word_scale,
            retrain=self.retrain,
            l=self.window,
            sigma=self.ahead,
        )

    def extend(self, pages: Pages, n_before: int) -> None:
        """More pages are known."""
        super().extend(pages, n_before)
        self.panel_.extend_to(len(pages))

    def _selection(self) -> ExpertSelection:
        from recrawl.policies.expert_panel import ExpertSelection

        return ExpertSelection(k=0)

    def predict(self) -> tuple[Floats, str]:
        """By the experts, as soon as they have seen enough."""
        share, basis = super().predict()
        if not len(self.panel_.texts):
            return share, f"{basis[:-1]}, since its words are not known)"
        probability = self.panel_.probabilities()
        if probability is None:
            return share, f"{basis[:-1]}, since too little was seen to learn from)"
        return probability, self._basis()

    def _basis(self) -> str:
        return "(by its own words and changes)"

    def _learn(self, visits: Visits) -> None:
        """Remember what had changed, and what was read."""
        super()._learn(visits)
        if visits.memo is not None and len(self.panel_.texts):  # they were chosen by what the panel had decided
            self.panel_ = self.panel_.decided()
        self.panel_.observe(visits)


def _by_links(visits: Visits) -> Visits:
    """The visits with new links as the change that counts."""
    return replace(visits, changed=np.clip(visits.n_new_since, -1, 1).astype(np.int8))


class Outcomes:
    """Whether each page had changed at its last `n` visits with a known outcome."""

    def __init__(self, n_pages: int, n: int) -> None:
        self._changed = np.full((n_pages, n), -1, np.int8)
        self._next = np.zeros(n_pages, np.int64)
        self.n_known: Ints = np.zeros(n_pages, np.int64)
        self.n_changed: Ints = np.zeros(n_pages, np.int64)

    def extend_to(self, n_pages: int) -> None:
        """More pages are known."""
        self._changed = grown(self._changed, n_pages, -1)
        for name in ("_next", "n_known", "n_changed"):
            setattr(self, name, grown(getattr(self, name), n_pages))

    def observe(self, visits: Visits) -> None:
        """Note the visits of a cycle; the oldest are forgotten."""
        known = visits.changed >= 0
        page, changed = visits.page[known], visits.changed[known]
        place = self._next[page] % self._changed.shape[1]
        forgotten = self._changed[page, place]
        self.n_known[page] += forgotten < 0
        self.n_changed[page] += (changed == 1).astype(np.int64) - (forgotten == 1)
        self._changed[page, place] = changed
        self._next[page] += 1

    def share(self) -> Floats:
        """The share of these visits with a change, and of one more like the mean of all pages; a half if no outcome is known."""
        n_known = int(self.n_known.sum())
        mean = self.n_changed.sum() / n_known if n_known else 0.5
        share: Floats = (self.n_changed + mean) / (self.n_known + 1.0)
        return share


def require(holds: bool, otherwise: str) -> None:
    """Refuse a setting, and say why."""
    if not holds:
        raise ValueError(otherwise)
