"""Every page as a few streams of links: some stay for hours, some for years. How many of each come, and how many are still there.

One rate and one hazard a page do not fit real pages: on most of them a part of the links leaves within the hour and the rest stays
for months. So a page is a sum of streams with fixed half-lives, and what is learnt is the share of each.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from recrawl.policies.base import Floats, Ints

HALF_LIVES = 0.5 * 3.0 ** np.arange(11)  #: hours, from half an hour to three years
HAZARDS = np.append(np.log(2.0) / HALF_LIVES, 0.0)  #: the last stream's links never leave
N_STREAMS = len(HAZARDS)


class Streams:
    """What the visits of every page told about its streams. Times are clock hours (`recrawl.policies.stock.rhythm`).

    A link of a stream with hazard δ is still there after t hours with probability e^(-δt), so of the links that come at rate λ in
    the M hours before a visit λ(1 - e^(-δM))/δ are seen. Which stream a link belongs to shows at the next visit: whether it
    is still there.

    pseudo_links: own links that weigh as much as the shares of all pages (an empirical Bayes prior).
    per_visit: links that came together tend to leave together, so the links of one visit count as no more than so many.
    """

    def __init__(self, n_pages: int, pseudo_links: float = 10.0, per_visit: float = 5.0) -> None:
        self.pseudo_links, self.per_visit = pseudo_links, per_visit
        self.arrivals = np.zeros(n_pages)  # links that came between two visits and were still there at the second
        self.exposure = np.zeros((n_pages, N_STREAMS))  # hours in which a link of each stream would have been seen
        self.followed = np.zeros((n_pages, N_STREAMS))  # links by stream, as far as can be told
        self.shares = np.full(N_STREAMS, 1.0 / N_STREAMS)  # of all links of all pages

    def weights(self, page: Ints) -> Floats:
        """The share of each stream in the links that come on these pages."""
        own = self.followed[page]
        whole = own.sum(axis=1, keepdims=True) + self.pseudo_links
        weights: Floats = (own + self.pseudo_links * self.shares) / whole
        return weights

    def exposures(self) -> Floats:
        """Hours in which a link of each page would have been seen, whatever its stream."""
        whole = self.followed @ np.ones(N_STREAMS) + self.pseudo_links
        own = np.einsum("ij,ij->i", self.followed, self.exposure)
        exposures: Floats = (own + self.pseudo_links * (self.exposure @ self.shares)) / whole
        return exposures

    def learn(
        self,
        page: Ints,
        waited: Floats,
        n_arrived: Floats,
        n_before: Ints,
        n_stayed: Ints,
        gap_before: Floats,
        kept: Floats,
    ) -> None:
        """Add visits to pages that were seen before.

        waited: hours since the page was last seen; n_arrived: links that came since. n_before: links that had come at the visit
        before, gap_before hours after the one before that; n_stayed: those of them that are still there. kept: the share of the
        page's past that still counts.
        """
        self.arrivals[page] = self.arrivals[page] * kept + n_arrived
        weights = self.weights(page)
        seen = hours_seen(waited)
        self.exposure[page] = self.exposure[page] * kept[:, None] + seen
        self.followed[page] = self.followed[page] * kept[:, None] + self._told_apart(
            weights, waited, n_before, n_stayed, gap_before
        )

    def _told_apart(
        self, weights: Floats, waited: Floats, n_before: Ints, n_stayed: Ints, gap_before: Floats
    ) -> Floats:
        """Links by stream, given how many stayed (the E step for a mixture of exponentials, interval-censored).

        Links that were seen are those that had stayed until then; each stands for all that came in its stream.
        """
        was_seen = hours_seen(gap_before)
        among_seen = weights * was_seen
        stay = np.exp(-HAZARDS * waited[:, None])
        stayed, left = _shares(among_seen * stay), _shares(among_seen * (1.0 - stay))
        links = n_stayed[:, None] * stayed + (n_before - n_stayed)[:, None] * left
        links *= np.minimum(1.0, self.per_visit / np.maximum(n_before, 1))[:, None]
        told: Floats = links * np.where(gap_before > 0, gap_before, 1.0)[:, None] / np.maximum(was_seen, 1e-12)
        told[n_before == 0] = 0.0
        return told

    def refit(self) -> None:
        """The shares of all pages together; every stream keeps a little."""
        whole = self.followed.sum(axis=0) + 5.0 / N_STREAMS
        self.shares = whole / whole.sum()


def hours_seen(waited: Floats) -> Floats:
    """For each stream: (1 - e^(-δM))/δ, the hours of the last M in which a link may have come and still be there.

    >>> hours_seen(np.array([0.5])).round(3)[0, [0, 10, 11]]  # half-lives of 0.5 h and 3 years, and for ever
    array([0.361, 0.5 , 0.5 ])
    """
    hours = waited[:, None]
    return np.where(HAZARDS * hours < 1e-9, hours, -np.expm1(-HAZARDS * hours) / np.where(HAZARDS == 0, 1.0, HAZARDS))


def _shares(values: Floats) -> Floats:
    shares: Floats = values / np.maximum(values.sum(axis=1, keepdims=True), 1e-300)
    return shares


def half_gone(weights: Floats) -> Floats:
    """Hours after which half of the links that came are gone; infinite where more than half stay for ever.

    >>> only = np.zeros((1, N_STREAMS)); only[0, 3] = 1.0
    >>> half_gone(only).round(3)  # 0.5 · 3³
    array([13.5])
    """
    low, high = np.zeros(len(weights)), np.full(len(weights), 1e6)
    for _ in range(60):
        middle = (low + high) / 2
        is_over = np.einsum("ij,ij->i", weights, np.exp(-HAZARDS * middle[:, None])) > 0.5
        low, high = np.where(is_over, middle, low), np.where(is_over, high, middle)
    return np.where(weights[:, -1] > 0.5, np.inf, high)


@njit(cache=True)
def seen_one(weights, hazards, hours):  # type: ignore[no-untyped-def]
    """`hours_seen` of one page, all streams together."""
    whole = 0.0
    for j in range(len(hazards)):
        delta = hazards[j]
        whole += weights[j] * (hours if delta * hours < 1e-9 else -np.expm1(-delta * hours) / delta)
    return whole
