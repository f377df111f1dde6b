"""Experts chosen by cross-correlation as rounds come: no old text is read again.

When a window begins, every page gets candidates (the pages with the most similar words) and its heaviest words. From then on only
sums are kept. When the window ends, those candidates whose words moved most like the page's own become its experts.

What differs from `selection.choose`, which looks back over all texts: the words are those of the window's beginning, not of its
end; of these only words are followed that the page and its candidate both show then; and delays go up to `MAX_DELAY` rounds.

References: Radinsky and Bennett (2013), "Predicting content change on the web", section 9.2.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy import sparse

from recrawl.core.arrays import Flags, Ints, Ints32
from recrawl.models.experts.online import OnlineSimilarity
from recrawl.models.experts.selection import Experts, that_vote
from recrawl.models.experts.series import candidates, heaviest_words, most_similar, tfidf
from recrawl.world.contents import Contents

N_WORDS = 20  #: followed of each page
MAX_DELAY = 7  #: rounds


class OnlineChoice:
    """Chooses up to `k` experts of every page by what is shown from now on; `now` is what the pages show as the window begins.

    `n_candidates` pages are watched for each page (default: twice as many as become experts).
    """

    def __init__(self, now: Contents, k: int, n_candidates: int | None = None) -> None:
        self.k, self.n_pages, self.n_rounds = k, now.shape[0], 0
        itself = np.arange(self.n_pages)
        page, expert = _candidates(now, n_candidates or 2 * k)
        self.page, self.expert = page.astype(np.int32), expert.astype(np.int32)
        shares = tfidf(now)
        words = heaviest_words(shares, N_WORDS)
        page, expert = np.append(page, itself), np.append(expert, itself)
        is_shared = shared_words(words.start, words.word, page, expert, shares)
        self.similarity = OnlineSimilarity(words, page, expert, MAX_DELAY, followed=is_shared)

    def add(self, counts: sparse.csr_matrix, text: Ints32) -> None:
        """What the pages show in the next round: a row of `counts` for each, -1 where it is not known. More pages may be known."""
        self.similarity.add(counts, text)
        self.n_rounds += 1

    def experts(self) -> Experts:
        """The experts by the rounds so far."""
        value = self.similarity.value()
        pairs, own = value[: len(self.page)], value[len(self.page) :]
        neighbour, weight = most_similar(self.page, self.expert, pairs, self.k, self.n_pages)
        return that_vote(neighbour, weight, own)


def _candidates(now: Contents, n: int) -> tuple[Ints, Ints]:
    if now.shape[0] < 2 or not now.counts.shape[1]:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return candidates(now, None, n)


def shared_words(start: Ints, word: Ints, page: Ints, expert: Ints, shown: sparse.csr_matrix) -> Flags:
    """For the words of every pair's page, one pair after the other: whether the expert shows them, too."""
    n = start[page + 1] - start[page]
    begin = np.append(0, np.cumsum(n))
    flags: Flags = _shared(
        start, word, page, expert, begin, shown.indptr, shown.indices, np.zeros(shown.shape[1], np.bool_)
    )
    return flags


@njit(cache=True, nogil=True)
def _shared(start, word, page, expert, begin, indptr, indices, is_shown):  # type: ignore[no-untyped-def]
    flags = np.zeros(begin[-1], np.bool_)
    for pair in range(len(page)):
        low, high = indptr[expert[pair]], indptr[expert[pair] + 1]
        for i in range(low, high):
            is_shown[indices[i]] = True
        first = start[page[pair]]
        for i in range(begin[pair + 1] - begin[pair]):
            flags[begin[pair] + i] = is_shown[word[first + i]]
        for i in range(low, high):
            is_shown[indices[i]] = False
    return flags
