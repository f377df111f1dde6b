"""How often each page changes, kept up to date visit by visit."""

from __future__ import annotations

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.core.growing import grown
from recrawl.core.times import NEVER, US_PER_DAY
from recrawl.insight.rates import ESTIMATORS, Intervals, maximum_likelihood_rate
from recrawl.policies.visit_log import VisitLog
from recrawl.world.pages import Pages, Visits


class ChangeRates:
    """Changes per day; only the pages of a cycle are estimated again.

    An interval runs from one answer to the next: a failed visit shows nothing and does not end it, and an answer with nothing to
    compare with begins a new one. For maximum likelihood the sum of the intervals without a change is enough, and those with one
    are kept; with little history the rate leans on one changed and one unchanged pseudo-interval of `prior_days`. Other `rates`
    have no prior, and need all intervals. Rates stay within `bounds` (per day).

    References: Kolobov, Peres, Lu and Horvitz (2019), from which the defaults are; Avrachenkov, Patil and Thoppe (2020) for the
    law of large numbers and stochastic approximation.
    """

    def __init__(
        self,
        pages: Pages,
        prior_days: float = 0.5,
        bounds: tuple[float, float] = (0.0005, 7.0),
        rates: str = "maximum-likelihood",
    ) -> None:
        self.prior_days, self.bounds, self.rates = prior_days, bounds, rates
        self._seen: Ints = np.full(len(pages), NEVER)
        self._quiet_days = np.zeros(len(pages))
        self._changes = VisitLog(len(pages), days=np.float64)
        self._intervals = VisitLog(len(pages), days=np.float64, changed=np.bool_)  # all of them, where needed
        self._unknown = float(self._estimated(np.array([0, 0]), np.empty(0), np.zeros(1))[0])
        self.per_day: Floats = np.full(len(pages), self._unknown)

    def extend_to(self, n_pages: int) -> None:
        """More pages are known."""
        self._seen, self._quiet_days = grown(self._seen, n_pages, NEVER), grown(self._quiet_days, n_pages)
        self.per_day = grown(self.per_day, n_pages, self._unknown)
        self._changes.extend_to(n_pages)
        self._intervals.extend_to(n_pages)

    def observe(self, visits: Visits) -> None:
        """Learn from the visits of a cycle."""
        known = visits.came & (visits.changed >= 0) & (self._seen[visits.page] != NEVER)
        page, changed = visits.page[known], visits.changed[known] == 1
        days = np.maximum(visits.at[known] - self._seen[page], 0) / US_PER_DAY
        self._seen[visits.page[visits.came]] = visits.at[visits.came]
        if self.rates == "maximum-likelihood":
            self._add_likely(page, days, changed)
        else:
            self._intervals.add(page, days=days, changed=changed)
            start, row = self._intervals.of(page)
            intervals = Intervals(start, self._intervals["days"][row], self._intervals["changed"][row])
            self.per_day[page] = np.clip(ESTIMATORS[self.rates](intervals), *self.bounds)

    def _add_likely(self, page: Ints, days: Floats, changed: Flags) -> None:
        self._quiet_days[page[~changed]] += days[~changed]
        self._changes.add(page[changed], days=days[changed])
        start, row = self._changes.of(page)
        self.per_day[page] = self._estimated(start, self._changes["days"][row], self._quiet_days[page])

    def _estimated(self, start: Ints, changed_days: Floats, quiet_days: Floats) -> Floats:
        """The quiet days of each page as one interval before its changed ones."""
        page = np.arange(len(quiet_days))
        first = start[:-1] + page
        days, changed = np.empty(len(changed_days) + len(page)), np.ones(len(changed_days) + len(page), np.bool_)
        changed[first] = False
        days[first], days[changed] = quiet_days, changed_days
        intervals = Intervals(np.append(first, len(days)), days, changed)
        return maximum_likelihood_rate(intervals, prior_days=self.prior_days, bounds=self.bounds)
