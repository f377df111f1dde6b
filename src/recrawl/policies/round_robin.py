"""Visit the pages that waited longest."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.select import take
from recrawl.world.pages import Pages


class RoundRobin(Policy):
    """Visit the pages that waited longest.

    The uniform baseline: with a budget of k pages every page is seen once in n/k cycles, whatever it is worth.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> world = tiny_world([[{1}, {2}, {3}, {4}]] * 4)  # four pages: a first crawl, and three cycles
    >>> [choice.page.tolist() for choice in choices(RoundRobin(), Case(world, (Budget(2),)))]
    [[0, 1], [2, 3], [0, 1]]

    References: RR of Pham, Santos and Freire (2018), section 5.3.
    """

    name: ClassVar[str] = "round-robin"
    paper: ClassVar[str | None] = "RR"
    parted: ClassVar[bool] = True

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The longest waiting first; those never visited before all others."""
        waited = pages.age_hours(now)
        return take(waited, pages, budget, reason="waited {hours:.0f} h", detail={"hours": waited})
