"""The mean and spread of new links over the visits of the last cycles, kept up to date page by page."""

from __future__ import annotations

from collections import deque

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.world.pages import Pages, Visits

#: How a policy begins that goes by averages: with a second visit to every page, or with the links that the first one showed.
SWEEP, OUTDEGREE = "sweep", "outdegree"


def checked_begin(begin: str) -> str:
    """One of both; anything else is refused."""
    if begin not in (SWEEP, OUTDEGREE):
        raise ValueError(f"begin is {begin!r}; it must be {SWEEP} or {OUTDEGREE}")
    return begin


def come_first(pages: Pages, begin: str) -> Flags:
    """The pages that are visited before all others: those not visited twice, or those never visited."""
    return pages.is_new if begin == SWEEP else pages.n_visits == 0


class Window:
    """New links per visit over the last `cycles` cycles: mean, standard deviation, number of visits.

    Only visits that showed the page's links count, and not its first one: nothing on it can be called new. With `begin`
    "outdegree" the first one counts, too, and all its links count as new. A cycle that falls out of the window is subtracted,
    so a cycle costs no more than its own visits. References: w of Pham, Santos and Freire (2018), section 4.1.
    """

    def __init__(self, n_pages: int, cycles: int, begin: str = SWEEP) -> None:
        self.cycles, self.begin = cycles, checked_begin(begin)
        self.n = np.zeros(n_pages, np.int64)
        self.sum = np.zeros(n_pages)
        self.squares = np.zeros(n_pages)
        self._past: deque[tuple[Ints, Ints]] = deque()

    def observe(self, visits: Visits) -> None:
        """Add a cycle, and forget the one that is now too old."""
        n_new, counts = visits.n_new, visits.answered & ~visits.is_first
        if self.begin == OUTDEGREE:
            n_new, counts = np.where(visits.is_first, visits.shown.sizes, n_new), visits.answered
        self.add(visits.page[counts], n_new[counts])

    def add(self, page: Ints, n_new: Ints) -> None:
        """Add whole numbers of pages in a cycle, none twice."""
        self._add(page, n_new, 1)
        self._past.append((page, n_new))
        if len(self._past) > self.cycles:
            self._add(*self._past.popleft(), -1)

    def _add(self, page: Ints, n_new: Ints, sign: int) -> None:
        # A page is visited at most once per cycle; the sums are whole numbers, so nothing is lost by subtracting.
        self.n[page] += sign
        self.sum[page] += sign * n_new
        self.squares[page] += sign * n_new.astype(np.float64) ** 2

    @property
    def mean(self) -> Floats:
        """Average number of new links per visit; 0 where there was no visit."""
        return self.sum / np.maximum(self.n, 1)

    @property
    def std(self) -> Floats:
        """Standard deviation (of the population, as numpy has it)."""
        n = np.maximum(self.n, 1)
        return np.sqrt(np.maximum(self.squares / n - (self.sum / n) ** 2, 0.0))
