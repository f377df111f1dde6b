"""Page text → semantic vectors: those given with the data as they are, else 192-dimensional LSA.

Dang et al. (2022), appendix, describe LSA: term counts weighted by the inverse document frequency, reduced by a randomized singular
value decomposition, scaled to length 1. Their inverse document frequency is the plain ratio of all pages to those with the term
(`idf="ratio"`); the default is its smoothed logarithm, as is usual. The authors' own variant is not published. It is fitted once,
on the last text of every page before the predicted round; a page has that one vector in all rounds, so none moves because the
texts of others did.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from scipy import sparse
from scipy.sparse.linalg import norm as sparse_norm
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import FeatureAgglomeration
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted, validate_data

from recrawl.core.arrays import Flags, Floats32, Ints
from recrawl.core.suggest import unknown
from recrawl.history import History
from recrawl.history.stored_words import term_counts
from recrawl.insight.choices import IDFS
from recrawl.world.panel import Panel

DIMENSIONS = 192
REDUCED = 20
_ROUNDING = 1e-6  # of the length that a text had before it was projected


class PlainTfidf:
    """Counts × (pages / pages with the term), without a logarithm and without scaling (Dang et al., 2022, appendix).

    >>> counts = sparse.csr_matrix([[2, 1], [0, 3], [0, 0]])
    >>> PlainTfidf(n_pages=2).fit(counts).transform(counts).toarray().tolist()
    [[4.0, 1.0], [0.0, 3.0], [0.0, 0.0]]
    """

    def __init__(self, n_pages: int, *, sublinear_tf: bool = False) -> None:
        self.n_pages = n_pages  # with text
        self.sublinear_tf = sublinear_tf

    def fit(self, counts: sparse.csr_matrix) -> Self:
        """Count the pages with each term."""
        self.idf_ = self.n_pages / np.maximum(np.bincount(counts.indices, minlength=counts.shape[1]), 1)
        return self

    def transform(self, counts: sparse.csr_matrix) -> sparse.csr_matrix:
        """The weighted counts."""
        weighted = counts.astype(np.float64)
        if self.sublinear_tf:
            weighted.data = 1 + np.log(weighted.data)
        weighted.data *= self.idf_[weighted.indices]
        return weighted


class Lsa(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Term counts [page, term] → unit vectors; a page without known terms is all zero.

    The papers name no vocabulary and take term counts as they are. Here: terms on at least `min_pages` pages and on at most
    `max_share` of them (a term that is everywhere distinguishes no pages), the `max_terms` most widespread;
    `sublinear` counts as 1 + ln(count). With fewer pages or terms than dimensions there are fewer dimensions.

    `idf`: "log" weights a term on d of n pages by 1 + ln((1 + n) / (1 + d)), and scales every page to length 1 before the
    decomposition; "ratio" weights by n / d and does not scale, as the papers' appendix says. Rare words then decide nearly alone.

    >>> counts = sparse.csr_matrix([[2, 1, 0, 0], [1, 3, 0, 0], [0, 0, 1, 1], [0, 0, 2, 1], [0, 0, 0, 0]])
    >>> v = Lsa(2, min_pages=1, max_share=1.0).fit_transform(counts)
    >>> np.round(v @ v[0], 1).tolist()
    [1.0, 1.0, 0.0, 0.0, 0.0]
    """

    def __init__(
        self,
        n_components: int = DIMENSIONS,
        *,
        min_pages: int = 2,
        max_share: float = 0.9,
        max_terms: int = 50_000,
        sublinear: bool = False,
        idf: str = "log",
        n_iter: int = 5,
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.min_pages = min_pages
        self.max_share = max_share
        self.max_terms = max_terms
        self.sublinear = sublinear
        self.idf = idf
        self.n_iter = n_iter
        self.random_state = random_state

    def fit(self, counts: Any, y: object = None) -> Self:
        """Learn vocabulary, weights and directions."""
        if self.idf not in IDFS:
            raise ValueError(unknown("idf", self.idf, IDFS))
        counts = sparse.csr_matrix(validate_data(self, counts, accept_sparse="csr", ensure_non_negative=True))
        n_pages = np.bincount(counts.indices, minlength=counts.shape[1])
        n_texts = max(int((np.diff(counts.indptr) > 0).sum()), 1)
        useful = np.flatnonzero((n_pages >= self.min_pages) & (n_pages <= max(self.max_share * n_texts, 1)))
        if not len(useful):  # a handful of pages: all words are better than none
            useful = np.flatnonzero(n_pages)
        widest = useful[np.argsort(-n_pages[useful], kind="stable")[: self.max_terms]]
        self.columns_ = np.sort(widest)
        plain = PlainTfidf(n_texts, sublinear_tf=self.sublinear)
        weights = plain if self.idf == "ratio" else TfidfTransformer(sublinear_tf=self.sublinear)
        self.weights_ = weights.fit(counts[:, self.columns_])
        weighted = self.weights_.transform(counts[:, self.columns_])
        self.svd_ = None
        if min(weighted.shape) > 1:
            # As many as there are pages or terms, not one fewer: two topics without a common word need two.
            n_components = min(self.n_components, *weighted.shape)
            svd = TruncatedSVD(n_components, algorithm="randomized", n_iter=self.n_iter, random_state=self.random_state)
            with np.errstate(invalid="ignore"):  # texts that are all the same have no variance to explain
                self.svd_ = svd.fit(weighted)
        return self

    def transform(self, counts: Any) -> Floats32:
        """The unit vectors of pages."""
        check_is_fitted(self)
        counts = sparse.csr_matrix(validate_data(self, counts, accept_sparse="csr", reset=False))
        weighted = self.weights_.transform(counts[:, self.columns_])
        dense = self.svd_.transform(weighted) if self.svd_ is not None else weighted.toarray()
        lost = np.linalg.norm(dense, axis=1) < _ROUNDING * sparse_norm(weighted, axis=1)
        dense[lost] = 0  # else a page of unknown words would point somewhere
        vectors: Floats32 = normalize(dense).astype(np.float32)
        return vectors

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


@dataclass(frozen=True)
class Vectors:
    """One vector per page, in the order of the panel's pages; all zero for a page without text."""

    values: Floats32

    @property
    def known(self) -> Flags:
        """Which pages have one."""
        return np.asarray(self.values.any(axis=1))


def page_vectors(
    history: History, panel: Panel, until: int | None = None, *, transformer: Any = None, idf: str = "log"
) -> Vectors:
    """The vector of the last text of each page up to round `until` (default: the last), by a transformer fitted on these texts.

    `transformer` is any scikit-learn transformer of term counts (CSR, pages by terms). By default the vectors of the history are
    taken as they are, or if it has none, an `Lsa` with this `idf` is fitted.
    """
    digests = texts_up_to(panel, len(panel.rounds) - 1 if until is None else until)
    if transformer is None:
        given = given_vectors(history, digests)
        if given is not None:
            return Vectors(given)
    transformer = Lsa(idf=idf) if transformer is None else transformer
    vocabulary, counts = term_counts(history, digests)
    if not len(vocabulary):
        return Vectors(np.zeros((len(panel.page), 1), np.float32))
    seen = np.unique(np.flatnonzero(np.diff(counts.indptr)))
    transformed = transformer.fit(counts[seen]).transform(counts)
    values = np.array(transformed.toarray() if sparse.issparse(transformed) else transformed, np.float32)
    values[np.diff(counts.indptr) == 0] = 0  # a transformer that moves the origin would give them a direction
    return Vectors(values)


def texts_up_to(panel: Panel, last: int) -> Ints:
    """The digest of the last known text of each page up to a round; 0 where there is none."""
    assert panel.terms is not None
    shown = panel.terms[:, : last + 1]
    newest = shown.shape[1] - 1 - np.argmax(shown[:, ::-1] != 0, axis=1)
    return shown[np.arange(len(shown)), newest] if shown.size else np.zeros(len(panel.page), np.int64)


def given_vectors(history: History, digests: Ints) -> Floats32 | None:
    """The vectors given with the data, or None if no page has one."""
    wanted = pa.array(np.unique(digests[digests != 0]))
    table = history.store.read("vectors", where=pc.is_in(ds.field("digest"), wanted))
    if not table.num_rows:
        return None
    lists = table["vector"].combine_chunks()
    width = int(pc.max(lists.value_lengths()).as_py())
    usable = pc.equal(lists.value_lengths(), width)
    lists, keys = lists.filter(usable), table["digest"].combine_chunks().filter(usable)
    stored = lists.flatten().to_numpy(zero_copy_only=False).reshape(len(lists), width)
    at = pc.index_in(pa.array(digests), keys).fill_null(-1).to_numpy(zero_copy_only=False)
    return np.where((at >= 0)[:, None], stored[at], np.float32(0)).astype(np.float32)


def reduced(vectors: Floats32, n: int = REDUCED) -> Floats32:
    """The vectors as `n` columns for a model: similar dimensions merged to their mean.

    Complete linkage on the cosine between dimensions, as the authors do; pages without text do not count.

    References: Dang et al. (2022), section 5.3.
    """
    alive = np.flatnonzero(vectors.any(axis=0))
    if len(alive) <= n:
        return np.asarray(vectors[:, alive], np.float32)
    merge = FeatureAgglomeration(n_clusters=n, metric="cosine", linkage="complete")
    merge.fit(vectors[vectors.any(axis=1)][:, alive])
    return np.asarray(merge.transform(vectors[:, alive]), np.float32)
