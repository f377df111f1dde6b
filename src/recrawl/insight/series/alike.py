"""Related pages by time, not by text: those whose new links come and go together, a little earlier or at another speed.

The future work that Dang et al. (2022) name. A page's series is the number of its new links in every round, as ln(1 + number): one
burst would otherwise decide everything. It is brought to mean 0 and to the same length, so that only its movement counts. A round
in which the page was not seen counts as its mean, and so neither for nor against anyone. A page whose series never moves, or that
was hardly seen, moves like no other: it has no related pages by time.

References: Dang et al. (2022), "Look back, look around", conclusions and further research; Radinsky and Bennett (2013),
"Predicting content change on the web", section 6.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from recrawl.core.arrays import Floats, Floats32, Ints, Ints32
from recrawl.core.suggest import unknown
from recrawl.core.workers import cores, even_ranges, in_threads
from recrawl.insight.choices import MAX_HISTORY, NEIGHBOUR_SEARCHES, TIME_SIMILARITIES
from recrawl.insight.series.correlation import best_correlation, delays, standardised
from recrawl.insight.series.warping import band_width, envelope, outside, warped_distance
from recrawl.world.related import Related

MIN_KNOWN = 5  #: rounds in which a page must have been seen: any two series of three rounds look alike
MAX_DELAY = MAX_HISTORY  #: rounds that another page may be ahead: features look back no further
BAND = 4  #: rounds that warping may move a value
EXACT_UP_TO = 6_000  #: pages that move; two cores compare them all in about a minute
N_CANDIDATES = 500  #: of each page, beyond that: those that correlate most without delay
_SAMPLE = 200  # pages whose true neighbours measure the recall


def alike_pages(
    new_links: Floats32,
    k: int = 30,
    by: str = "correlation",
    method: str = "auto",
    *,
    max_delay: int = MAX_DELAY,
    band: int = BAND,
    exact_up_to: int = EXACT_UP_TO,
    n_candidates: int = N_CANDIDATES,
    seed: int = 0,
) -> Related:
    """The `k` pages of every page whose series [page, round] move most like its own; NaN where a page was not seen.

    ``correlation``: the highest correlation with what the other page did 0 to `max_delay` rounds before, if it is above 0.
    ``dtw``: the least warped distance d within a `band` of rounds; the similarity is 1 / (1 + d). Weights are proportional to the
    similarity; of equally similar pages those of a lower number are taken. "auto" compares all pages up to `exact_up_to` that move.

    >>> daily, other = [1.0, 2, 1, 2, 1, 2], [9.0, 0, 9, 0, 0, 0]
    >>> alike_pages(np.array([daily, other, [5.0] * 6, [30 * n for n in daily]], np.float32), k=1, max_delay=0).neighbour
    array([[ 3], [-1], [-1], [ 0]], dtype=int32)
    """
    if by not in TIME_SIMILARITIES:
        raise ValueError(unknown("similarity over time", by, TIME_SIMILARITIES))
    if method not in NEIGHBOUR_SEARCHES:
        raise ValueError(unknown("method to find related pages", method, NEIGHBOUR_SEARCHES))
    unit, page = moving_series(new_links)
    search = _Search(unit, by, k, max_delay, band)
    pages = np.arange(len(unit), dtype=np.int64)
    if method == "exact" or len(unit) <= (exact_up_to if method == "auto" else n_candidates):
        return _as_related(*search.among(pages), page, len(new_links), "exact", 1.0)
    candidates = _candidates(unit, n_candidates, seed)
    number, similarity = search.among(pages, candidates)
    recall = _recall(search, similarity, seed)
    return _as_related(number, similarity, page, len(new_links), "approximate", recall)


def moving_series(new_links: Floats32) -> tuple[Floats, Ints]:
    """The series of the pages that move and were seen often enough, with mean 0 and length 1; and which pages they are."""
    known = ~np.isnan(new_links)
    often = np.flatnonzero(known.sum(axis=1) >= MIN_KNOWN)
    levels = np.log1p(np.where(known[often], new_links[often], 0), dtype=np.float64)
    n = np.maximum(known[often].sum(axis=1, keepdims=True), 1)
    moves = np.where(known[often], levels, np.inf).min(axis=1, initial=np.inf) < levels.max(axis=1, initial=0)
    mean = np.where(known[often], levels, 0).sum(axis=1, keepdims=True) / n
    unit, _ = standardised(np.where(known[often], levels, mean)[moves])
    return unit, often[moves]


class _Search:
    """Series that are compared by one measure; pages are rows of the series."""

    def __init__(self, unit: Floats, by: str, k: int, max_delay: int, band: int) -> None:
        self.by, self.k = by, k
        n_rounds = unit.shape[1]
        self.first, self.last = delays(n_rounds, 0, max_delay) if n_rounds else (0, -1)
        self.width = band_width(n_rounds, band)
        self.unit = unit if by == "correlation" else unit * np.sqrt(n_rounds)  # a distance is in standard deviations
        self.reversed = np.ascontiguousarray(unit[:, ::-1])

    def among(self, pages: Ints, candidates: Ints32 | None = None) -> tuple[Ints32, Floats]:
        """The most similar pages of each of `pages`, and how similar they are; among its candidates (-1: none), or among all."""
        number = np.full((len(pages), self.k), -1, np.int32)
        similarity = np.zeros((len(pages), self.k))
        others = np.empty((0, 0), np.int32) if candidates is None else candidates

        def part(low: int, high: int) -> None:
            some = slice(low, high)
            near = others[some] if len(others) else others
            if self.by == "correlation":
                _most_correlated(
                    self.unit, self.reversed, pages[some], near, self.first, self.last, number[some], similarity[some]
                )
            else:
                _least_warped(self.unit, pages[some], near, self.width, number[some], similarity[some])

        in_threads(part, even_ranges(len(pages), 4 * cores()))
        return number, similarity


def _candidates(unit: Floats, n: int, seed: int) -> Ints32:
    """The pages that correlate most without delay, ascending; -1 where there are fewer."""
    from recrawl.insight.related import related_pages  # takes a second to load

    return np.sort(related_pages(unit.astype(np.float32), n, seed=seed).neighbour, axis=1)


def _recall(search: _Search, similarity: Floats, seed: int) -> float:
    """The share of the truly most similar pages that were found, on a sample."""
    rng = np.random.default_rng(seed)
    sample = np.sort(rng.choice(len(similarity), min(len(similarity), _SAMPLE), replace=False))
    number, true = search.among(sample)
    n_true = np.count_nonzero(number >= 0)
    least = np.where(number >= 0, true, np.inf).min(axis=1, keepdims=True)
    found = np.count_nonzero(similarity[sample] >= least)
    return min(1.0, found / n_true) if n_true else 1.0


def _as_related(number: Ints32, similarity: Floats, page: Ints, n_pages: int, method: str, recall: float) -> Related:
    """Back to the numbers of all pages; similarities become weights."""
    k = number.shape[1]
    neighbour, weight = np.full((n_pages, k), -1, np.int32), np.zeros((n_pages, k), np.float32)
    neighbour[page] = np.r_[page, -1].astype(np.int32)[number]  # -1 takes the last entry
    total = similarity.sum(axis=1, keepdims=True)
    weight[page] = similarity / np.where(total > 0, total, 1)
    return Related(neighbour, weight, method, recall)


# -- kernels ----------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _insert(number: Any, similarity: Any, other: Any, value: Any) -> None:
    """Put a page into the sorted list, behind those that are as similar."""
    at = len(number) - 1
    while at > 0 and similarity[at - 1] < value:
        number[at], similarity[at] = number[at - 1], similarity[at - 1]
        at -= 1
    number[at], similarity[at] = other, value


@njit(cache=True, nogil=True)
def _most_correlated(
    unit: Any, backwards: Any, pages: Any, candidates: Any, first: Any, last: Any, number: Any, similarity: Any
) -> None:
    if last < first:
        return
    total = np.empty(last + 1 - first)
    n = candidates.shape[1] if len(candidates) else len(unit)
    for row in range(len(pages)):
        for i in range(n):
            other = candidates[row, i] if len(candidates) else i
            if other < 0 or other == pages[row]:
                continue
            value = best_correlation(unit[pages[row]], backwards[other], first, last, total)
            if value > similarity[row, -1]:
                _insert(number[row], similarity[row], other, value)


@njit(cache=True, nogil=True)
def _least_warped(unit: Any, pages: Any, candidates: Any, width: Any, number: Any, similarity: Any) -> None:
    n_rounds = unit.shape[1]
    low, high, cost = np.empty(n_rounds), np.empty(n_rounds), np.empty(n_rounds + 1)
    n = candidates.shape[1] if len(candidates) else len(unit)
    for row in range(len(pages)):
        own = unit[pages[row]]
        envelope(own, width, low, high)
        limit = np.inf  # the distance of the last page in the list: a greater one need not be known
        for i in range(n):
            other = candidates[row, i] if len(candidates) else i
            if other < 0 or other == pages[row] or outside(unit[other], low, high, limit) > limit:
                continue
            value = 1 / (1 + warped_distance(own, unit[other], width, cost, limit))
            if value > similarity[row, -1]:
                _insert(number[row], similarity[row], other, value)
                limit = 1 / similarity[row, -1] - 1 if similarity[row, -1] > 0 else np.inf
