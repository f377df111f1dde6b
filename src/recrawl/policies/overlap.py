"""How far pages of one site show the same new links, learnt from the cycles in which both were visited."""

from __future__ import annotations

import numpy as np
from numba import njit

from recrawl.core.arrays import Flags, Floats, Ints, Ints32
from recrawl.policies.pairs import PairTable
from recrawl.world.pages import Visits

MAX_SHARERS = 200  #: of a link that more pages of a site show at once, the pages are not compared two by two
MOSTLY = 0.85  #: of a page's new links that must be such links, for the page to count as a twin of others


class Overlap(PairTable):
    """The Jaccard similarity of the new links of two pages of a site, from the last cycle that visited both.

    `memory`: number of cycles after which it is forgotten; None: never. The paper speaks of "the overlap estimate from the most
    recent crawls" and does not say how far back those reach. It matters: what is never forgotten is seldom measured again, since
    of two pages that overlap only one is picked.

    Where more than `MAX_SHARERS` pages show a link at once, all pairs would be too many. Pages whose new links are mostly such
    links, and the same ones, are twins instead: their similarity is at least MOSTLY/(2 - MOSTLY) = 0.74; more is not known. They
    stay twins until as many are visited together again.

    References: SIM of Pham, Santos and Freire (2018), section 4.1.
    """

    def __init__(self, site: Ints, memory: int | None = None) -> None:
        super().__init__(memory)
        self.site = site
        self.twin, self.twins_are = np.zeros(len(site), np.int64), MOSTLY / (2 - MOSTLY)

    def observe(self, visits: Visits) -> None:
        """Measure all pairs of a site that were visited together; where neither shows anything new there is nothing to measure."""
        self.now += 1
        sizes = visits.n_new
        self._reset(visits.page[visits.answered], sizes[visits.answered])
        owner = np.repeat(np.arange(len(visits.page)), sizes)
        order = np.lexsort((owner, self.site[visits.page[owner]], visits.new.links))
        site = self.site[visits.page[owner[order]]]
        first, second, is_wide = _sharing(visits.new.links[order], site, owner[order], MAX_SHARERS)
        self._note_twins(visits, owner[order], visits.new.links[order], is_wide)
        if not len(first):
            return
        pairs, shared = np.unique(first * len(visits.page) + second, return_counts=True)
        first, second = pairs // len(visits.page), pairs % len(visits.page)
        jaccard: Floats = shared / (sizes[first] + sizes[second] - shared)
        self.set(visits.page[first], visits.page[second], jaccard)

    def _note_twins(self, visits: Visits, owner: Ints, link: Ints32, is_wide: Flags) -> None:
        """Number the pages by the links that too many show, where these are most of what is new."""
        if not is_wide.any():
            return
        with np.errstate(over="ignore"):
            mixed = (link[is_wide].astype(np.int64) + 1) * np.int64(-7046029254386353131)
            mixed ^= mixed >> np.int64(31)
        label = np.zeros(len(visits), np.int64)
        np.add.at(label, owner[is_wide], mixed)  # the same in any order
        n_wide = np.bincount(owner[is_wide], minlength=len(visits))
        is_twin = (n_wide > 0) & (n_wide >= MOSTLY * visits.n_new)
        measured = visits.answered & (visits.n_new > 0)
        self.twin[visits.page[measured]] = np.where(is_twin, np.where(label == 0, 1, label), 0)[measured]

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
    """Every two visits of a site that show the same link, once per link; the lists are ordered by link, site and visit.

    Links that too many show have no pairs; they are marked.
    """
    n_pairs = 0
    is_wide = np.zeros(len(link), np.bool_)
    for counting in range(2):
        if counting == 1:
            first, second = np.empty(n_pairs, np.int64), np.empty(n_pairs, np.int64)
            n_pairs = 0
        start = 0
        for i in range(1, len(link) + 1):
            if i < len(link) and link[i] == link[start] and site[i] == site[start]:
                continue
            if i - start > max_sharers:
                is_wide[start:i] = True
            else:
                for a in range(start, i):
                    for b in range(a + 1, i):
                        if counting == 1:
                            first[n_pairs], second[n_pairs] = owner[a], owner[b]
                        n_pairs += 1
            start = i
    return first, second, is_wide
