"""Visit whole websites: those that were most probably updated since their last known update."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints, Ints8
from recrawl.core.times import NEVER, microseconds
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.history_aware import HistoryAware
from recrawl.policies.page_updates import updates_in
from recrawl.policies.ranking import ranked
from recrawl.policies.select import take
from recrawl.world.pages import Pages, Visits, hours_between


class WholeSites(HistoryAware):
    """Visit all known pages of the websites with the highest probability of an update since their last known one.

    As `history-aware`, with websites in the place of pages: good for collections of small sites, such as personal ones, that are
    kept as a whole. A website is everything under a root (``--roots``) up to `depth`, the homepage being at depth 0; deeper pages
    are never visited. The visits of a cycle to pages of a website are one capture of it, and an update of any of these pages is an
    update of the website. Websites are visited whole, the most probable first, as long as they fit into the budget; one that does
    not fit makes way for the next. If none fits, as many pages of the first are visited as do, the least deep first.
    Websites with fewer than two captures come before all others.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> quiet, busy = [{1}] * 6, [{10}, {11}, {12}, {13}, {14}, {15}]
    >>> world = tiny_world(list(zip(quiet, busy, quiet)))
    >>> case = Case(replace(world, site=np.array([0, 1, 1])), (Budget(2),))
    >>> [choice.page.tolist() for choice in choices(WholeSites(), case)]
    [[0], [1, 2], [1, 2], [1, 2], [1, 2]]

    References: HACS of Jayawardana et al. (2020), website level, sections II-A and II-E.
    """

    name: ClassVar[str] = "whole-sites"
    paper: ClassVar[str | None] = "HACS"
    parted: ClassVar[bool] = False
    keeps_order: ClassVar[bool] = True

    def __init__(
        self,
        depth: int = 2,
        window: int = 168,
        window_days: float | None = None,
        interpolated: bool = True,
        ahead_days: float = 0.0,
        threshold: float | None = None,
        updates: str = "links",
        rates: str = "maximum-likelihood",
    ) -> None:
        super().__init__(
            window,
            window_days,
            interpolated=interpolated,
            ahead_days=ahead_days,
            threshold=threshold,
            updates=updates,
            rates=rates,
        )
        self.depth = depth

    def start(self, pages: Pages) -> None:
        """Forget all updates. What is learnt has an entry per website."""
        from recrawl.policies.visit_log import VisitLog

        super().start(pages)
        n = _room(pages)
        self.log_ = VisitLog(n, at=np.int64, updated=np.int8)
        self.per_day_, self.last_update_ = np.zeros(n), np.full(n, NEVER)
        self.site_, self.is_part_ = pages.site, _depths(pages) <= self.depth
        self.is_seen_: Flags = np.zeros(len(pages), np.bool_)
        self.n_seen_, self.n_captures_ = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.last_capture_: Ints = np.full(n, NEVER)

    def extend(self, pages: Pages, n_before: int) -> None:
        """More pages, and perhaps websites, are known."""
        super().extend(pages, n_before)
        self.log_.extend_to(_room(pages))

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The websites with the highest probability first, each as a whole."""
        from recrawl.insight.rates import probability_of_change

        p = probability_of_change(self.per_day_, self.last_update_, microseconds(now), self.ahead_days)
        is_new = self.n_captures_ < 2
        depth = _depths(pages)
        may = depth <= self.depth
        if self.threshold is not None:
            may &= (is_new | (p >= self.threshold))[pages.site]
        free = may if budget.barred is None else may & (budget.barred == 0)
        n_pages = np.bincount(pages.site[free], minlength=len(p))
        gain = p * _mean_importance(pages, free, n_pages)
        worth = ranked(is_new, gain, hours_between(self.last_capture_, np.int64(microseconds(now))))
        choice = take(
            ranked(worth[pages.site], -depth),
            pages,
            budget,
            may=may & _fitting(worth, n_pages, budget.pages)[pages.site],
            reason="one of {n} pages of a website updated with probability {probability:.2f}: {per_day:.3f} updates per day",
            detail={"n": n_pages[pages.site], "probability": p[pages.site], "per_day": self.per_day_[pages.site]},
            judges_new=True,
        )
        return replace(choice, score=gain[pages.site[choice.page]])

    def observe(self, visits: Visits) -> None:
        """Estimate the websites again that were visited or whose oldest captures left the window."""
        seen, updated = updates_in(visits, self.updates)
        seen = seen & self.is_part_[visits.page]
        self._note(*self._captures(visits.page[seen], visits.at[seen], updated[seen]), microseconds(visits.ended_at))

    def _captures(self, page: Ints, at: Ints, updated: Ints8) -> tuple[Ints, Ints, Ints8]:
        """Captures of pages as one capture of each website, dated by the last of them.

        A page with nothing to compare with says nothing about its website, unless that holds for all of its pages seen so far.
        """
        is_first = ~self.is_seen_[page]
        self.is_seen_[page] = True
        np.add.at(self.n_seen_, self.site_[page[is_first]], 1)
        site, place = np.unique(self.site_[page], return_inverse=True)
        state, when = np.full(len(site), -1, np.int8), np.full(len(site), NEVER)
        np.maximum.at(state, place, updated)
        np.maximum.at(when, place, at)
        says = (state >= 0) | (np.bincount(place, minlength=len(site)) == self.n_seen_[site])
        self.n_captures_[site[says]] += 1
        self.last_capture_[site] = when
        return site[says], when[says], state[says]


def _room(pages: Pages) -> int:
    """Enough entries for a website each."""
    return max(len(pages), int(pages.site.max(initial=-1)) + 1)


def _depths(pages: Pages) -> Ints:
    return np.zeros(len(pages), np.int64) if pages.depth is None else pages.depth


def _mean_importance(pages: Pages, free: Flags, n_pages: Ints) -> Floats | float:
    """How much a page of each website matters on average: a website costs as many fetches as it has pages."""
    if pages.importance is None:
        return 1.0
    total = np.bincount(pages.site[free], weights=pages.importance[free], minlength=len(n_pages))
    return np.asarray(total / np.maximum(n_pages, 1), np.float64)


def _fitting(worth: Floats, n_pages: Ints, budget: int) -> Flags:
    """The websites that fit into a budget as a whole, the best first; if none does, the best one."""
    fits: Flags = np.zeros(len(worth), np.bool_)
    order = np.argsort(-worth, kind="stable")
    order = order[n_pages[order] > 0]
    left = budget
    for site in order[n_pages[order] <= budget].tolist():
        if n_pages[site] <= left:
            fits[site] = True
            left -= int(n_pages[site])
        if not left:
            break
    if not fits.any():
        fits[order[:1]] = True
    return fits
