"""Pages that together show most distinct links: by what was seen so far, or with knowledge of the future."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.core.arrays import Ints, Ints32
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.select import take
from recrawl.policies.window import OUTDEGREE, SWEEP, checked_begin, come_first
from recrawl.world.pages import Need, Pages, Visits


class SetCover(Policy):
    """Visit the pages that together cover most of the new links seen so far: greedy set cover.

    Good where many pages show the same links and go on doing so. A page's set is the union of what was new on each of its visits.
    Pages visited only once come first, unless `begin` is "outdegree" (see `WindowedOutdegree`). When everything is covered, the
    rest of the budget goes to the pages that waited longest.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> hub = [set(range(4 * i, 4 * i + 4)) for i in range(6)]  # shows all that the next two show
    >>> part, other_part = ([set(sorted(links)[half]) for links in hub] for half in (slice(2), slice(2, 4)))
    >>> case = Case(tiny_world(list(zip(part, hub, other_part))), (Budget(3), Budget(1)))
    >>> [choice.page.tolist() for choice in choices(SetCover(), case)]
    [[0, 1, 2], [1], [1, 0, 2], [1], [1, 0, 2]]

    References: COV* of Pham, Santos and Freire (2018), section 5.3, after Dasgupta et al. (2007).
    """

    name: ClassVar[str] = "set-cover"
    paper: ClassVar[str | None] = "COV*"
    weighs: ClassVar[bool] = True

    def __init__(self, begin: str = SWEEP) -> None:
        self.begin = checked_begin(begin)

    def start(self, pages: Pages) -> None:
        """Forget all that was seen."""
        self.owner_: Ints = np.empty(0, np.int64)
        self.links_: Ints32 = np.empty(0, np.int32)
        self.fresh_: list[tuple[Ints, Ints32]] = []

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """Greedily, the page that adds most links to those covered."""
        from recrawl.policies.greedy_cover import greedy_gains

        start, links = self.sets(len(pages))
        first = come_first(pages, self.begin)
        score, gain = greedy_gains(start, links, pages, budget, first)
        waited = pages.age_hours(now)
        rest = 0.5 - 0.5 / (1.0 + waited)  # below every page that adds links
        return take(
            np.where(score > 0, score, rest),
            pages,
            budget,
            first=first,
            reason="adds {gain:.0f} links of the past to those covered by the pages before it",
            detail={"gain": gain},
        )

    def sets(self, n_pages: int) -> tuple[Ints, Ints32]:
        """All new links of each page so far, as lists in the order of the pages."""
        if self.fresh_:
            self.owner_ = np.concatenate([self.owner_, *(owner for owner, _ in self.fresh_)])
            self.links_ = np.concatenate([self.links_, *(links for _, links in self.fresh_)])
            self.fresh_ = []
            order = np.argsort(self.owner_, kind="stable")
            self.owner_, self.links_ = self.owner_[order], self.links_[order]
        return np.searchsorted(self.owner_, np.arange(n_pages + 1)), self.links_

    def observe(self, visits: Visits) -> None:
        """Add what was new."""
        self.fresh_.append((np.repeat(visits.page, visits.n_new), visits.new.links))
        if self.begin == OUTDEGREE:
            first = visits.is_first
            is_first = np.repeat(first, visits.shown.sizes)
            self.fresh_.append((np.repeat(visits.page[first], visits.shown.sizes[first]), visits.shown.links[is_first]))


class Oracle(Policy):
    """Visit the pages that will show most unknown links, with knowledge of this cycle and with overlap taken into account.

    An upper bound for policies that decide cycle by cycle. Those that plan ahead can beat it, since it does not wait for links
    that will still be there tomorrow. It can only be replayed.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> world = tiny_world([[{1}, {2}], [{1, 3}, {2}], [{3}, {2, 4}]])
    >>> [choice.page.tolist() for choice in choices(Oracle(), Case(world, (Budget(1),)))]
    [[0], [1]]

    References: GREEDY of Dasgupta et al. (2007) as in Pham, Santos and Freire (2018), section 5.3.
    """

    name: ClassVar[str] = "oracle"
    paper: ClassVar[str | None] = "GREEDY"
    weighs: ClassVar[bool] = True
    needs = frozenset({Need.FUTURE})

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """Greedily, the page that adds most unknown links."""
        from recrawl.policies.greedy_cover import greedy_gains

        if pages.future is None:
            raise ValueError(f"{self.name} needs to know the future: it can only be replayed")
        unseen = pages.future.unseen_links()
        score, gain = greedy_gains(unseen.start, unseen.links, pages, budget)
        reason = "will show {gain:.0f} unknown links"
        return take(score, pages, budget, reason=reason, detail={"gain": gain}, expected=gain)
