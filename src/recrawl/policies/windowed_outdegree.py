"""Visit the pages that brought most new links on average."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.select import take
from recrawl.policies.window import SWEEP, Window, checked_begin, come_first
from recrawl.world.pages import Pages, Visits


class WindowedOutdegree(Policy):
    """Visit the pages with the highest average number of new links over the visits of the last `window` cycles.

    Simple, and hard to beat where busy pages stay busy: the window forgets what pages were like long ago. `begin`: with "sweep",
    pages visited only once come first, since nothing else would ever show how they change; with "outdegree", the links of a
    page's first visit count as new and no page comes first. Pham et al. can be read both ways.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> quiet, busy = [{1}] * 6, [{10}, {11}, {12}, {13}, {14}, {15}]
    >>> case = Case(tiny_world(list(zip(quiet, busy))), (Budget(1),))
    >>> [choice.page.tolist() for choice in choices(WindowedOutdegree(window=3), case)]
    [[0], [1], [1], [1], [1]]

    References: OD-WIN of Dasgupta et al. (2007) as in Pham, Santos and Freire (2018), section 5.3.
    """

    name: ClassVar[str] = "windowed-outdegree"
    paper: ClassVar[str | None] = "OD-WIN"
    weighs: ClassVar[bool] = True

    def __init__(self, window: int = 168, begin: str = SWEEP) -> None:
        self.window, self.begin = window, checked_begin(begin)

    def start(self, pages: Pages) -> None:
        """Forget all averages."""
        self.past_ = Window(len(pages), self.window, self.begin)

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The highest average first."""
        return highest_average(self.past_, pages, budget)

    def observe(self, visits: Visits) -> None:
        """Add to the averages."""
        self.past_.observe(visits)


def highest_average(past: Window, pages: Pages, budget: Budget) -> Choice:
    """The pages with the highest average over a window, overlapping or not: plain OD-WIN."""
    mean = past.mean
    return take(
        mean,
        pages,
        budget,
        first=come_first(pages, past.begin),
        reason="{mean:.1f} new links per visit over the last {n} visits",
        detail={"mean": mean, "n": past.n},
        expected=mean,
        weighs=True,
    )
