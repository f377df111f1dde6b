"""A fixed share of the budget by regression, the rest by waiting time."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar

import numpy as np

from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.regression import Regression
from recrawl.policies.round_robin import RoundRobin
from recrawl.world.pages import Pages, Visits


def split(inner: Policy, rest: Policy, share: float, pages: Pages, budget: Budget, now: datetime) -> Choice:
    """`share` of the budget by one policy, what is left by another (Pham, Santos and Freire 2018, Algorithm 3)."""
    best = inner.choose(pages, replace(budget, pages=round(share * budget.pages)), now)
    others = rest.choose(pages, budget.rest(best, len(pages)), now)
    return best.then(replace(others, is_trial=np.ones(len(others), np.bool_)))


class RegressionRoundRobin(Policy):
    """A fixed share of the budget by regression, the rest for the pages that waited longest.

    Good where predictions are mostly right, but pages that seemed quiet may wake up. `inner` gets `share` of the budget and `rest`
    what is left; any two policies will do, and settings of theirs can be given by name.

    >>> RegressionRoundRobin(Regression(window=28), share=0.8)
    RegressionRoundRobin(share=0.8, window=28)
    >>> from recrawl.testing import Case, choices, tiny_world
    >>> gains = [[{100 * page + page * cycle + i for i in range(page)} for page in range(4)] for cycle in range(10)]
    >>> chosen = choices(RegressionRoundRobin(share=0.5), Case(tiny_world(gains), (Budget(2),)))
    >>> [choice.page.tolist() for choice in chosen][-3:]  # page p gains p links per cycle
    [[3, 1], [3, 2], [3, 0]]

    References: REG-RR of Pham, Santos and Freire (2018), section 5.3; 0.9 is the paper's share.
    """

    name: ClassVar[str] = "regression-round-robin"
    paper: ClassVar[str | None] = "REG-RR"
    weighs: ClassVar[bool] = True
    components: ClassVar[dict[str, type]] = {"inner": Regression, "rest": RoundRobin}

    def __init__(
        self, inner: Policy | None = None, rest: Policy | None = None, share: float = 0.9, **settings: Any
    ) -> None:
        self.inner: Policy = self._component("inner", inner, settings)
        self.rest: Policy = self._component("rest", rest, settings)
        self._no_more(settings)
        self.share = share
        self.needs = self.inner.needs | self.rest.needs

    def start(self, pages: Pages) -> None:
        """Forget everything."""
        self.inner.start(pages)
        self.rest.start(pages)

    def extend(self, pages: Pages, n_before: int) -> None:
        """More pages are known."""
        self.inner.extend(pages, n_before)
        self.rest.extend(pages, n_before)

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """First the best by regression, then those that waited longest."""
        return split(self.inner, self.rest, self.share, pages, budget, now)

    def observe(self, visits: Visits) -> None:
        """Both learn from all visits."""
        self.inner.observe(visits)
        self.rest.observe(visits)

    def _overlaps(self, page: int) -> tuple[tuple[int, float], ...]:
        return self.inner._overlaps(page)
