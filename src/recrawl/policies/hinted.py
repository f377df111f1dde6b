"""Hints of sitemaps and feeds in a plan: used where they have proven true, and only there."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from recrawl.core.arrays import Floats
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget, Cause
from recrawl.policies.choice import Choice
from recrawl.policies.select import take
from recrawl.world.pages import Pages, Visits

if TYPE_CHECKING:
    from recrawl.insight.hints.of_pages import Hints

UNLIKELY = 0.1  #: probability of a change below which a page that a complete source does not name is left out
TESTED = 10  #: one in ten of these is visited nevertheless, by turns, so that the source goes on being tested
LARGEST_SHARE = 0.5  #: of a budget that may go to hinted pages: hints must not starve what they do not name


class Hinted(Policy):
    """Another policy, after the hinted pages that are expected to bring more than what that policy would visit on average.

    Used by plans where sitemaps or feeds were read and have proven true. Pages that a source does not name, on a host where it has
    named nearly all changes, are left out, but for a tenth of them. A hinted page is expected to bring what its changes brought so
    far, times the probability that it changed; with the goal content, that probability. At most half of the budget goes to hints.
    `expectation` holds what each page has brought so far.
    """

    name: ClassVar[str] = "hinted"

    def __init__(self, inner: Policy, hints: Hints, expectation: Any, goal: str) -> None:
        self.inner, self.hints, self.expectation, self.goal = inner, hints, expectation, goal
        self.needs = inner.needs

    def start(self, pages: Pages) -> None:
        """The inner policy forgets everything."""
        self.inner.start(pages)

    def extend(self, pages: Pages, n_before: int) -> None:
        """More pages are known."""
        self.inner.extend(pages, n_before)

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """Hinted pages first, as far as they are better; then what the inner policy chooses."""
        budget = self._without_unlikely(budget, now)
        own = self.inner.choose(pages, budget, now)
        gain, usual = self._gains(pages, own, now)
        better = ~np.isnan(gain) & (pages.weighed(np.nan_to_num(gain)) > usual)
        if not better.any():
            return own
        few = replace(budget, pages=int(np.ceil(budget.pages * LARGEST_SHARE)))
        first = take(
            np.nan_to_num(gain),
            pages,
            few,
            may=better,
            reason="{hint}",
            detail={"hint": np.array(self.hints.reason, dtype=object)},
            expected=gain if self.goal != "content" else None,
            judges_new=True,
            weighs=True,
        )
        rest = self.inner.choose(pages, budget.rest(first, len(pages)), now)
        return first.then(rest)

    def _without_unlikely(self, budget: Budget, now: datetime) -> Budget:
        n = len(self.hints.probability)
        barred = np.zeros(n, np.int8) if budget.barred is None else budget.barred.copy()
        tested = (np.arange(n) + now.toordinal()) % TESTED == 0
        barred[(self.hints.probability < UNLIKELY) & ~tested & (barred == 0)] = Cause.UNPROMISING
        return replace(budget, barred=barred)

    def _gains(self, pages: Pages, own: Choice, now: datetime) -> tuple[Floats, float]:
        """What each hinted page is expected to bring, and what a page of the inner policy's choice is worth on average."""
        weights = np.ones(len(own)) if pages.importance is None else pages.importance[own.page]
        if self.goal == "content":
            return self.hints.probability, 0.5 * float(weights.mean()) if len(own) else 0.5
        past = self.expectation
        n_links, n_hits = np.nan_to_num(past.n_links), np.nan_to_num(past.n_hits)
        usual = n_links.sum() / max(n_hits.sum(), 1.0)
        per_change = (n_links + usual) / (n_hits + 1.0)
        expected = past.expect(pages, now)[0]
        mine = own.expected if own.expected is not None else expected[own.page]
        mine = np.where(np.isnan(mine), expected[own.page], mine)
        return self.hints.probability * per_change, float((mine * weights).mean()) if len(mine) else 0.0

    def observe(self, visits: Visits) -> None:
        """The inner policy learns."""
        self.inner.observe(visits)

    def _overlaps(self, page: int) -> tuple[tuple[int, float], ...]:
        return self.inner._overlaps(page)
