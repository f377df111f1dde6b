"""What an expert learns from: the features of a page and of its relation to the page that is predicted, at every time.

Radinsky and Bennett (2013), sections 4.2.1 and 4.2.2. A(t) is the distribution of the words that page A showed at its last visit
up to round t; before its first visit it is zero. What the paper leaves open:

- The content vectors of the norms and cosines are the distributions, like the unigram features, not the counts.
- At l = 1 the frequency in the window is change(A(t)), and the past changes begin with change(A(t - 1)). An unknown change
  counts as none; the frequency is the mean of the known ones.
- cos(A, B) is taken at t, t - 1, … (l values); δ of a page at lag i is X(t) - X(t - i), for both kinds of similar changes.
- A cosine with a zero vector is 0. Before the first round everything was as in the first round, and nothing changed.

All of it follows from inner products of distributions, and so do polynomial kernels of the features: no feature vector with a
column for every word is made, unless another learner needs it (`ExpertExamples.matrix`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy import sparse

from recrawl.core.arrays import Floats, Ints, Ints8
from recrawl.world.contents import Contents


@dataclass(frozen=True)
class Gram:
    """Inner products of what one page showed: ``inner[of[s], of[t]]`` for times s and t."""

    of: Ints
    inner: Floats


class ExpertExamples:
    """The features of pages at all times of a history, for experts with window `l` and prediction interval `sigma`.

    `change` is 1, 0 or -1 (not known) for every page and round. `word_scale` multiplies the word distribution: the weight of the
    words beside the other features; the paper has 1.
    """

    def __init__(
        self,
        contents: Contents,
        change: Ints8,
        *,
        l: int = 1,  # noqa: E741 (the paper's name)
        sigma: int = 1,
        word_scale: float = 1.0,
    ) -> None:
        if l < 1 or sigma < 1:
            raise ValueError(f"l is {l} and sigma is {sigma}: the window and the interval must be at least one round")
        self.contents, self.change = contents, change
        self.l, self.sigma, self.word_scale = l, sigma, word_scale
        self.words = distributions(contents.counts)
        self.text = np.where(contents.text < 0, self.words.shape[0] - 1, contents.text).astype(np.int64)
        self._grams: dict[int, Gram] = {}

    @property
    def n_rounds(self) -> int:
        """How many times there are."""
        return int(self.text.shape[1])

    def label(self, page: int) -> Ints8:
        """What is to be learnt from the example of each time: whether the page changes `sigma` rounds later."""
        label = np.full(self.n_rounds, -1, np.int8)
        label[: -self.sigma] = self.change[page, self.sigma :]
        return label

    def gram(self, page: int) -> Gram:
        """The inner products of what a page showed, computed once."""
        if page not in self._grams:
            texts, of = np.unique(self.text[page], return_inverse=True)
            own = self.words[texts]
            own = own[:, np.unique(own.indices)] if own.nnz else own
            self._grams[page] = Gram(of.astype(np.int64), (own @ own.T).toarray())
        return self._grams[page]

    def own(self, page: int) -> Floats:
        """Features 1, 3, 4 and 5 of section 4.2.1 [time, 1 + 3l]: frequency, magnitudes, past changes."""
        gram = self.gram(page)
        features: Floats = _own(gram.of, gram.inner, self.change[page], self.l, self.sigma)
        return features

    def relation(self, page: int, expert: int) -> Floats:
        """Features 6 and 7 of section 4.2.2 [time, 3l]: how similar the pages and their changes are."""
        a, b = self.gram(page), self.gram(expert)
        words = self.words.indptr, self.words.indices, self.words.data
        texts = self.text[page], self.text[expert]
        features: Floats = _relation(*words, *texts, a.of, a.inner, b.of, b.inner, self.l)
        return features

    def columns(self, page: int, expert: int) -> Floats:
        """All features of an expert but the words; the page itself has no relation to itself."""
        own = self.own(expert)
        return own if page == expert else np.hstack([own, self.relation(page, expert)])

    def inner(self, page: int, expert: int) -> Floats:
        """Inner products of the expert's feature vectors at all pairs of times."""
        gram = self.gram(expert)
        products: Floats = _inner(gram.of, gram.inner, self.columns(page, expert), self.word_scale**2)
        return products

    def matrix(self, page: int, expert: int) -> sparse.csr_matrix:
        """The feature vectors themselves [time, words and other features]."""
        words = self.words[self.text[expert]] * self.word_scale
        return sparse.hstack([words, sparse.csr_matrix(self.columns(page, expert))], format="csr")


