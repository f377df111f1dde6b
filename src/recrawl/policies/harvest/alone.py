"""Which share of the links that come on a page stands on no other page of its site."""

from __future__ import annotations

import numpy as np

from recrawl.core.arrays import Floats, Ints

MOST = 0.999  #: no sibling shows more of a page's links: that would be certain


class Alone:
    """The probability o that a link on a page stands on it alone.

    Shares of pairs do not tell. Where all links so far came on sixty pages at once, a product over these leaves nothing for the
    day on which one of them gains links of its own, and it would never be visited again. So a link stands on page p alone with
    probability o_p, and else on each sibling q with b_pq = a_pq/(1 - o_p), `given`.

    Which it was shows at the next visit of p. If a sibling has shown the link by then, it was not alone; if none has, it was with
    probability o/(o + (1 - o) ∏(1 - b_pq)), the product over the siblings visited meanwhile (an E step).

    pseudo_links, share: as many links of each page are taken to be alone in that proportion. per_visit: links that come together
    are alone together, so those of one visit count as no more than so many.
    """

    def __init__(self, n_pages: int, pseudo_links: float = 5.0, share: float = 0.2, per_visit: float = 10.0) -> None:
        self.pseudo_links, self.prior, self.per_visit = pseudo_links, share, per_visit
        self.alone, self.followed = np.zeros(n_pages), np.zeros(n_pages)  # links, as they count

    def share(self, page: Ints | slice = slice(None)) -> Floats:
        """The probability for each of these pages, or for all."""
        share: Floats = (self.alone[page] + self.pseudo_links * self.prior) / (self.followed[page] + self.pseudo_links)
        return np.minimum(share, MOST)

    def learn(self, page: Ints, n_links: Ints, n_unshared: Ints, missed: Floats, kept: Floats) -> None:
        """Add links that came on pages at their last visits; of these, no sibling has shown `n_unshared` so far.

        missed: the probability that no sibling would have shown a shared one; kept: of each page's past, that still counts.
        """
        part = np.minimum(1.0, self.per_visit / np.maximum(n_links, 1))
        share = self.share(page)
        own = n_unshared * share / np.maximum(share + (1.0 - share) * missed, 1e-300)
        self.alone[page] = self.alone[page] * kept + part * own
        self.followed[page] = self.followed[page] * kept + part * n_links


def given(share: Floats, alone: Floats) -> Floats:
    """The share of a page's links that a sibling shows, of those that are on others at all.

    >>> given(np.array([0.2, 0.9]), np.array([0.5, 0.5])).tolist()
    [0.4, 0.999]
    """
    return np.minimum(share / (1.0 - alone), MOST)
