"""Renew the copies that will be current for longest, with foreknowledge."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.policies.base import Budget, Choice, Flags, Ints, Pages, Policy
from recrawl.policies.select import take


class FreshnessOracle(Policy):
    """Visit pages whose kept copy is out of date, those first that will then stay as they are for longest.

    What foreknowledge can do for freshness: no visit is made for nothing, and none for what will be gone tomorrow if there is
    anything better. It is what others are measured by, and not quite the best there is: where the budget would do for
    everything in the end, it can be better to see to what passes first.
    """

    name: ClassVar[str] = "freshness-oracle"
    paper: ClassVar[str | None] = None
    sees_future: ClassVar[bool] = True
    foresees: ClassVar[str] = "changes"

    def foresee(self, renewable: Callable[[], tuple[Flags, Ints]]) -> None:
        """Where to learn which copies a visit would renew, and for how many cycles."""
        self.renewable_ = renewable

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The longest lasting first; nothing that would not be renewed."""
        renews, cycles = self.renewable_()
        lasts = cycles.astype(np.float64)
        reason = "its copy is out of date, and a new one will do for {cycles:.0f} cycles"
        return take(lasts, pages, budget, may=renews, reason=reason, detail={"cycles": lasts})
