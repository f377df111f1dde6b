"""Which of the known pages link to which, by what each showed last."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from recrawl.core.arrays import Ints32
from recrawl.world.pages import Visits


class LinkedPages:
    """Links between pages, as far as they were seen: one entry per link."""

    def __init__(self) -> None:
        self.source: Ints32 = np.empty(0, np.int32)
        self.target: Ints32 = np.empty(0, np.int32)

    def add(self, visits: Visits) -> None:
        """What a page shows now replaces what it showed before."""
        if visits.leads_to is None:
            return
        answered = visits.page[visits.answered]
        kept = ~np.isin(self.source, answered)
        source = np.repeat(visits.page, visits.leads_to.sizes).astype(np.int32)
        self.source = np.concatenate([self.source[kept], source])
        self.target = np.concatenate([self.target[kept], visits.leads_to.links])

    def between(self, n_pages: int) -> sparse.csr_array:
        """[page, page]: 1 where the first links to the second."""
        once = np.ones(len(self.source), np.int8)
        return sparse.csr_array((once, (self.source, self.target)), shape=(n_pages, n_pages))
