"""How far pages of one site show the same new links, learnt from the cycles in which both were visited."""

from __future__ import annotations

import numpy as np
from numba import njit

from recrawl.core.arrays import Floats, Ints
from recrawl.policies.pairs import PairTable
from recrawl.world.pages import Visits

MAX_SHARERS = 200  #: a link that more pages of a site show at once is navigation, and is not compared


class Overlap(PairTable):
    """The Jaccard similarity of the new links of two pages of a site, from the last cycle that visited both.

    `memory`: number of cycles after which it is forgotten; None: never. The paper speaks of "the overlap estimate from the most
    recent crawls" and does not say how far back those reach. It matters: what is never forgotten is seldom measured again, since
    of two pages that overlap only one is picked.

    References: SIM of Pham, Santos and Freire (2018), section 4.1.
    """

    def __init__(self, site: Ints, memory: int | None = None) -> None:
        super().__init__(memory)
        self.site = site

    def observe(self, visits: Visits) -> None:
        """Measure all pairs of a site that were visited together; where neither shows anything new there is nothing to measure."""
        self.now += 1
        sizes = visits.n_new
        self._reset(visits.page[visits.answered], sizes[visits.answered])
        owner = np.repeat(np.arange(len(visits.page)), sizes)
        order = np.lexsort((owner, self.site[visits.page[owner]], visits.new.links))
        first, second = _sharing(
            visits.new.links[order], self.site[visits.page[owner[order]]], owner[order], MAX_SHARERS
        )
        if not len(first):
            return
        pairs, shared = np.unique(first * len(visits.page) + second, return_counts=True)
        first, second = pairs // len(visits.page), pairs % len(visits.page)
        jaccard: Floats = shared / (sizes[first] + sizes[second] - shared)
        self.set(visits.page[first], visits.page[second], jaccard)

    def _reset(self, page: Ints, sizes: Ints) -> None:
        """A known pair that was visited together and shares nothing any more has no overlap any more."""
        first, second, at = self.pairs()
        if not len(at):
            return
        n_new = np.full(len(self.site), -1, np.int64)
        n_new[page] = sizes
        again = (n_new[first] >= 0) & (n_new[second] >= 0) & (n_new[first] + n_new[second] > 0)
        self.value[at[again]] = 0.0
        self.cycle[at[again]] = self.now


@njit(cache=True)
def _sharing(link, site, owner, max_sharers):  # type: ignore[no-untyped-def]
    """Every two visits of a site that show the same link, once per link; the lists are ordered by link, site and visit."""
    n_pairs = 0
    for counting in range(2):
        if counting == 1:
            first, second = np.empty(n_pairs, np.int64), np.empty(n_pairs, np.int64)
            n_pairs = 0
        start = 0
        for i in range(1, len(link) + 1):
            if i < len(link) and link[i] == link[start] and site[i] == site[start]:
                continue
            if i - start <= max_sharers:
                for a in range(start, i):
                    for b in range(a + 1, i):
                        if counting == 1:
                            first[n_pairs], second[n_pairs] = owner[a], owner[b]
                        n_pairs += 1
            start = i
    return first, second
