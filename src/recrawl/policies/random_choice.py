"""Visit pages chosen at random."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.core.times import microseconds
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.select import take
from recrawl.world.pages import Pages


class RandomChoice(Policy):
    """Visit pages chosen at random, each with the same probability in every cycle.

    What a policy must beat to have learnt anything. The draw depends on the seed and the time: asked again at the same moment, it
    is the same; the next night it is another.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> world = tiny_world([[{1}, {2}, {3}]] * 5)
    >>> [choice.page.tolist() for choice in choices(RandomChoice(seed=1), Case(world, (Budget(1),)))]
    [[2], [1], [1], [1]]

    References: Random of Jayawardana et al. (2020), section III-B.
    """

    name: ClassVar[str] = "random"
    paper: ClassVar[str | None] = "Random"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The highest numbers drawn."""
        at = microseconds(now)
        lot = np.random.default_rng([self.seed, abs(at), int(at < 0)]).random(len(pages))
        return take(lot, pages, budget, reason="drew lot {lot:.4f}", detail={"lot": lot})
