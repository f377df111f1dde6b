"""Visit pages chosen at random."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.select import take
from recrawl.world.pages import Pages, Visits


class RandomChoice(Policy):
    """Visit pages chosen at random, each with the same probability in every cycle.

    What a policy must beat to have learnt anything. Equal seeds draw the same pages.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> world = tiny_world([[{1}, {2}, {3}]] * 5)
    >>> [choice.page.tolist() for choice in choices(RandomChoice(seed=1), Case(world, (Budget(1),)))]
    [[1], [0], [0], [1]]

    References: Random of Jayawardana et al. (2020), section III-B.
    """

    name: ClassVar[str] = "random"
    paper: ClassVar[str | None] = "Random"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def start(self, pages: Pages) -> None:
        """Start the draws again."""
        self.n_draws_ = 0

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The highest numbers drawn."""
        # One stream of numbers, read from where this cycle's begin: asked twice, the draw is the same.
        stream = np.random.PCG64(self.seed).advance(self.n_draws_ * len(pages))
        lot = np.random.Generator(stream).random(len(pages))
        return take(lot, pages, budget, reason="drew lot {lot:.4f}", detail={"lot": lot})

    def observe(self, visits: Visits) -> None:
        """After visits that it chose, it draws other numbers."""
        self.n_draws_ += visits.memo is not None
