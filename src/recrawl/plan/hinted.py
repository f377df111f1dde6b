"""Hints of sitemaps and feeds in a plan: used where they have proven true, and only there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from recrawl.hints import Worths
from recrawl.hints_told import told
from recrawl.history import History
from recrawl.history.hints import HINTS
from recrawl.plan.goals import Goal
from recrawl.policies.base import Budget, Cause, Choice, Floats, Ints, Pages, Policy, Visits, moment
from recrawl.policies.select import take
from recrawl.world_pages import named_pages

UNLIKELY = 0.1  #: below it a page that a complete source does not name is left out …
TESTED = 10  #: … but for one in so many, by turns, so that the source goes on being tested
LARGEST_SHARE = 0.5  #: of a budget that may go to hinted pages: hints must not starve what they do not name


@dataclass(frozen=True)
class Hints:
    """What sitemaps and feeds say of each page, as far as that is worth something on its host."""

    probability: Floats  # that the page changed since its last visit; NaN where nothing proven tells
    reason: list[str]  # "" where nothing says that it changed

    def __bool__(self) -> bool:
        return bool((~np.isnan(self.probability)).any())


def hints_of(history: History, page: Ints, host: Ints, last_visit: Ints) -> Hints | None:
    """What is hinted of these pages now; None where no sitemap or feed was ever read.

    `host` numbers the hosts of the pages, `last_visit` is in microseconds. Of a history as of some time nothing read later counts.
    """
    probability, reason, any_told = np.full(len(page), np.nan), [""] * len(page), False
    for of_kind in told(history, page, host):
        any_told = True
        newest, worths = of_kind.newest(), of_kind.worths()
        hinted = newest > last_visit
        likely = worths.probability(host, hinted)
        better = ~np.isnan(likely) & ~(likely <= probability)
        probability[better] = likely[better]
        for i in np.flatnonzero(better & hinted).tolist():
            reason[i] = worths.reason(int(host[i]), moment(int(newest[i])))
    return Hints(probability, reason) if any_told else None


def worths_of(history: History) -> list[Worths]:
    """The record of each kind of source on every host of the history."""
    if not HINTS.read(history.store.folder).num_rows or not history.slim_timeline.n_visits:
        return []
    page, _, host, _ = named_pages(history, history.slim_timeline.pages)
    return [of_kind.worths() for of_kind in told(history, page, host)]


class Hinted(Policy):
    """Another policy, after the hinted pages that promise more than what that policy would visit on average.

    Pages that a source does not name, on a host where it has named nearly all changes, are left out, but for a tenth of them. A
    hinted page promises what its changes brought so far, times the probability that it changed; with the goal content that
    probability. At most half of the budget goes to hints.
    """

    def __init__(self, inner: Policy, hints: Hints, expectation: Any, goal: Goal) -> None:
        self.inner, self.hints, self.expectation, self.goal = inner, hints, expectation, goal
        self.name = inner.name  # type: ignore[misc]

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """Hinted pages first, as far as they are better; then what the inner policy chooses."""
        budget = self._without_unlikely(budget, now)
        own = self.inner.choose(pages, budget, now)
        gain, usual = self._gains(pages, own, now)
        better = ~np.isnan(gain) & (np.nan_to_num(gain) > usual)
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
        """What each hinted page promises, and what a page of the inner policy's choice does on average."""
        if self.goal == "content":
            return self.hints.probability, 0.5
        past = self.expectation
        n_links, n_hits = np.nan_to_num(past.n_links), np.nan_to_num(past.n_hits)
        usual = n_links.sum() / max(n_hits.sum(), 1.0)
        per_change = (n_links + usual) / (n_hits + 1.0)
        expected = past.expect(pages, now)[0]
        mine = own.expected if own.expected is not None else expected[own.page]
        mine = np.where(np.isnan(mine), expected[own.page], mine)
        return self.hints.probability * per_change, float(mine.mean()) if len(mine) else 0.0

    def observe(self, visits: Visits) -> None:
        """The inner policy learns."""
        self.inner.observe(visits)
