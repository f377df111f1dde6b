"""Visit every page in every cycle."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.select import take
from recrawl.world.pages import Pages


class BruteForce(Policy):
    """Visit every page in every cycle, as far as the budget reaches.

    It finds everything at the highest price, so it is what others are measured by: in a replay, give it a budget of as many pages
    as there are, and its coverage is 1. With a smaller budget the longest waiting come first, and this is round-robin.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> world = tiny_world([[{1}, {2}, {3}]] * 3)
    >>> [choice.page.tolist() for choice in choices(BruteForce(), Case(world, (Budget(3),)))]
    [[0, 1, 2], [0, 1, 2]]

    References: Brute Force of Jayawardana et al. (2020), section III-B.
    """

    name: ClassVar[str] = "brute-force"
    paper: ClassVar[str | None] = "Brute Force"

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """All pages, as far as the budget reaches."""
        waited = pages.age_hours(now)
        reason = "every page is visited in every cycle; waited {hours:.0f} h"
        return take(waited, pages, budget, reason=reason, detail={"hours": waited})
