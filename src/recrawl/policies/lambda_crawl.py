"""Visit each page at the rate that keeps the whole collection up to date with the budget there is."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.core.times import US_PER_DAY, microseconds, moment
from recrawl.core.whole import ONE_PIECE, Whole
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice, PageName
from recrawl.policies.select import take
from recrawl.policies.weights import given_or_stated, weights_for
from recrawl.world.pages import Need, Pages, Signals, Visits
from recrawl.world.rate_names import checked_rates


def visit_rates(
    changes_per_day: Floats,
    importance: Floats,
    visits_per_day: float,
    is_signalled: Flags | None = None,
    whole: Whole = ONE_PIECE,
) -> Floats:
    """How often to visit each page, per day; together as often as the budget allows.

    Where changes are seen on visits only, ρ = (-Δ + sqrt(Δ² + 4μΔ/L)) / 2. Where they are signalled, a page is visited after a
    share p = min(1, μ/(LΔ)) of its changes, and ρ = pΔ. Both minimise the cost under one sum, so L, the worth of one more visit
    per day, is the same for both; it is found by bracketing. That also splits the budget between the two kinds of pages.

    >>> visit_rates(np.array([0.1, 1.0, 10.0]), np.ones(3), 6.0).round(3)
    array([0.65 , 1.763, 3.587])
    >>> visit_rates(np.array([0.1, 1.0, 10.0]), np.ones(3), 6.0, np.ones(3, bool)).round(3)
    array([0.1, 1. , 4.9])

    References: Kolobov, Peres, Lu and Horvitz (2019), Eq. 5 and Algorithm 1; Proposition 4 and Algorithm 2 for signalled changes;
    Eq. 8 for the mix.
    """
    from scipy.optimize import brentq

    product = importance * changes_per_day
    signalled = np.zeros(len(product), np.bool_) if is_signalled is None else is_signalled
    n_any, n_visible = whole.counts(
        "pages that change", lambda: np.array([np.count_nonzero(product), np.count_nonzero(product[~signalled])])
    )
    if not (visits_per_day > 0 and n_any):
        return np.zeros(len(product))
    if not n_visible and whole.total("changes", lambda: changes_per_day[product > 0]) <= visits_per_day:
        return np.where(product > 0, changes_per_day, 0.0)  # every change can be followed by a visit
    numbers = itertools.count()

    def rates(log_inverse: float) -> Floats:
        part = 4 * product * math.exp(log_inverse)
        # The same root without the difference of two nearly equal numbers.
        root = part / (2 * (changes_per_day + np.sqrt(changes_per_day**2 + part)))
        return np.where(signalled, np.minimum(changes_per_day, importance * math.exp(log_inverse)), root)

    def excess(log_inverse: float) -> float:
        return math.log(whole.total(f"visits {next(numbers)}", lambda: rates(log_inverse)) / visits_per_day)

    most = whole.total("most visits", lambda: np.sqrt(product))
    low = 2 * math.log(visits_per_day / most) - 1  # since ρ ≤ sqrt(μΔ/L)
    step = 2.0
    while excess(low + step) < 0:
        step *= 2
    return rates(brentq(excess, low, low + step, xtol=1e-14, rtol=1e-14))


class LambdaCrawl(Policy):
    """Visit the pages that have waited the greatest part of the period that is best for each.

    Good where every copy has to be kept reasonably fresh: the periods minimise how long pages are out of date, on a scale on which
    no page may be given up. The busier a page, the more often it is visited, but less than in proportion. Rates of change are
    learnt from the visits, see `ChangeRates` for `prior_days`, `bounds` (per day) and `rates`. The budget per day is that of a
    cycle, divided by the mean time between cycles so far. `importance`: one number per page (μ), by default as the visits
    state it.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> restless, calm = [{i} for i in range(9)], [{100}] * 9
    >>> case = Case(tiny_world(list(zip(restless, calm)), hours=range(0, 9 * 24, 24)), (Budget(1),))
    >>> [choice.page.tolist() for choice in choices(LambdaCrawl(), case)]
    [[0], [1], [0], [1], [0], [1], [0], [0]]

    References: LambdaCrawl of Kolobov, Peres, Lu and Horvitz (2019), Algorithms 1 and 2, Eq. 8 and 11.
    """

    name: ClassVar[str] = "lambda-crawl"
    paper: ClassVar[str | None] = "LambdaCrawl"
    parted: ClassVar[bool] = True
    weighs: ClassVar[bool] = True
    needs = frozenset({Need.SIGNALS})

    def __init__(
        self,
        prior_days: float = 0.5,
        bounds: tuple[float, float] = (0.0005, 7.0),
        importance: Floats | None = None,
        rates: str = "maximum-likelihood",
        signals: bool = True,
    ) -> None:
        self.prior_days, self.bounds, self.importance = prior_days, bounds, importance
        self.rates, self.signals = checked_rates(rates), signals

    def start(self, pages: Pages) -> None:
        """Forget all changes."""
        from recrawl.policies.change_rates import ChangeRates

        self.importance_ = weights_for(pages, self.importance, "importance")
        self.rates_ = ChangeRates(pages, self.prior_days, self.bounds, self.rates)
        self.began_, self.n_cycles_ = 0, 0

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The greatest part of the period waited first; those never visited before all others."""
        signals = pages.signals if self.signals else None
        changes = self._changes(signals)
        is_signalled = None if signals is None else signals.is_complete
        importance = given_or_stated(self.importance, self.importance_, pages)
        per_day = (budget.per_cycle or budget.pages) / self._days_between_cycles(now)
        visits = visit_rates(changes, importance, per_day, is_signalled, pages.whole)
        hours = pages.age_hours(now)
        never = pages.n_visits == 0
        elapsed = visits * np.where(never, 0.0, hours) / 24.0
        likely = -np.expm1(-changes * hours / 24.0)
        with np.errstate(divide="ignore"):
            period = 24.0 / visits
        choice = take(
            elapsed if signals is None else self._with_signals(elapsed, visits / changes, pages, signals),
            pages,
            budget,
            first=never,
            reason="changes {changes:.2f} times per day, to be visited every {period:.1f} h, last visit {hours:.1f} h ago",
            detail={"changes": changes, "period": period, "hours": hours, "probability": likely},
        )
        return choice if signals is None else replace(choice, reason=_Signalled(choice, pages, signals))

    def _changes(self, signals: Signals | None) -> Floats:
        """Changes per day: by visits, or by signals where all changes are signalled."""
        if signals is None:
            return self.rates_.per_day
        by_signals = np.clip((signals.n_changes + 0.5) / (signals.days + 0.5), *self.bounds)
        return np.where(signals.is_complete, by_signals, self.rates_.per_day)

    def _with_signals(self, elapsed: Floats, share: Floats, pages: Pages, signals: Signals) -> Floats:
        """The score with pages that were drawn for their signal first, and the other signalled ones last."""
        is_pending = signals.is_complete & (signals.changed_at > pages.last_visit)
        is_drawn = is_pending & (_chance(signals.changed_at, pages.keys) < share)
        top = pages.whole.greatest("longest wait", lambda: float(elapsed.max(initial=0.0))) + 1.0
        left = np.where(is_pending, -1.0, -2.0)  # what is left of a budget goes to those with a signal
        unsignalled = np.where(signals.is_complete, left, elapsed)
        return np.where(is_drawn, top + given_or_stated(self.importance, self.importance_, pages), unsignalled)

    def _days_between_cycles(self, now: datetime) -> float:
        """The mean up to now; a day before the first one."""
        days = (microseconds(now) - self.began_) / US_PER_DAY / max(self.n_cycles_, 1)
        return days if self.n_cycles_ and days > 0 else 1.0

    def observe(self, visits: Visits) -> None:
        """Learn the rates of change."""
        self.began_ = self.began_ if self.n_cycles_ else microseconds(visits.ended_at)
        self.n_cycles_ += 1
        self.rates_.observe(visits)


@dataclass(frozen=True)
class _Signalled:
    """The reason for pages that were chosen for a signal; for others, as without signals."""

    choice: Choice
    pages: Pages
    signals: Signals

    def __call__(self, i: int, name: PageName) -> str:
        page = int(self.choice.page[i])
        if not self.signals.is_complete[page] or self.pages.n_visits[page] == 0:
            return self.choice.why(i, name)
        if self.signals.changed_at[page] <= self.pages.last_visit[page]:
            return "no change was signalled since its last visit; it only fills the budget"
        return f"a change was signalled for {moment(int(self.signals.changed_at[page])):%Y-%m-%d %H:%M}"


def _chance(moments: Ints, keys: Ints) -> Floats:
    """A number from 0 to 1 for the last signal of each page, as good as random, and the same whenever it is asked for."""
    mixed = moments.astype(np.uint64) ^ (keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    chance: Floats = (mixed ^ (mixed >> np.uint64(31))) / 2.0**64
    return chance
