"""The mean and spread of new links over the visits of the last cycles, kept up to date page by page."""

from __future__ import annotations

from collections import deque

import numpy as np

from recrawl.core.arrays import Floats, Ints
from recrawl.world.pages import Visits


class Window:
    """New links per visit over the last `cycles` cycles: mean, standard deviation, number of visits.

    Only visits that showed the page's links count, and not its first one. A cycle that falls out of the window is subtracted, so
    a cycle costs no more than its own visits. References: w of Pham, Santos and Freire (2018), section 4.1.
    """

    def __init__(self, n_pages: int, cycles: int) -> None:
        self.cycles = cycles
        self.n = np.zeros(n_pages, np.int64)
        self.sum = np.zeros(n_pages)
        self.squares = np.zeros(n_pages)
        self._past: deque[tuple[Ints, Ints]] = deque()

    def observe(self, visits: Visits) -> None:
        """Add a cycle, and forget the one that is now too old."""
        counts = visits.answered & ~visits.is_first
        page, n_new = visits.page[counts], visits.n_new[counts]
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
