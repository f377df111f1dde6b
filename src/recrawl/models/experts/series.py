"""The words of pages as series over time: how often a word was on a page, round by round (its dynamics).

tfidf(w, d(t)) is the share of w in the words of d(t), times idf(w) = ln((1 + n) / (1 + pages with w)) + 1. The paper leaves open
over what idf is counted. Here: over the texts in the last round of the window, and the same for all rounds, or a word's series
would move because other pages changed. Correlations do not depend on it; the words' weights do.

References: Radinsky and Bennett (2013), "Predicting content change on the web", section 6.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy import sparse

from recrawl.core.arrays import Floats, Ints, Ints32
from recrawl.errors import NotEnoughData
from recrawl.world.contents import Contents

Pairs = tuple[Ints, Ints]  # page, expert: row numbers of the contents
# From rows of the pages' words, an expert's series, and which of these belongs to each row.
Score = Callable[[Ints, Floats, Ints], Floats]

N_WORDS = 50
N_CANDIDATES = 100
COSINES = 1 << 24  #: of one block: 128 MB


@dataclass(frozen=True)
class Words:
    """The characteristic words of each page, heaviest first: those of page p are rows start[p] to start[p + 1]."""

    start: Ints  # [page + 1]
    word: Ints  # column of the contents' counts
    weight: Floats  # ω: tf-idf in the last round, as a share of the page's total

    def rows_of(self, pages: Ints) -> tuple[Ints, Ints]:
        """The rows of some pages, one page after the other, and for each row which of these pages it belongs to."""
        n = self.start[pages + 1] - self.start[pages]
        which = np.repeat(np.arange(len(pages)), n)
        before = np.cumsum(n) - n
        return np.arange(len(which)) + (self.start[pages] - before)[which], which


@dataclass(frozen=True)
class Series:
    """The dynamics of the pages' words in a window, and the means to read those of any other page for the same words.

    Only a page's own words are kept as series. Those of an expert are read from its texts when they are needed, for the words of
    its pages: that costs little, and all words of all pages would fill the memory.
    """

    words: Words
    values: Floats  # [row of words, round]: tf-idf on the page itself
    text: Ints32  # [page, round]: row of `counts`, -1: not known yet
    counts: sparse.csr_matrix  # [text, term]
    idf: Floats  # [term]

    def of(self, page: int, word: ArrayLike) -> Floats:
        """The dynamics of some distinct words on a page, [word, round]; 0 where it does not show them."""
        word = np.asarray(word, np.int64)
        return read_words(self.counts, self.text, np.array([page]), np.array([0, len(word)]), word, self.idf)

    def similarity(self, page: ArrayLike, expert: ArrayLike, score: Score) -> Floats:
        """Σ ω(w) score(w) for every pair, expert by expert, so that texts are read only once."""
        page, expert = _pairs(page, expert, len(self.text))
        result = np.zeros(len(page))
        order = np.argsort(expert, kind="stable")
        begins = np.flatnonzero(np.diff(expert[order], prepend=-1))
        ends = np.flatnonzero(np.diff(expert[order], append=-1)) + 1
        for begin, end in zip(begins, ends, strict=True):
            pairs = order[begin:end]
            row, which = self.words.rows_of(page[pairs])
            wanted, at = np.unique(self.words.word[row], return_inverse=True)
            theirs = self.of(int(expert[pairs[0]]), wanted)
            weighted = self.words.weight[row] * score(row, theirs, at)
            result[pairs] = np.bincount(which, weighted, len(pairs))
        return result


def word_series(contents: Contents, since: int = 0, until: int | None = None, n_words: int = N_WORDS) -> Series:
    """The dynamics of each page's words over the rounds from `since` to before `until`.

    The words are the `n_words` of the page's last text with the highest tf-idf (0: all of them; the paper names no number).
    Before the text of a page is known, its words count 0.
    """
    last = _last(contents, since, until)
    words = heaviest_words(tfidf(contents, last + 1), n_words)
    text, idf = contents.text[:, since : last + 1], _idf(_shown(contents, last))
    values = read_words(contents.counts, text, np.arange(len(text)), words.start, words.word, idf)
    return Series(words, values, text, contents.counts, idf)


def tfidf(contents: Contents, until: int | None = None) -> sparse.csr_matrix:
    """[page, term] in the last round before `until`; a page whose words are not known has an empty row."""
    last = _last(contents, 0, until)
    shown = _shown(contents, last)
    length = np.maximum(np.asarray(shown.sum(axis=1)).reshape(-1), 1e-300)  # an empty text has no words to divide
    share = shown.data / np.repeat(length, np.diff(shown.indptr))
    return sparse.csr_matrix((share * _idf(shown)[shown.indices], shown.indices, shown.indptr), shown.shape)


def heaviest_words(weights: sparse.csr_matrix, n_words: int = N_WORDS) -> Words:
    """The words of each row with the highest weights, those of a lower column first where they are equal.

    >>> words = heaviest_words(sparse.csr_matrix([[1.0, 0.0, 3.0, 2.0], [0.0, 0.0, 0.0, 0.0], [2.0, 0.0, 2.0, 1.0]]), 2)
    >>> words.start, words.word, words.weight
    (array([0, 2, 2, 4]), array([2, 3, 0, 2]), array([0.6, 0.4, 0.5, 0.5]))
    """
    if n_words < 0:
        raise ValueError(f"n_words is {n_words}; it must be 0 for all words, or above")
    cells = weights.tocoo()
    row, word, weight = (cells.row[cells.data > 0], cells.col[cells.data > 0], cells.data[cells.data > 0])
    order = np.lexsort((word, -weight, row))
    row, word, weight = row[order], word[order].astype(np.int64), weight[order].astype(np.float64)
    first = np.searchsorted(row, np.arange(weights.shape[0] + 1))
    if n_words:
        kept = np.arange(len(row)) - first[row] < n_words
        row, word, weight = row[kept], word[kept], weight[kept]
    total = np.bincount(row, weight, weights.shape[0])
    return Words(np.searchsorted(row, np.arange(weights.shape[0] + 1)), word, weight / total[row])


def candidates(contents: Contents, until: int | None = None, n: int = N_CANDIDATES, page: int | None = None) -> Pairs:
    """The pairs to compare over time: every page with the `n` others whose last texts are most similar to its own.

    A cheap filter: cosine of tf-idf in the last round before `until`. Pages are never their own experts; where others are
    equally similar, those of a lower number are taken. With `n` or fewer other pages these are all pairs. `page`: only its own.
    """
    if n < 1:
        raise ValueError(f"n is {n}; there must be at least one candidate per page")
    weights = tfidf(contents, until)
    n_pages = weights.shape[0]
    if n_pages - 1 <= n:
        pages, experts = np.nonzero(~np.eye(n_pages, dtype=np.bool_))
        return (pages, experts) if page is None else (pages[pages == page], experts[pages == page])
    length = np.sqrt(np.asarray(weights.multiply(weights).sum(axis=1)).reshape(-1))
    unit = sparse.diags_array(1 / np.where(length > 0, length, 1)).tocsr() @ weights
    others = unit.T.tocsr()
    if page is not None:
        return best_columns((unit[page : page + 1] @ others).toarray(), page, n)
    step = max(1, COSINES // n_pages)
    blocks = [best_columns((unit[at : at + step] @ others).toarray(), at, n) for at in range(0, n_pages, step)]
    return np.concatenate([pages for pages, _ in blocks]), np.concatenate([expert for _, expert in blocks])


def most_similar(
    page: ArrayLike, expert: ArrayLike, similarity: ArrayLike, k: int, n_pages: int | None = None
) -> tuple[Ints32, Floats]:
    """The `k` best experts of every page, best first, and their weights: their similarities.

    Where there are fewer, the number is -1 and the weight 0. Equally similar experts come in the order of their numbers.

    >>> most_similar([0, 0, 0, 2], [1, 2, 3, 0], [0.5, 0.7, 0.5, 0.1], k=2)
    (array([[ 2,  1], [-1, -1], [ 0, -1], [-1, -1]], dtype=int32),
     array([[0.7, 0.5], [0. , 0. ], [0.1, 0. ], [0. , 0. ]]))
    """
    if k < 1:
        raise ValueError(f"k is {k}; there must be at least one expert per page")
    page, expert = np.asarray(page, np.int64), np.asarray(expert, np.int64)
    n_pages = n_pages if n_pages is not None else int(max(page.max(initial=-1), expert.max(initial=-1))) + 1
    page, expert = _pairs(page, expert, n_pages)
    weight = np.asarray(similarity, np.float64)
    order = np.lexsort((expert, -weight, page))
    page, expert, weight = page[order], expert[order], weight[order]
    rank = np.arange(len(page)) - np.searchsorted(page, page)
    neighbour, weights = np.full((n_pages, k), -1, np.int32), np.zeros((n_pages, k))
    best = rank < k
    neighbour[page[best], rank[best]] = expert[best]
    weights[page[best], rank[best]] = weight[best]
    return neighbour, weights


def read_words(counts: sparse.csr_matrix, text: Ints32, page: Ints, start: Ints, word: Ints, factor: Floats) -> Floats:
    """The shares of words in the texts of pages, times the word's `factor`: [word, round].

    Those of page[i] are word[start[i]:start[i + 1]], each at most once.
    """
    values = np.zeros((len(word), text.shape[1]))
    _read(text, page, start, word, counts.indptr, counts.indices, counts.data, factor, values)
    return values


def _last(contents: Contents, since: int, until: int | None) -> int:
    """The last round of a window, if there are such rounds."""
    n_rounds = contents.shape[1]
    until = n_rounds if until is None else until
    if not 0 <= since < until <= n_rounds:
        raise NotEnoughData(
            f"rounds {since} to {until} are not available: there are {n_rounds} of them, counted from 0, and at least one is "
            "needed; ask for a shorter window"
        )
    return until - 1


def _shown(contents: Contents, at: int) -> sparse.csr_matrix:
    """[page, term] counts of what the pages showed in a round."""
    text = contents.text[:, at]
    known = text >= 0
    rows = np.flatnonzero(known)
    of_page = sparse.csr_matrix(
        (np.ones(len(rows)), text[known].astype(np.int64), np.append(0, np.cumsum(known))),
        (len(text), contents.counts.shape[0]),
    )
    shown = sparse.csr_matrix(of_page @ contents.counts)
    shown.eliminate_zeros()
    shown.sort_indices()
    return shown


def _idf(shown: sparse.csr_matrix) -> Floats:
    n_with = np.bincount(shown.indices, minlength=shown.shape[1])
    n = np.count_nonzero(np.diff(shown.indptr))  # pages without words do not count
    idf: Floats = np.log((1 + n) / (1 + n_with)) + 1
    return idf


def best_columns(cosine: Floats, first: int, n: int) -> Pairs:
    """The n highest of every row without those of pages with themselves, lower columns first among equals."""
    own = np.arange(len(cosine))
    cosine[own, first + own] = -1.0
    least = -np.partition(-cosine, n - 1, axis=1)[:, n - 1 : n]
    above, equal = cosine > least, cosine == least
    room = n - above.sum(axis=1, keepdims=True)
    row, column = np.nonzero(above | (equal & (np.cumsum(equal, axis=1) <= room)))
    return row + first, column


def _pairs(page: ArrayLike, expert: ArrayLike, n_pages: int) -> Pairs:
    page, expert = np.asarray(page, np.int64), np.asarray(expert, np.int64)
    if page.shape != expert.shape:
        raise ValueError(f"{page.size} pages, but {expert.size} experts; there must be one for each")
    for number in (page, expert):
        if number.size and not 0 <= number.min() <= number.max() < n_pages:
            wrong = number[(number < 0) | (number >= n_pages)][0]
            raise ValueError(f"there is no page {wrong}; the {n_pages} pages are counted from 0")
    return page, expert


@njit(cache=True)
def _read(
    text: Any, page: Any, start: Any, word: Any, indptr: Any, indices: Any, counts: Any, factor: Any, values: Any
) -> None:
    row_of = np.full(len(factor), -1, np.int64)
    for i in range(len(page)):
        for row in range(start[i], start[i + 1]):
            row_of[word[row]] = row
        for t in range(text.shape[1]):
            at = text[page[i], t]
            if at < 0:
                continue
            if t > 0 and text[page[i], t - 1] == at:  # nothing changed: no need to read it again
                values[start[i] : start[i + 1], t] = values[start[i] : start[i + 1], t - 1]
                continue
            length = 0.0
            for j in range(indptr[at], indptr[at + 1]):
                length += counts[j]
            for j in range(indptr[at], indptr[at + 1]):
                row = row_of[indices[j]]
                if row >= 0 and length > 0:
                    values[row, t] = np.float64(counts[j]) / length * factor[indices[j]]
        for row in range(start[i], start[i + 1]):
            row_of[word[row]] = -1
