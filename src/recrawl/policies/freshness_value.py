"""Visit the pages whose renewal adds most to the share of copies that are current."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.core.arrays import Floats
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.select import take
from recrawl.policies.weights import given_or_stated, weights_for
from recrawl.world.pages import Pages, Visits
from recrawl.world.rate_names import checked_rates


def freshness_values(changes_per_day: Floats, days: Floats, importance: Floats | float = 1.0) -> Floats:
    """μ/Δ · (1 - exp(-Δτ)(1 + Δτ)) for pages last visited τ days ago.

    The bracket is the regularised incomplete gamma function P(2, Δτ), which stays exact where Δτ is tiny: (Δτ)²/2.

    >>> freshness_values(np.array([1.0, 1.0]), np.array([1.0, np.inf]))  # 1 - 2/e; 1 after an infinite time
    array([0.26424112, 1. ])
    """
    from scipy.special import gammainc

    value: Floats = importance / changes_per_day * gammainc(2.0, changes_per_day * days)
    return value


class FreshnessValue(Policy):
    """Visit the pages whose renewal adds most to the share of copies that are current.

    The default for keeping copies up to date. A page that changes faster than it can be visited is worth next to nothing, however
    much it changes, and is given up. For finding new links it is the wrong policy: those are the best pages. Rates of change are
    learnt from the visits, see `ChangeRates` for `prior_days`, `bounds` (per day) and `rates`. `importance`: one number per page
    (μ), by default as the visits state it. Pages never visited come first.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> case = Case(tiny_world([[{cycle}, {100 + cycle}] for cycle in range(9)]), (Budget(1),))
    >>> [choice.page.tolist() for choice in choices(FreshnessValue(importance=np.array([1.0, 9.0])), case)]
    [[1], [1], [1], [1], [1], [1], [0], [1]]

    References: Cho and Garcia-Molina (2003); Azar et al. (2018), as in Busa-Fekete et al. (2025).
    """

    name: ClassVar[str] = "freshness-value"
    paper: ClassVar[str | None] = None
    weighs: ClassVar[bool] = True

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

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The highest value first."""
        changes, hours = self.rates_.per_day, pages.age_hours(now)
        importance = given_or_stated(self.importance, self.importance_, pages)
        value = freshness_values(changes, hours / 24.0, importance)
        return take(
            value,
            pages,
            budget,
            first=pages.n_visits == 0,
            reason="changes {changes:.2f} times per day, last visit {hours:.1f} h ago: worth {value:.3f}",
            detail={
                "changes": changes,
                "hours": hours,
                "value": value,
                "probability": -np.expm1(-changes * hours / 24.0),
            },
        )

    def observe(self, visits: Visits) -> None:
        """Learn the rates of change."""
        self.rates_.observe(visits)
