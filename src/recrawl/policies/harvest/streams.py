"""Every page as a few streams of links: some stay for hours, some for years. How many of each arrive, and how many are still there.

One rate and one hazard per page do not fit real pages: on most of them a part of the links leaves within the hour and the rest
stays for months. So a page is a sum of streams with fixed half-lives, and the share of each is learnt.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from recrawl.core.arrays import Floats, Ints
from recrawl.core.exact_sums import ExactSums
from recrawl.core.growing import grown
from recrawl.core.whole import Whole
from recrawl.core.workers import over_ranges

HALF_LIVES = 0.5 * 3.0 ** np.arange(11)  #: hours, from half an hour to three years
HAZARDS = np.append(np.log(2.0) / HALF_LIVES, 0.0)  #: the last stream's links never leave
N_STREAMS = len(HAZARDS)


class Streams:
    """The streams of every page, learnt from its visits. Times are clock hours (`recrawl.policies.harvest.rhythm`).

    A link of a stream with hazard δ is still there after t hours with probability e^(-δt), so of the links that arrive at rate λ in
    the M hours before a visit λ(1 - e^(-δM))/δ are seen. Whether a link is still there at the next visit shows which stream it
    belongs to.

    pseudo_links: own links that weigh as much as the shares of all pages (an empirical Bayes prior).
    per_visit: links that arrive together tend to leave together, so the links of one visit count as at most this many.
    """

    def __init__(self, n_pages: int, pseudo_links: float = 10.0, per_visit: float = 5.0) -> None:
        self.pseudo_links, self.per_visit = pseudo_links, per_visit
        self.arrivals = np.zeros(n_pages)  # links that arrived between two visits and were still there at the second
        self.exposure = np.zeros((n_pages, N_STREAMS))  # hours in which a link of each stream would have been seen
        self.followed = np.zeros((n_pages, N_STREAMS))  # links by stream, as far as that can be known
        self.shares = np.full(N_STREAMS, 1.0 / N_STREAMS)  # of all links of all pages

    def extend_to(self, n_pages: int) -> None:
        """More pages are known."""
        for name in ("arrivals", "exposure", "followed"):
            setattr(self, name, grown(getattr(self, name), n_pages))

    def weights(self, page: Ints) -> Floats:
        """The share of each stream in the links that arrive on these pages."""
        own = self.followed[page]
        whole = own.sum(axis=1, keepdims=True) + self.pseudo_links
        weights: Floats = (own + self.pseudo_links * self.shares) / whole
        return weights

    def exposures(self, page: Ints | slice = slice(None)) -> Floats:
        """Hours in which a link of each of these pages would have been seen, whatever its stream."""
        of = np.arange(len(self.arrivals))[page]
        exposures, prior = np.empty(len(of)), self.pseudo_links * self.shares
        known = (prior, self.pseudo_links, self.exposure, self.followed)
        over_ranges(len(of), lambda low, high: _exposures(low, high, of, known, exposures))
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

        waited: hours since the page was last seen; n_arrived: links that arrived since. n_before: links that had arrived at the
        visit before, gap_before hours after the one before that; n_stayed: those of them that are still there. kept: the share of
        the page's past that still counts.
        """
        visits = (page, waited, n_arrived, n_before, n_stayed, gap_before, kept)
        known = (HAZARDS, self.pseudo_links * self.shares, self.per_visit, self.arrivals, self.exposure, self.followed)
        over_ranges(len(page), lambda low, high: _learn(low, high, visits, known))

    def seen(self, page: Ints, waited: Floats) -> Floats:
        """Hours of the last `waited` in which a link may have arrived on each page and still be there."""
        hours = np.empty(len(page))
        prior = self.pseudo_links * self.shares
        over_ranges(len(page), lambda low, high: _seen(low, high, page, waited, HAZARDS, prior, self.followed, hours))
        return hours

    def followed_in_all(self) -> ExactSums:
        """Links by stream, of all pages here."""
        sums = ExactSums(N_STREAMS)
        sums.add_rows(self.followed)
        return sums

    def refit(self, whole: Whole) -> None:
        """The shares of all pages together; every stream keeps a little."""
        followed = whole.totals("links by stream", self.followed_in_all) + 5.0 / N_STREAMS
        self.shares = followed / followed.sum()


