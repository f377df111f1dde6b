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

import threading
from collections import OrderedDict
from typing import NamedTuple, Protocol

import numpy as np
from scipy import sparse

from recrawl.core.arrays import Floats, Ints, Ints8, Ints32
from recrawl.models.experts.features import compiled_inner, compiled_own, compiled_products, compiled_relation

MEMORY = 2_000_000_000  #: bytes of inner products that are kept; what is forgotten is worked out again


class Shown(Protocol):
    """What pages showed: `recrawl.world.contents.Contents`, or a part of it."""

    @property
    def text(self) -> Ints32:
        """[page, time]: row of `counts`; -1: not known yet."""

    @property
    def counts(self) -> sparse.csr_matrix:
        """[text, term]."""


class PagePast(NamedTuple):
    """What one page showed: ``inner[of[s], of[t]]`` is the inner product of its texts at times s and t."""

    of: Ints
    inner: Floats
    own: Floats  # features 1, 3, 4 and 5 of section 4.2.1 [time, 1 + 3l]: frequency, magnitudes, past changes


class WordShares(NamedTuple):
    """Word distributions: the counts of texts as stored, and what a count of each text is multiplied by."""

    indptr: Ints
    indices: Ints
    counts: Floats
    unit: Floats  # [text]: 1 / number of words


class ExpertExamples:
    """The features of pages at all times of a history, for experts with window `l` and prediction interval `sigma`.

    `change` is 1, 0 or -1 (not known) for every page and round. `word_scale` multiplies the word distribution: the weight of the
    words beside the other features; the paper has 1. Only the texts are kept as they are. What follows from them is worked out when
    it is asked for; inner products, which many pages need, are kept up to `memory` bytes.
    """

    def __init__(
        self,
        shown: Shown,
        change: Ints8,
        *,
        l: int = 1,  # noqa: E741 (the paper's name)
        sigma: int = 1,
        word_scale: float = 1.0,
        memory: int = MEMORY,
    ) -> None:
        if l < 1 or sigma < 1:
            raise ValueError(f"l is {l} and sigma is {sigma}: the window and the interval must be at least one round")
        self.change, self.text = change, np.ascontiguousarray(shown.text)
        self.l, self.sigma, self.word_scale = l, sigma, word_scale
        counts = shown.counts if shown.counts.has_sorted_indices else shown.counts.sorted_indices()
        self.counts = counts
        self.words = WordShares(counts.indptr, counts.indices, counts.data, _units(counts))
        self._pasts, self._room, self._lock = OrderedDict[int, PagePast](), memory, threading.Lock()
        self._of_thread = threading.local()

    @property
    def n_rounds(self) -> int:
        """How many times there are."""
        return int(self.text.shape[1])

    @property
    def scratch(self) -> Floats:
        """Zeros, one for every term: compiled functions write here and clean up after themselves. Every thread has its own."""
        if not hasattr(self._of_thread, "scratch"):
            self._of_thread.scratch = np.zeros(self.counts.shape[1])
        scratch: Floats = self._of_thread.scratch
        return scratch

    def label(self, page: int) -> Ints8:
        """What is to be learnt from the example of each time: whether the page changes `sigma` rounds later."""
        label = np.full(self.n_rounds, -1, np.int8)
        label[: -self.sigma] = self.change[page, self.sigma :]
        return label

    def past(self, page: int) -> PagePast:
        """What a page showed; of pages that were not asked for lately it is worked out again."""
        with self._lock:
            if page in self._pasts:
                self._pasts.move_to_end(page)
                return self._pasts[page]
        texts, of = np.unique(self.text[page], return_inverse=True)
        inner = compiled_products(*self.words, texts.astype(np.int64), self.scratch)
        own = compiled_own(of, inner, self.change[page], self.l, self.sigma)
        past = PagePast(of.astype(np.int64), inner, own)
        with self._lock:
            if page not in self._pasts:
                self._pasts[page] = past
                self._room -= _bytes_of(past)
                while self._room < 0 and len(self._pasts) > 1:
                    self._room += _bytes_of(self._pasts.popitem(last=False)[1])
        return past

    def relation(self, page: int, expert: int) -> Floats:
        """Features 6 and 7 of section 4.2.2 [time, 3l]: how similar the pages and their changes are."""
        a, b = self.past(page), self.past(expert)
        texts = self.text[page], self.text[expert]
        features: Floats = compiled_relation(*self.words, *texts, a.of, a.inner, b.of, b.inner, self.l, self.scratch)
        return features

    def columns(self, page: int, expert: int) -> Floats:
        """All features of an expert but the words; the page itself has no relation to itself."""
        own = self.past(expert).own
        return own if page == expert else np.hstack([own, self.relation(page, expert)])

    def inner(self, page: int, expert: int) -> Floats:
        """Inner products of the expert's feature vectors at all pairs of times."""
        past = self.past(expert)
        products: Floats = compiled_inner(past.of, past.inner, self.columns(page, expert), self.word_scale**2)
        return products

    def matrix(self, page: int, expert: int) -> sparse.csr_matrix:
        """The feature vectors themselves [time, words and other features]."""
        text = self.text[expert]
        shares = sparse.diags(np.where(text >= 0, self.words.unit[np.maximum(text, 0)], 0.0) * self.word_scale)
        words = shares @ self.counts[np.maximum(text, 0)].astype(np.float64)
        return sparse.hstack([words, sparse.csr_matrix(self.columns(page, expert))], format="csr")


def _units(counts: sparse.csr_matrix) -> Floats:
    total = np.asarray(counts.sum(axis=1, dtype=np.float64)).ravel()
    units: Floats = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    return units


def _bytes_of(past: PagePast) -> int:
    return past.of.nbytes + past.inner.nbytes + past.own.nbytes
