"""A part of the budget by regression, the rest by waiting time: with a fixed share, or one that a bandit learns."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.policies.base import Budget, Choice, Pages, Visits
from recrawl.policies.regression import Regression
from recrawl.policies.round_robin import RoundRobin


class RegressionRoundRobin(Regression):
    """A fixed share of the budget by regression, the rest for the pages that waited longest.

    References: REG-RR of Pham, Santos and Freire (2018), section 5.3; 0.9 is the paper's share.
    """

    name: ClassVar[str] = "regression-round-robin"
    paper: ClassVar[str | None] = "REG-RR"

    def __init__(
        self,
        share: float = 0.9,
        window: int = 168,
        bootstrap: int = 10,
        retrain: int = 3,
        above: float = 0.7,
        memory: int | None = None,
        fill: bool = True,
    ) -> None:
        super().__init__(window, bootstrap, retrain, above, memory, fill)
        self.share = share

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """First the best by regression, then those that waited longest."""
        return self.parted(self.share, pages, budget, now)

    def parted(self, share: float, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """Algorithm 3: `share` of the budget exploits, the rest explores."""
        best = self.pick(pages, replace(budget, pages=round(share * budget.pages)), now)
        return best.then(RoundRobin().choose(pages, budget.rest(best, len(pages)), now))


class Bandit(RegressionRoundRobin):
    """As regression-round-robin, with a share that UCB1 chooses in every cycle by what each share has brought so far.

    The reward of a share is the number of new links found, averaged over the cycles that used it. UCB1 asks for rewards between
    0 and 1: they are divided by the greatest seen so far (the paper does not say how). `exploration` is the factor of
    the confidence term, 1 as in UCB1.

    References: BANDIT of Pham, Santos and Freire (2018), section 4.3 and Algorithm 3; Auer, Cesa-Bianchi and Fischer (2002).
    """

    name: ClassVar[str] = "bandit"
    paper: ClassVar[str | None] = "BANDIT"

    def __init__(
        self,
        shares: tuple[float, ...] = (0.6, 0.7, 0.8, 0.9, 1.0),
        exploration: float = 1.0,
        window: int = 168,
        bootstrap: int = 10,
        retrain: int = 3,
        above: float = 0.7,
        memory: int | None = None,
        fill: bool = True,
    ) -> None:
        super().__init__(0.9, window, bootstrap, retrain, above, memory, fill)
        self.shares, self.exploration = shares, exploration

    def start(self, pages: Pages) -> None:
        """Forget everything."""
        super().start(pages)
        self.arm_: int | None = None
        self.n_ = np.zeros(len(self.shares))
        self.sum_ = np.zeros(len(self.shares))
        self.greatest_ = 1

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """Choose a share; while the regression has nothing to learn from, the averages alone choose."""
        if self.cycle_ <= self.bootstrap:
            self.arm_ = None
            return self.pick(pages, budget, now)
        self.arm_ = self.next_arm()
        return self.parted(self.shares[self.arm_], pages, budget, now)

    def next_arm(self) -> int:
        """UCB1: every arm once, then the one with the highest mean reward plus confidence."""
        if (self.n_ == 0).any():
            return int(np.argmax(self.n_ == 0))
        mean = self.sum_ / self.n_ / self.greatest_
        return int(np.argmax(mean + self.exploration * np.sqrt(2 * np.log(self.n_.sum()) / self.n_)))

    def observe(self, visits: Visits) -> None:
        """Reward the share that was used."""
        super().observe(visits)
        if self.arm_ is not None:
            self.n_[self.arm_] += 1
            self.sum_[self.arm_] += visits.n_found
            self.greatest_ = max(self.greatest_, visits.n_found)
