"""A share of the budget by regression, the rest by waiting time, with a share that a bandit learns."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar

import numpy as np

from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.regression import Regression
from recrawl.policies.regression_round_robin import split
from recrawl.policies.round_robin import RoundRobin
from recrawl.world.pages import Pages, Visits


class Bandit(Policy):
    """As regression-round-robin, with a share that UCB1 chooses in every cycle by what each share has brought so far.

    Good where it is not known beforehand how far predictions can be trusted. `inner` gets the share and `rest` what is left; any
    two policies will do, and settings of theirs can be given by name. The reward of a share is the number of new links found,
    averaged over the cycles that used it. UCB1 takes rewards between 0 and 1: they are divided by the greatest so far (the
    paper does not say how). `exploration` is the factor of the confidence term, 1 as in UCB1. Until `inner` has seen enough,
    it gets the whole budget. The share that was used travels with the choice (`Choice.memo`), so that the visits made for it
    reward that share, whenever they come back.

    >>> Bandit(Regression(window=28), exploration=2.0)
    Bandit(exploration=2.0, window=28)
    >>> from recrawl.policies import AverageCount
    >>> from recrawl.testing import Case, choices, tiny_world
    >>> quiet, busy = [{1}] * 6, [{10}, {11}, {12}, {13}, {14}, {15}]
    >>> case = Case(tiny_world(list(zip(quiet, busy))), (Budget(1),))
    >>> bandit = Bandit(inner=AverageCount(), shares=(0.0, 1.0))
    >>> [(choice.page.tolist(), choice.memo["arm"]) for choice in choices(bandit, case)]
    [([0], 0), ([1], 1), ([1], 1), ([1], 1), ([1], 1)]

    References: BANDIT of Pham, Santos and Freire (2018), section 4.3 and Algorithm 3; Auer, Cesa-Bianchi and Fischer (2002).
    """

    name: ClassVar[str] = "bandit"
    paper: ClassVar[str | None] = "BANDIT"
    weighs: ClassVar[bool] = True
    components: ClassVar[dict[str, type]] = {"inner": Regression, "rest": RoundRobin}

    def __init__(
        self,
        inner: Policy | None = None,
        rest: Policy | None = None,
        shares: tuple[float, ...] = (0.6, 0.7, 0.8, 0.9, 1.0),
        exploration: float = 1.0,
        **settings: Any,
    ) -> None:
        self.inner: Policy = self._component("inner", inner, settings)
        self.rest: Policy = self._component("rest", rest, settings)
        self._no_more(settings)
        self.shares, self.exploration = shares, exploration
        self.needs = self.inner.needs | self.rest.needs

    def start(self, pages: Pages) -> None:
        """Forget everything."""
        self.inner.start(pages)
        self.rest.start(pages)
        self.n_ = np.zeros(len(self.shares))
        self.sum_ = np.zeros(len(self.shares))
        self.greatest_ = 1

    def extend(self, pages: Pages, n_before: int) -> None:
        """More pages are known."""
        self.inner.extend(pages, n_before)
        self.rest.extend(pages, n_before)

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """Split the budget by the share whose turn it is; while the inner policy is not settled, it gets all."""
        if not self.inner.is_settled:
            return self.inner.choose(pages, budget, now)
        arm = self.next_arm()
        choice = split(self.inner, self.rest, self.shares[arm], pages, budget, now)
        return replace(choice, memo={**choice.memo, "arm": arm})

    def next_arm(self) -> int:
        """UCB1: every arm once, then the one with the highest mean reward plus confidence."""
        if (self.n_ == 0).any():
            return int(np.argmax(self.n_ == 0))
        mean = self.sum_ / self.n_ / self.greatest_
        return int(np.argmax(mean + self.exploration * np.sqrt(2 * np.log(self.n_.sum()) / self.n_)))

    def observe(self, visits: Visits) -> None:
        """Reward the share that was used, if these visits come from a choice of this policy."""
        self.inner.observe(visits)
        self.rest.observe(visits)
        if visits.memo is not None and "arm" in visits.memo:
            arm = int(visits.memo["arm"])
            self.n_[arm] += 1
            self.sum_[arm] += visits.n_found
            self.greatest_ = max(self.greatest_, visits.n_found)

    def _overlaps(self, page: int) -> tuple[tuple[int, float], ...]:
        return self.inner._overlaps(page)
