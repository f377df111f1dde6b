"""Renew the copies that will be current for longest, with knowledge of the future."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.select import take
from recrawl.world.pages import Need, Pages


class FreshnessOracle(Policy):
    """Visit pages whose copy is out of date, first those that will then stay as they are for longest.

    What knowledge of the future can do for freshness: no visit is wasted, and none goes to what will have changed again tomorrow if
    there is anything better. Others are measured by it, though it is not quite the best possible: where the budget would be
    enough for everything in the end, it can be better to begin with what changes soonest. It can only be replayed.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> restless, calm = [{0}, {1}, {2}, {3}], [{10}, {11}, {11}, {11}]
    >>> case = Case(tiny_world(list(zip(restless, calm))), (Budget(1),))
    >>> [choice.page.tolist() for choice in choices(FreshnessOracle(), case)]
    [[1], [0], [0]]
    """

    name: ClassVar[str] = "freshness-oracle"
    paper: ClassVar[str | None] = None
    weighs: ClassVar[bool] = True
    needs = frozenset({Need.FUTURE})

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The longest lasting first; nothing that would not be renewed."""
        if pages.future is None:
            raise ValueError(f"{self.name} needs to know the future: it can only be replayed")
        renews, cycles = pages.future.renewable()
        lasts = cycles.astype(np.float64)
        reason = "its copy is out of date, and a new one will be current for {cycles:.0f} cycles"
        return take(lasts, pages, budget, may=renews, reason=reason, detail={"cycles": lasts}, weighs=True)
