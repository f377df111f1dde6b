"""Visit each page at the rate that keeps the whole collection up to date with the budget there is."""

from __future__ import annotations

import math
from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.core.arrays import Floats
from recrawl.core.times import US_PER_DAY, microseconds
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.select import take
from recrawl.policies.weights import weights_for
from recrawl.world.pages import Pages, Visits
from recrawl.world.rate_names import checked_rates


def visit_rates(changes_per_day: Floats, importance: Floats, visits_per_day: float) -> Floats:
    """How often to visit each page, per day, where changes are seen on visits only; together as often as the budget allows.

    ρ = (-Δ + sqrt(Δ² + 4μΔ/L)) / 2 minimises the cost under that sum; L, the worth of one more visit per day, is found by
    bracketing.

    >>> visit_rates(np.array([0.1, 1.0, 10.0]), np.ones(3), 6.0).round(3)
    array([0.65 , 1.763, 3.587])
    """
    from scipy.optimize import brentq

    product = importance * changes_per_day
    if not (visits_per_day > 0 and product.any()):
        return np.zeros(len(product))

    def rates(log_inverse: float) -> Floats:
        part = 4 * product * math.exp(log_inverse)
        # The same root without the difference of two nearly equal numbers.
        root: Floats = part / (2 * (changes_per_day + np.sqrt(changes_per_day**2 + part)))
        return root

    def excess(log_inverse: float) -> float:
        return math.log(rates(log_inverse).sum() / visits_per_day)

    low = 2 * math.log(visits_per_day / np.sqrt(product).sum()) - 1  # since ρ < sqrt(μΔ/L)
    step = 2.0
    while excess(low + step) < 0:
        step *= 2
    return rates(brentq(excess, low, low + step, xtol=1e-14, rtol=1e-14))


class LambdaCrawl(Policy):
    """Visit the pages that have waited the greatest part of the period that is best for each.

    Good where every copy has to be kept reasonably fresh: the periods minimise how long pages are out of date, on a scale on which
    no page may be given up. The busier a page, the more often it is visited, but less than in proportion. Rates of change are
    learnt from the visits, see `ChangeRates` for `prior_days`, `bounds` (per day) and `rates`. The budget per day is that of a
    cycle, divided by the mean time between cycles so far. `importance`: one number per page (μ), equal by default.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> restless, calm = [{i} for i in range(9)], [{100}] * 9
    >>> case = Case(tiny_world(list(zip(restless, calm)), hours=range(0, 9 * 24, 24)), (Budget(1),))
    >>> [choice.page.tolist() for choice in choices(LambdaCrawl(), case)]
    [[0], [1], [0], [1], [0], [1], [0], [0]]

    References: LambdaCrawl of Kolobov, Peres, Lu and Horvitz (2019), for changes that are seen on visits only.
    """

    name: ClassVar[str] = "lambda-crawl"
    paper: ClassVar[str | None] = "LambdaCrawl"

    def __init__(
        self,
        prior_days: float = 0.5,
        bounds: tuple[float, float] = (0.0005, 7.0),
        importance: Floats | None = None,
        rates: str = "maximum-likelihood",
    ) -> None:
        self.prior_days, self.bounds, self.importance = prior_days, bounds, importance
        self.rates = checked_rates(rates)

    def start(self, pages: Pages) -> None:
        """Forget all changes."""
        from recrawl.policies.change_rates import ChangeRates

        self.importance_ = weights_for(pages, self.importance, "importance")
        self.rates_ = ChangeRates(pages, self.prior_days, self.bounds, self.rates)
        self.began_, self.n_cycles_ = 0, 0

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The greatest part of the period waited first; those never visited before all others."""
        changes = self.rates_.per_day
        visits = visit_rates(changes, self.importance_, budget.pages / self._days_between_cycles(now))
        hours = pages.age_hours(now)
        never = pages.n_visits == 0
        elapsed = visits * np.where(never, 0.0, hours) / 24.0
        with np.errstate(divide="ignore"):
            period = 24.0 / visits
        return take(
            elapsed,
            pages,
            budget,
            first=never,
            reason="changes {changes:.2f} times per day, to be visited every {period:.1f} h, last visit {hours:.1f} h ago",
            detail={
                "changes": changes,
                "period": period,
                "hours": hours,
                "probability": -np.expm1(-changes * hours / 24.0),
            },
        )

    def _days_between_cycles(self, now: datetime) -> float:
        """The mean up to now; a day before the first one."""
        days = (microseconds(now) - self.began_) / US_PER_DAY / max(self.n_cycles_, 1)
        return days if self.n_cycles_ and days > 0 else 1.0

    def observe(self, visits: Visits) -> None:
        """Learn the rates of change."""
        self.began_ = self.began_ if self.n_cycles_ else microseconds(visits.ended_at)
        self.n_cycles_ += 1
        self.rates_.observe(visits)
