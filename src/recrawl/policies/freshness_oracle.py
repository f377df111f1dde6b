"""Renew the copies that will be current for longest, with foreknowledge."""

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
    """Visit pages whose kept copy is out of date, those first that will then stay as they are for longest.

    What foreknowledge can do for freshness: no visit is made for nothing, and none for what will be gone tomorrow if there is
    anything better. It is what others are measured by, and not quite the best there is: where the budget would do for
    everything in the end, it can be better to see to what passes first.
    """

    name: ClassVar[str] = "freshness-oracle"
    paper: ClassVar[str | None] = None
    needs = frozenset({Need.FUTURE})

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The longest lasting first; nothing that would not be renewed."""
        if pages.future is None:
            raise ValueError(f"{self.name} needs to know the future: it can only be replayed")
        renews, cycles = pages.future.renewable()
        lasts = cycles.astype(np.float64)
        reason = "its copy is out of date, and a new one will do for {cycles:.0f} cycles"
        return take(lasts, pages, budget, may=renews, reason=reason, detail={"cycles": lasts})
