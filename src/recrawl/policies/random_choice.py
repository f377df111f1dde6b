"""Visit pages drawn by lot."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.policies.base import Budget, Choice, Pages, Policy
from recrawl.policies.select import take


class RandomChoice(Policy):
    """Visit pages drawn by lot, every page with the same chance in every cycle.

    What a policy must beat to have learnt anything. `seed`: equal seeds draw the same pages, and `start` draws them anew.

    References: Random of Jayawardana et al. (2020), section III-B.
    """

    name: ClassVar[str] = "random"
    paper: ClassVar[str | None] = "Random"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def start(self, pages: Pages) -> None:
        """Begin the draws anew."""
        self.lots_ = np.random.default_rng(self.seed)

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The highest lots."""
        lot = self.lots_.random(len(pages))
        return take(lot, pages, budget, reason="drew lot {lot:.4f}", detail={"lot": lot})