def half_gone(weights: Floats) -> float:
    """Hours after which half of the links of a page are gone; infinite where more than half stay for ever.

    >>> only = np.zeros(N_STREAMS); only[3] = 1.0
    >>> round(half_gone(only), 3)  # 0.5 · 3³
    13.5
    """
    return np.inf if weights[-1] > 0.5 else float(_half_gone(weights, HAZARDS))


@njit(cache=True, nogil=True)
def _exposures(low, high, page, known, exposures):  # type: ignore[no-untyped-def]
    prior, pseudo_links, exposure, followed = known
    for i in range(low, high):
        whole, hours = pseudo_links, 0.0
        for j in range(len(prior)):
            own = followed[page[i], j]
            whole += own
            hours += (own + prior[j]) * exposure[page[i], j]
        exposures[i] = hours / whole


@njit(cache=True)
def _half_gone(weights, hazards):  # type: ignore[no-untyped-def]
    low, high = 0.0, 1e6
    for _ in range(60):
        middle = (low + high) / 2
        left = 0.0
        for j in range(len(hazards)):
            left += weights[j] * np.exp(-hazards[j] * middle)
        if left > 0.5:
            low = middle
        else:
            high = middle
    return high


@njit(cache=True)
def weigh(followed, prior, weights):  # type: ignore[no-untyped-def]
    """The shares of one page's streams, into `weights`."""
    whole = 0.0
    for j in range(len(prior)):
        weights[j] = followed[j] + prior[j]
        whole += weights[j]
    weights /= whole


@njit(cache=True, nogil=True)
def _seen(low, high, page, waited, hazards, prior, followed, hours):  # type: ignore[no-untyped-def]
    weights = np.empty(len(hazards))
    for i in range(low, high):
        weigh(followed[page[i]], prior, weights)
        hours[i] = seen_one(weights, hazards, waited[i])


@njit(cache=True, nogil=True)
def _learn(low, high, visits, known):  # type: ignore[no-untyped-def]
    """The next visit shows which stream a link belongs to (the E step for a mixture of exponentials, interval-censored).

    Links that were seen are those that had stayed until then; each represents all that arrived in its stream.
    """
    page, waited, n_arrived, n_before, n_stayed, gap_before, kept = visits
    hazards, prior, per_visit, arrivals, exposure, followed = known
    weights, was_seen, stay = np.empty(len(hazards)), np.empty(len(hazards)), np.empty(len(hazards))
    for i in range(low, high):
        p = page[i]
        arrivals[p] = arrivals[p] * kept[i] + n_arrived[i]
        weigh(followed[p], prior, weights)
        stayed = left = 0.0
        for j in range(len(hazards)):
            exposure[p, j] = exposure[p, j] * kept[i] + _one(hazards[j], waited[i])
            was_seen[j] = _one(hazards[j], gap_before[i])
            stay[j] = np.exp(-hazards[j] * waited[i])
            stayed += weights[j] * was_seen[j] * stay[j]
            left += weights[j] * was_seen[j] * (1.0 - stay[j])
            followed[p, j] *= kept[i]
        if n_before[i] == 0:
            continue
        counts = min(1.0, per_visit / n_before[i])
        for j in range(len(hazards)):
            among = weights[j] * was_seen[j]
            links = n_stayed[i] * among * stay[j] / max(stayed, 1e-300)
            links += (n_before[i] - n_stayed[i]) * among * (1.0 - stay[j]) / max(left, 1e-300)
            followed[p, j] += links * counts * gap_before[i] / max(was_seen[j], 1e-12)


@njit(cache=True)
def _one(hazard, hours):  # type: ignore[no-untyped-def]
    return hours if hazard * hours < 1e-9 else -np.expm1(-hazard * hours) / hazard


@njit(cache=True)
def seen_one(weights, hazards, hours):  # type: ignore[no-untyped-def]
    """`Streams.seen` of one page, all streams together."""
    whole = 0.0
    for j in range(len(hazards)):
        whole += weights[j] * _one(hazards[j], hours)
    return whole
