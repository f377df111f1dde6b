"""Two texts' words side by side: the chi-squared test and the weighted Jaccard similarity."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import chdtrc

from recrawl.core.arrays import Floats, Ints


def chi_squared(counts: sparse.csr_matrix, before: Ints, after: Ints, min_expected: float = 0.0) -> Floats:
    """The p-values of the chi-squared test whether pairs of texts (rows of `counts`) draw their words from one distribution.

    The table of a pair has two rows, and a column for every word that either text has; words of neither text do not count. No
    continuity correction. Rare words: those whose expected count in either text is below `min_expected` are pooled into one
    column, however small that is. 5 is the textbook's rule; by default every word counts by itself, as the paper mentions no
    pooling. Words a history does not keep (it keeps the most frequent of a text, and not how many there were) form no column.

    A text against itself, or a table of a single column, has p = 1; a text without words against one with words has p = 0. Words
    that occur once say little: two texts of 300 different words each, none in common, have p = 0.48, and with every word twice
    2e-42. Where pages are that short or that varied, `Digest` and `Shingles` are the better notions.

    >>> texts = sparse.csr_matrix([[30, 10, 0], [10, 30, 0], [30, 9, 1]])
    >>> chi_squared(texts, np.array([0, 0]), np.array([1, 2])).round(4).tolist()
    [0.0, 0.5908]

    References: Radinsky and Bennett (2013), Eq. 1.
    """
    statistic, freedom = _chi_squared(*_rows(counts), before, after, min_expected)
    p = np.ones(len(before))
    tested = freedom > 0
    p[tested] = chdtrc(freedom[tested], statistic[tested])
    return p


def weighted_jaccard(counts: sparse.csr_matrix, before: Ints, after: Ints) -> Floats:
    """What pairs of texts (rows of `counts`) have in common: the sum of the smaller counts by the sum of the larger ones.

    >>> weighted_jaccard(sparse.csr_matrix([[2, 1, 0], [2, 0, 1]]), np.array([0, 0]), np.array([0, 1])).tolist()
    [1.0, 0.5]
    """
    return np.asarray(_weighted_jaccard(*_rows(counts), before, after))


def _rows(counts: sparse.csr_matrix) -> tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.generic], int]:
    """The arrays of a matrix with ascending columns, and the most words that two of its rows can have."""
    if not counts.has_sorted_indices:
        counts = counts.sorted_indices()
    return counts.indptr, counts.indices, counts.data, 2 * int(np.diff(counts.indptr).max(initial=0))


@njit(cache=True, nogil=True)
def _side_by_side(starts, terms, data, a, b, table):  # type: ignore[no-untyped-def]
    """Fill in the counts of every word that either text has; return the number of these words."""
    i, end_i, j, end_j, n = starts[a], starts[a + 1], starts[b], starts[b + 1], 0
    while i < end_i or j < end_j:
        table[0, n] = table[1, n] = 0.0
        word = min(terms[i] if i < end_i else terms[j], terms[j] if j < end_j else terms[i])
        if i < end_i and terms[i] == word:
            table[0, n] = data[i]
            i += 1
        if j < end_j and terms[j] == word:
            table[1, n] = data[j]
            j += 1
        n += table[0, n] + table[1, n] > 0  # a count stored as 0 is not a word
    return n


@njit(cache=True, nogil=True)
def _chi_squared(starts, terms, data, widest, before, after, min_expected):  # type: ignore[no-untyped-def]
    statistic, freedom = np.zeros(len(before)), np.zeros(len(before), np.int64)
    table = np.empty((2, widest))
    for pair in range(len(before)):
        if before[pair] == after[pair]:
            continue
        n = _side_by_side(starts, terms, data, before[pair], after[pair], table)
        total_a, total_b = table[0, :n].sum(), table[1, :n].sum()
        if total_a == 0 or total_b == 0:
            if n:
                statistic[pair], freedom[pair] = np.inf, 1
            continue
        fewer, rarest = min(total_a, total_b), min_expected * (total_a + total_b)
        rare_a = rare_b = weighted = 0.0
        n_columns = 0
        for word in range(n):
            a, b = table[0, word], table[1, word]
            if (a + b) * fewer < rarest:
                rare_a += a
                rare_b += b
            else:
                weighted += (a * total_b - b * total_a) ** 2 / (a + b)
                n_columns += 1
        if rare_a + rare_b > 0:
            weighted += (rare_a * total_b - rare_b * total_a) ** 2 / (rare_a + rare_b)
            n_columns += 1
        # Observed less expected is (a * total_b - b * total_a) / total in one row and the negative of it in the other.
        statistic[pair], freedom[pair] = weighted / (total_a * total_b), n_columns - 1
    return statistic, freedom


@njit(cache=True, nogil=True)
def _weighted_jaccard(starts, terms, data, widest, before, after):  # type: ignore[no-untyped-def]
    similarity = np.ones(len(before))
    table = np.empty((2, widest))
    for pair in range(len(before)):
        n = _side_by_side(starts, terms, data, before[pair], after[pair], table)
        if n:
            smaller, larger = np.minimum(table[0, :n], table[1, :n]), np.maximum(table[0, :n], table[1, :n])
            similarity[pair] = smaller.sum() / larger.sum()
    return similarity