def distributions(counts: sparse.csr_matrix) -> sparse.csr_matrix:
    """Word counts as shares of each text; one more row at the end is empty."""
    total = np.asarray(counts.sum(axis=1), np.float64).ravel()
    shares = sparse.diags(np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)) @ counts.astype(np.float64)
    rows = sparse.vstack([shares, sparse.csr_matrix((1, counts.shape[1]))], format="csr")
    rows.sort_indices()
    return rows


@njit(cache=True, nogil=True)
def _apart(inner, a, b):  # type: ignore[no-untyped-def]
    """The distance of two texts; rounding must not make it the root of something negative."""
    return np.sqrt(max(inner[a, a] + inner[b, b] - 2.0 * inner[a, b], 0.0)) if a != b else 0.0


@njit(cache=True, nogil=True)
def _own(of, inner, change, l, sigma):  # type: ignore[no-untyped-def]  # noqa: E741
    n = len(of)
    x = np.zeros((n, 1 + 3 * l))
    for t in range(n):
        known = changed = 0
        for i in range(l):
            if t < i:
                known += 1
            elif change[t - i] >= 0:
                known += 1
                changed += change[t - i]
        x[t, 0] = changed / known if known else 0.0
        for i in range(1, l + 1):
            before, earlier = max(t - i, 0), max(t - i - sigma, 0)
            x[t, i] = _apart(inner, of[t], of[before])
            x[t, l + i] = _apart(inner, of[before], of[earlier])
            x[t, 2 * l + i] = 1.0 if t - i >= 0 and change[t - i] == 1 else 0.0
    return x


@njit(cache=True, nogil=True)
def dot(indptr, indices, data, a, b):  # type: ignore[no-untyped-def]
    """The inner product of two rows of a sparse matrix whose columns ascend."""
    i, j, total = indptr[a], indptr[b], 0.0
    while i < indptr[a + 1] and j < indptr[b + 1]:
        if indices[i] == indices[j]:
            total += data[i] * data[j]
            i += 1
            j += 1
        elif indices[i] < indices[j]:
            i += 1
        else:
            j += 1
    return total


@njit(cache=True, nogil=True)
def _cosine(product, one, other):  # type: ignore[no-untyped-def]
    """From squared lengths; a vector of (nearly) zero length has no direction."""
    return product / np.sqrt(one * other) if one > 1e-18 and other > 1e-18 else 0.0


@njit(cache=True, nogil=True)
def _relation(indptr, indices, data, text_a, text_b, of_a, inner_a, of_b, inner_b, l):  # type: ignore[no-untyped-def]  # noqa: E741
    n = len(text_a)
    # between[t, k] = A(t) · B(t + k - l): all products of the two that are needed.
    between = np.zeros((n, 2 * l + 1))
    for t in range(n):
        for k in range(2 * l + 1):
            other, one_earlier = min(max(t + k - l, 0), n - 1), min(max(t + k - l - 1, 0), n - 1)
            # Most texts are those of the round before, on both sides.
            if t and text_a[t] == text_a[t - 1] and text_b[other] == text_b[one_earlier]:
                between[t, k] = between[t - 1, k]
            else:
                between[t, k] = dot(indptr, indices, data, text_a[t], text_b[other])
    x = np.zeros((n, 3 * l))
    for t in range(n):
        for i in range(l):
            then = max(t - i, 0)
            x[t, i] = _cosine(between[then, l], inner_a[of_a[then], of_a[then]], inner_b[of_b[then], of_b[then]])
        for i in range(1, l + 1):
            then = max(t - i, 0)
            lag = t - then
            a, b = of_a[t], of_b[t]
            b_moved = inner_b[b, b] + inner_b[of_b[then], of_b[then]] - 2.0 * inner_b[b, of_b[then]]
            a_moved = inner_a[a, a] + inner_a[of_a[then], of_a[then]] - 2.0 * inner_a[a, of_a[then]]
            with_a = between[t, l] - between[t, l - lag]
            with_change = with_a - between[then, l + lag] + between[then, l]
            if b != of_b[then]:
                x[t, l + i - 1] = _cosine(with_a, b_moved, inner_a[a, a])
                if a != of_a[then]:
                    x[t, 2 * l + i - 1] = _cosine(with_change, b_moved, a_moved)
    return x


@njit(cache=True, nogil=True)
def _inner(of, gram, x, word_weight):  # type: ignore[no-untyped-def]
    n = len(of)
    inner = np.empty((n, n))
    for s in range(n):
        for t in range(s + 1):
            total = word_weight * gram[of[s], of[t]]
            for f in range(x.shape[1]):
                total += x[s, f] * x[t, f]
            inner[s, t] = inner[t, s] = total
    return inner
