"""Which share of the links that arrive on a page is on no other page of its site."""

from __future__ import annotations

import numpy as np

from recrawl.core.arrays import Floats, Ints
from recrawl.core.growing import grown

MOST_SHARED = 0.999  #: the largest share of a page's links that a sibling may show: a share of 1 would be certain


class UnsharedLinks:
    """The probability o that a link on a page is on no other page.

    The shares of pairs of pages are not enough. Where all links so far arrived on sixty pages at once, a product over these leaves
    nothing for the day on which one of them gains links of its own, and it would never be visited again. So a link of page p is
    unshared with probability o_p, and else on each sibling q with probability b_pq = a_pq/(1 - o_p), see `share_if_shared`.

    Which it was shows at the next visit to p. If a sibling has shown the link by then, it is shared. If none has, it was unshared
    with probability o/(o + (1 - o) ∏(1 - b_pq)), the product over the siblings visited meanwhile (an E step).

    pseudo_links, share: the prior, as if that many links of each page had been seen and that share of them had been unshared.
    per_visit: links that arrive together are shared or not together, so those of one visit count as at most this many.
    """

    def __init__(self, n_pages: int, pseudo_links: float = 5.0, share: float = 0.2, per_visit: float = 10.0) -> None:
        self.pseudo_links, self.prior, self.per_visit = pseudo_links, share, per_visit
        self.n_unshared, self.n_followed = np.zeros(n_pages), np.zeros(n_pages)  # links, as they count

    def extend_to(self, n_pages: int) -> None:
        """More pages are known."""
        self.n_unshared, self.n_followed = grown(self.n_unshared, n_pages), grown(self.n_followed, n_pages)

    def share(self, page: Ints | slice = slice(None)) -> Floats:
        """The probability for each of these pages, or for all."""
        before = self.pseudo_links * self.prior
        share: Floats = (self.n_unshared[page] + before) / (self.n_followed[page] + self.pseudo_links)
        return np.minimum(share, MOST_SHARED)

    def learn(self, page: Ints, n_links: Ints, n_not_shown: Ints, missed: Floats, kept: Floats) -> None:
        """Add links that arrived on pages at their last visits; of these, no sibling has shown `n_not_shown` so far.

        missed: the probability that no sibling would have shown a shared one; kept: share of each page's past that still counts.
        """
        part = np.minimum(1.0, self.per_visit / np.maximum(n_links, 1))
        share = self.share(page)
        unshared = n_not_shown * share / np.maximum(share + (1.0 - share) * missed, 1e-300)
        self.n_unshared[page] = self.n_unshared[page] * kept + part * unshared
        self.n_followed[page] = self.n_followed[page] * kept + part * n_links


def share_if_shared(share: Floats, unshared: Floats) -> Floats:
    """The share of a page's links that a sibling shows, of those that are on other pages at all.

    >>> share_if_shared(np.array([0.2, 0.9]), np.array([0.5, 0.5])).tolist()
    [0.4, 0.999]
    """
    return np.minimum(share / (1.0 - unshared), MOST_SHARED)
