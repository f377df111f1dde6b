"""How many new links a visit now would find, from a page's own past and that of all pages: a yardstick for every policy."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from recrawl.core.arrays import Floats, Ints
from recrawl.core.growing import grown
from recrawl.core.whole import Whole
from recrawl.world.pages import Pages, Visits

if TYPE_CHECKING:
    from recrawl.core.exact_sums import ExactSums


class LinkExpectation:
    """Expected new links and the probability of any, for every page, by shrinking its own rate towards that of all pages.

    New links arrive at a rate that differs from page to page by a gamma distribution, fitted to the mean and the spread of the
    observed rates (empirical Bayes). The probability rests on the share of visits that found any, since links arrive in batches.
    No page is expected to show more new links than it has links.
    """

    def __init__(self, n_pages: int, pseudo_visits: float = 2.0) -> None:
        self.pseudo_visits = pseudo_visits
        self.n_links = np.zeros(n_pages)  # new links
        self.n_visits = np.zeros(n_pages)
        self.n_hits = np.zeros(n_pages)  # visits that found any
        self.hours = np.zeros(n_pages)  # between these visits and the ones before
        self.size = np.full(n_pages, np.nan)  # links on the page when it was last seen

    def extend_to(self, n_pages: int) -> None:
        """More pages are known."""
        for name in ("n_links", "n_visits", "n_hits", "hours"):
            setattr(self, name, grown(getattr(self, name), n_pages))
        self.size = grown(self.size, n_pages, np.nan)

    def observe(self, visits: Visits) -> None:
        """Add what the visits of a cycle found."""
        page = visits.page[visits.answered]
        self.size[page] = visits.shown.sizes[visits.answered]
        counts = visits.answered & ~visits.is_first & np.isfinite(visits.age_hours)
        page, n_new = visits.page[counts], visits.n_new[counts]
        self.n_links[page] += n_new
        self.n_hits[page] += n_new > 0
        self.n_visits[page] += 1
        self.hours[page] += visits.age_hours[counts]

    def _totals(self) -> ExactSums:
        """Hours, their squares, links and pages where there are any; visits, hits; sizes, and pages of which they are known."""
        from recrawl.core.exact_sums import ExactSums

        seen, known = self.hours > 0, ~np.isnan(self.size)
        sums = ExactSums(8)
        terms = (
            self.hours,
            self.hours**2,
            self.n_links[seen],
            np.array([float(seen.sum())]),
            self.n_visits,
            self.n_hits,
        )
        for which, each in enumerate((*terms, self.size[known], np.array([float(known.sum())]))):
            sums.add_to(which, each)
        return sums

    def _strength(self, totals: Floats, mean: float, whole: Whole) -> float:
        """How many hours of a page's own past weigh as much as the mean rate (links per hour) over all pages."""
        hours, squares, _, n_pages = totals[:4].tolist()
        if not n_pages:
            return 1.0
        seen = self.hours > 0

        def deviations() -> Floats:
            return self.hours[seen] * (self.n_links[seen] / self.hours[seen] - mean) ** 2

        # The spread of the rates beyond that of random counts (method of moments).
        spread = whole.total("spread of rates", deviations) - mean * n_pages
        variance = spread / max(hours - squares / hours, 1e-9)
        strength = mean / variance if variance > 0 and mean > 0 else hours / n_pages
        return float(np.clip(strength, 1e-3, hours))

    def expect(self, pages: Pages, now: datetime, of: Ints | None = None) -> tuple[Floats, Floats]:
        """New links expected of a visit now, and the probability of at least one; for some pages, or for all."""
        page = np.arange(len(pages)) if of is None else of
        waited = pages.age_hours(now)[page]
        totals = pages.whole.totals("links expected", self._totals)
        hours, _, links, _, n_visits, n_hits, n_links, n_sizes = totals.tolist()
        mean = links / hours if hours else 0.0
        strength = self._strength(totals, mean, pages.whole)
        rate = (self.n_links[page] + mean * strength) / (self.hours[page] + strength)
        gap = hours / max(n_visits, 1.0) or 1.0
        waited = np.where(np.isfinite(waited), waited, gap)
        usual = n_links / n_sizes if n_sizes else 0.0
        size = np.where(np.isnan(self.size[page]), usual, self.size[page])
        expected = np.minimum(rate * waited, size)
        hit_rate = n_hits / max(n_visits, 1.0)
        missed = (self.n_visits[page] - self.n_hits[page] + self.pseudo_visits * (1 - hit_rate)) / (
            self.n_visits[page] + self.pseudo_visits
        )
        own_gap = (self.hours[page] + gap) / (self.n_visits[page] + 1)
        quiet = np.clip(missed, 1e-9, 1.0) ** (waited / np.maximum(own_gap, 1e-9))
        return expected, np.where(expected > 0, 1.0 - quiet, 0.0)
