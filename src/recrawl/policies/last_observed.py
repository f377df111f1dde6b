"""Visit the pages whose last update was seen longest ago."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.core.arrays import Ints
from recrawl.core.times import NEVER, US_PER_HOUR, microseconds
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.page_updates import checked_kind, updates_in
from recrawl.policies.select import take
from recrawl.world.pages import Need, Pages, Visits


class LastObserved(Policy):
    """Visit the pages whose last update was seen longest ago; where none was seen, the time since the last visit counts.

    A baseline: an update is a link never before seen on the page; with `updates` "content", any change. The paper names the rule by
    the last visit (which would be `round-robin`), but ranks by the last update, t - τ, and so does this. A page that was updated
    once and then never again keeps its place at the top, visit after visit: a weakness of the rule, not of the data.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> updated_once, updated_always = [{1}, {1, 2}, {2}, {2}, {2}], [{10}, {11}, {12}, {13}, {14}]
    >>> case = Case(tiny_world(list(zip(updated_once, updated_always))), (Budget(1),))
    >>> [choice.page.tolist() for choice in choices(LastObserved(), case)]
    [[0], [1], [0], [0]]

    References: Last-Obs of Jayawardana et al. (2020), section III-C.
    """

    name: ClassVar[str] = "last-observed"
    paper: ClassVar[str | None] = "Last-Obs"
    needs = frozenset({Need.UPDATES})

    def __init__(self, updates: str = "links") -> None:
        self.updates = checked_kind(updates)

    def start(self, pages: Pages) -> None:
        """Forget all updates."""
        self.last_update_: Ints = np.full(len(pages), NEVER)

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The longest without an update first; those never visited before all others."""
        known = self.last_update_ != NEVER
        quiet = (microseconds(now) - np.where(known, self.last_update_, 0)) / US_PER_HOUR
        hours = np.where(known, np.maximum(quiet, 0.0), pages.age_hours(now))
        return take(hours, pages, budget, reason="no update seen for {hours:.0f} h", detail={"hours": hours})

    def observe(self, visits: Visits) -> None:
        """Remember which pages were updated."""
        updated = updates_in(visits, self.updates)[1] == 1
        self.last_update_[visits.page[updated]] = visits.at[updated]
