"""Which pages are the experts of a page: linked ones, similar ones, those whose words move together; or any, to compare with.

The choice uses the rounds of the given contents and nothing later. The page itself is always one more expert (section 5.3.1). The
paper does not give its weight: here it is the similarity of the page to itself by the same measure; with DTW, whose distance of a
page from itself is always 0, the weight of its nearest expert.

References: Radinsky and Bennett (2013), "Predicting content change on the web", section 6; section 9.2 for the online correlation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from recrawl.core.arrays import Floats, Ints32
from recrawl.core.suggest import unknown
from recrawl.history import History
from recrawl.models.experts.correlation import cross_correlation
from recrawl.models.experts.online import online_correlation
from recrawl.models.experts.series import COSINES, best_columns, candidates, most_similar, word_series
from recrawl.models.experts.warping import warped
from recrawl.world.contents import Contents

PAPER_METHODS = ("cross-correlation", "dtw", "content", "graph", "random")  #: those that the evaluation compares
ONLINE = "online-correlation"  #: cross-correlation from sums that grow with every round: needs no old visits
METHODS = (*PAPER_METHODS, ONLINE)


@dataclass(frozen=True)
class Experts:
    """The experts of every page, the nearest first, with the weights of their votes."""

    neighbour: Ints32  # [page, k]; -1 where a page has no more
    weight: Floats  # [page, k]; 0 there
    own_weight: Floats  # of the page itself

    def of(self, page: int, k: int | None = None) -> tuple[list[int], Floats]:
        """The first `k` experts of a page and their weights; fewer where it has no more."""
        chosen = self.neighbour[page][:k]
        return chosen[chosen >= 0].tolist(), self.weight[page][:k][chosen >= 0]


def choose(
    contents: Contents,
    k: int = 20,
    method: str = "cross-correlation",
    *,
    links: sparse.csr_array | None = None,
    n_candidates: int = 100,
    n_words: int = 50,
    band: int | None = 10,
    seed: int = 0,
    page: int | None = None,
) -> Experts:
    """The `k` experts of every page, by the contents up to their last round; with `page`, it may be that only its own are found.

    `links` are those between the pages (`links_between`), for ``graph``. Temporal similarity is measured with the `n_candidates`
    pages that are most similar in their last words, over the `n_words` heaviest words of the page; DTW within a `band` of rounds.
    """
    n_pages, n_rounds = contents.shape
    if method not in METHODS:
        raise ValueError(unknown("method to choose experts", method, METHODS))
    reads = method not in ("graph", "random")
    if n_pages < 2 or (reads and not contents.counts.shape[1]):  # texts may have no word that counts
        return Experts(np.empty((n_pages, 0), np.int32), np.empty((n_pages, 0)), np.ones(n_pages))
    if method == "random":
        return _random(n_pages, k, seed)
    if method == "graph":
        if links is None:
            raise ValueError("graph needs the links between the pages")
        return _linked(links, k)
    if method == "content":
        return _similar(contents, k)
    pages, expert = candidates(contents, n_rounds, n_candidates, page)
    series = word_series(contents, 0, n_rounds, n_words)
    itself = np.arange(n_pages)
    if method == "dtw":
        neighbour, weight = most_similar(pages, expert, warped(series, pages, expert, band), k, n_pages)
        own = weight.max(axis=1)
    elif method == ONLINE:
        similarity = online_correlation(contents, series.words, np.append(pages, itself), np.append(expert, itself))
        neighbour, weight = most_similar(pages, expert, similarity[: len(pages)], k, n_pages)
        own = similarity[len(pages) :]
    else:
        neighbour, weight = most_similar(pages, expert, cross_correlation(series, pages, expert), k, n_pages)
        own = cross_correlation(series, itself, itself)
    return that_vote(neighbour, weight, own)


def that_vote(neighbour: Ints32, weight: Floats, own: Floats) -> Experts:
    """Those with a weight above 0: a page that moves the other way would vote against what it sees.

    Where no expert is left, the page itself decides.
    """
    neighbour, weight = np.where(weight > 0, neighbour, -1).astype(np.int32), np.maximum(weight, 0.0)
    return Experts(neighbour, weight, np.where((own <= 0) & ~weight.any(axis=1), 1.0, np.maximum(own, 0.0)))


def _random(n_pages: int, k: int, seed: int) -> Experts:
    k = min(k, max(n_pages - 1, 0))
    random = np.random.default_rng(seed)
    drawn = [random.choice(n_pages - 1, k, replace=False) for _ in range(n_pages)]
    neighbour = np.array(drawn, np.int32).reshape(n_pages, k)
    neighbour += neighbour >= np.arange(n_pages)[:, None]  # none is its own expert
    return Experts(neighbour, np.ones(neighbour.shape), np.ones(n_pages))


def _similar(contents: Contents, k: int) -> Experts:
    """By the cosine of their last known words (section 6.2)."""
    from sklearn.preprocessing import (
        normalize,  # takes a second to load, and policies that need no words import this file
    )

    empty = sparse.csr_matrix((1, contents.counts.shape[1]), dtype=contents.counts.dtype)
    words = normalize(sparse.vstack([contents.counts, empty], format="csr")[contents.text[:, -1]])
    n_pages, k = len(contents.page), min(k, len(contents.page) - 1)
    pages, experts, similar = [], [], []
    for start in range(0, n_pages, step := max(1, COSINES // n_pages)):
        cosine = (words[start : start + step] @ words.T).toarray()
        page, expert = best_columns(cosine, start, k)
        pages.append(page)
        experts.append(expert)
        similar.append(cosine[page - start, expert])
    near = np.concatenate(similar)
    neighbour, weight = most_similar(np.concatenate(pages), np.concatenate(experts), near, k, n_pages)
    return Experts(np.where(weight > 0, neighbour, -1).astype(np.int32), weight, np.ones(n_pages))


def _linked(links: sparse.csr_array, k: int) -> Experts:
    """Pages one link away in either direction, those that link both ways first; all with the same weight (section 6.1)."""
    both_ways = sparse.csr_array(links + links.T)
    n_pages = both_ways.shape[0]
    neighbour = np.full((n_pages, k), -1, np.int32)
    for page in range(n_pages):
        row = slice(both_ways.indptr[page], both_ways.indptr[page + 1])
        others, times = both_ways.indices[row], both_ways.data[row]
        order = np.lexsort((others, -times))
        others = others[order][others[order] != page][:k]
        neighbour[page, : len(others)] = others
    return Experts(neighbour, (neighbour >= 0).astype(np.float64), np.ones(n_pages))


def links_between(history: History, contents: Contents) -> sparse.csr_array:
    """Which of the pages link to which, by the last visit to each up to the last round."""
    timeline = history.timeline
    end = contents.rounds[-1].astype("datetime64[us]").astype(np.int64)
    shown = np.flatnonzero((timeline.links >= 0) & (timeline.at <= end) & np.isin(timeline.page, contents.page))
    last = shown[np.append(np.diff(timeline.page[shown]) != 0, True)[: len(shown)]]  # ordered by page and time
    start, sets = timeline.sets.start, timeline.links[last]
    size = start[sets + 1] - start[sets]
    within = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    target = timeline.sets.links[np.repeat(start[sets], size) + within]
    source = np.repeat(np.searchsorted(contents.page, timeline.page[last]), size)
    at = np.minimum(np.searchsorted(contents.page, target), len(contents.page) - 1)
    known = contents.page[at] == target
    n = len(contents.page)
    return sparse.csr_array((np.ones(known.sum(), np.int8), (source[known], at[known])), shape=(n, n))
