"""As windowed-outdegree, but one page of each group that shows the same links."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from recrawl.policies.base import TOP_OVERLAPS
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.select import take
from recrawl.policies.window import SWEEP, come_first
from recrawl.policies.windowed_outdegree import WindowedOutdegree
from recrawl.world.pages import Pages, Visits


class WindowedClique(WindowedOutdegree):
    """Visit the pages with the highest average of new links, but only one of each group of pages that overlap.

    Better than `windowed-outdegree` where several pages of a site list the same new links. A group is a picked page and all that
    overlap with it by more than `above`. `memory`: cycles after which an overlap is forgotten, None for never. `fill`: use up a
    budget that is greater than the number of groups. `begin` as in `WindowedOutdegree`.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> shows = [[{10 * i, 10 * i + 1}, {10 * i, 10 * i + 1}, {10 * i + 2}] for i in range(4)]  # two pages are alike
    >>> [choice.page.tolist() for choice in choices(WindowedClique(), Case(tiny_world(shows), (Budget(2),)))]
    [[0, 1], [2, 0], [0, 2]]

    References: CLIQ-WIN* of Pham, Santos and Freire (2018), section 5.3.
    """

    name: ClassVar[str] = "windowed-clique"
    paper: ClassVar[str | None] = "CLIQ-WIN*"

    def __init__(
        self,
        window: int = 168,
        above: float = 0.7,
        memory: int | None = None,
        fill: bool = True,
        begin: str = SWEEP,
    ) -> None:
        super().__init__(window, begin)
        self.above, self.memory, self.fill = above, memory, fill

    def start(self, pages: Pages) -> None:
        """Forget all averages and overlaps."""
        from recrawl.policies.overlap import Overlap

        super().start(pages)
        self.overlap_ = Overlap(pages.site, self.memory)

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The highest average first, none that overlaps with one already picked."""
        mean = self.past_.mean
        return take(
            mean,
            pages,
            budget,
            first=come_first(pages, self.begin),
            overlap=self.overlap_,
            above=self.above,
            fill=self.fill,
            reason="{mean:.1f} new links per visit over the last {n} visits, the best of the pages that show the same links",
            detail={"mean": mean, "n": self.past_.n},
            expected=mean,
            weighs=True,
        )

    def observe(self, visits: Visits) -> None:
        """Add to the averages, and compare the pages with each other."""
        super().observe(visits)
        self.overlap_.observe(visits)

    def _overlaps(self, page: int) -> tuple[tuple[int, float], ...]:
        return tuple(self.overlap_.of(page)[:TOP_OVERLAPS])
