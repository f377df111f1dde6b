from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import FeatureAgglomeration
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer
from sklearn.utils.estimator_checks import check_estimator

from recrawl.history import History
from recrawl.history.stored_words import term_counts
from recrawl.insight.vectors import Lsa, page_vectors, reduced, texts_up_to
from recrawl.web.visit import Visit
from recrawl.world.panel import Panel, build

START = datetime(2026, 1, 5, tzinfo=UTC)
DAY = timedelta(days=1)
Shown = Mapping[str, int] | Sequence[float] | None  # terms, a vector, or neither


@pytest.fixture(autouse=True)
def every_warning_is_an_error() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def corpus(n_pages: int, n_terms: int, seed: int = 0) -> sparse.csr_matrix:
    counts = np.random.default_rng(seed).poisson(0.4, (n_pages, n_terms))
    counts[:, 0] += 1  # no page without terms
    return sparse.csr_matrix(counts)


def tfidf(counts: np.ndarray) -> np.ndarray:
    """By the formula: count × (ln((1 + n) / (1 + pages with the term)) + 1), rows of length 1."""
    n_pages = (counts > 0).sum(axis=0)
    weighted = counts * (np.log((1 + len(counts)) / (1 + n_pages)) + 1)
    return weighted / np.maximum(np.linalg.norm(weighted, axis=1, keepdims=True), 1e-300)


def all_terms(n_components: int = 192, **more: object) -> Lsa:
    return Lsa(n_components, min_pages=1, max_share=1.0, **more)  # type: ignore[arg-type]


# -- Lsa --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_pages", "n_terms", "n_components"), [(12, 9, 4), (9, 12, 5), (10, 10, 1), (15, 8, 7)])
def test_lsa_is_the_dense_svd_of_tfidf_up_to_sign(n_pages: int, n_terms: int, n_components: int) -> None:
    counts = corpus(n_pages, n_terms)
    left, scale, _ = np.linalg.svd(tfidf(counts.toarray()))
    expected = left[:, :n_components] * scale[:n_components]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    found = all_terms(n_components).fit_transform(counts)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-4)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-4)
    assert found.dtype == np.float32


def test_lsa_vectors_have_unit_length_and_a_page_without_text_is_all_zero() -> None:
    counts = sparse.vstack([corpus(30, 40), sparse.csr_matrix((2, 40), dtype=int)]).tocsr()
    found = Lsa(8).fit_transform(counts)
    assert np.linalg.norm(found, axis=1) == pytest.approx([1] * 30 + [0] * 2, abs=1e-6)


def test_the_papers_192_dimensions_are_the_default_and_fewer_pages_or_terms_give_fewer() -> None:
    assert Lsa().n_components == 192
    assert Lsa(n_iter=1).fit_transform(corpus(200, 220)).shape == (200, 192)
    assert all_terms().fit_transform(corpus(10, 300)).shape == (10, 10)
    assert all_terms().fit_transform(corpus(300, 10)).shape == (300, 10)


@pytest.mark.parametrize("n_topics", [2, 3])
def test_topics_without_a_common_word_have_a_direction_each(n_topics: int) -> None:
    found = Lsa().fit_transform(sparse.csr_matrix(np.kron(np.eye(n_topics), np.ones((2, 1)))))
    np.testing.assert_allclose(found @ found.T, np.kron(np.eye(n_topics), np.ones((2, 2))), atol=1e-5)


def test_one_page_and_one_word_have_unit_vectors() -> None:
    assert Lsa().fit_transform(sparse.csr_matrix([[3, 4, 0]])) == pytest.approx(np.array([[0.6, 0.8]]))
    assert Lsa().fit_transform(sparse.csr_matrix([[3], [1], [0]])).tolist() == [[1], [1], [0]]
    assert Lsa().fit_transform(sparse.csr_matrix([[7]])).tolist() == [[1]]


def test_words_that_are_too_rare_or_everywhere_are_left_out() -> None:
    counts = np.eye(10, 6, dtype=int)
    counts[:, 4] = 1  # on all pages
    counts[3:6, 5] = 2  # on three
    counts[:2, 0] = 1  # on two
    fitted = Lsa(2).fit(sparse.csr_matrix(counts))
    assert fitted.columns_.tolist() == [0, 5]
    assert Lsa(2, min_pages=1).fit(sparse.csr_matrix(counts)).columns_.tolist() == [0, 1, 2, 3, 5]
    assert Lsa(2, max_share=1.0).fit(sparse.csr_matrix(counts)).columns_.tolist() == [0, 4, 5]
    assert Lsa(2, min_pages=1, max_terms=2).fit(sparse.csr_matrix(counts)).columns_.tolist() == [0, 5]
    padded = np.vstack([counts, np.zeros((50, 6), int)])
    assert Lsa(2).fit(sparse.csr_matrix(padded)).columns_.tolist() == [0, 5], "empty pages are no texts"


def test_sublinear_counts_are_one_plus_their_logarithm() -> None:
    counts = corpus(12, 9)
    damped = counts.toarray().astype(float)
    damped[damped > 0] = 1 + np.log(damped[damped > 0])
    left, scale, _ = np.linalg.svd(_weighted_like(damped, counts.toarray()))
    expected = left[:, :4] * scale[:4]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    found = all_terms(4, sublinear=True).fit_transform(counts)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-4)


@pytest.mark.parametrize(("n_pages", "n_terms", "n_components"), [(12, 9, 4), (9, 12, 5), (15, 8, 7)])
def test_the_papers_idf_is_the_plain_ratio_of_pages(n_pages: int, n_terms: int, n_components: int) -> None:
    """Count × (all pages / pages with the term), by the words of the appendix; neither a logarithm nor a scaling before the SVD."""
    counts = corpus(n_pages, n_terms)
    dense = counts.toarray().astype(float)
    left, scale, _ = np.linalg.svd(dense * (n_pages / (dense > 0).sum(axis=0)))
    expected = left[:, :n_components] * scale[:n_components]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    found = all_terms(n_components, idf="ratio").fit_transform(counts)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-4)
    logarithmic = all_terms(n_components).fit_transform(counts)
    assert np.abs(found @ found.T - logarithmic @ logarithmic.T).max() > 0.01


def test_with_the_papers_idf_pages_without_text_count_for_nothing_and_have_no_direction() -> None:
    counts = sparse.vstack([corpus(20, 30), sparse.csr_matrix((5, 30), dtype=int)]).tocsr()
    with_empty = all_terms(6, idf="ratio").fit_transform(counts)
    np.testing.assert_allclose(
        np.abs(with_empty[:20]), np.abs(all_terms(6, idf="ratio").fit_transform(counts[:20])), atol=1e-4
    )
    assert np.linalg.norm(with_empty, axis=1) == pytest.approx([1] * 20 + [0] * 5, abs=1e-6)


def test_an_unknown_idf_is_refused() -> None:
    with pytest.raises(ValueError, match=r"No idf named 'lag'\. Did you mean 'log'"):
        Lsa(idf="lag").fit(corpus(4, 5))


def _weighted_like(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    weighted = values * (np.log((1 + len(counts)) / (1 + (counts > 0).sum(axis=0))) + 1)
    return np.asarray(weighted / np.linalg.norm(weighted, axis=1, keepdims=True))


def test_new_pages_are_placed_without_learning_from_them() -> None:
    counts = corpus(40, 30)
    fitted = all_terms(6).fit(counts[:25])
    alone = fitted.transform(counts[30])
    np.testing.assert_array_equal(fitted.transform(counts)[30], alone[0])
    unknown = sparse.csr_matrix(([5], ([0], [7])), shape=(1, 30))
    only_seen = sparse.csr_matrix(counts.toarray() * (np.arange(30) != 7))
    assert not all_terms(6).fit(only_seen).transform(unknown).any(), "a page of words that were never seen"


def test_the_same_seed_gives_the_same_vectors_and_a_clone_too() -> None:
    counts, lsa = corpus(60, 80), Lsa(5, random_state=3)
    np.testing.assert_array_equal(lsa.fit_transform(counts), clone(lsa).fit_transform(counts))


def test_dense_counts_are_taken_and_another_number_of_columns_is_refused() -> None:
    counts = corpus(12, 9)
    np.testing.assert_array_equal(all_terms(3).fit_transform(counts), all_terms(3).fit_transform(counts.toarray()))
    with pytest.raises(ValueError, match="X has 7 features, but Lsa is expecting 9"):
        all_terms(3).fit(counts).transform(counts[:, :7])


def test_lsa_keeps_the_conventions_of_scikit_learn() -> None:
    check_estimator(Lsa(2), on_skip=None)
    check_estimator(Lsa(2, idf="ratio"), on_skip=None)


# -- vectors of a history ---------------------------------------------------------------------------------------------


def history_of(folder: Path, *rounds: Sequence[Shown]) -> tuple[History, Panel]:
    """Pages that show these terms or vectors, one list for a day; the panel has them in the order of the lists."""
    history = History.create(folder / "h")
    visits = []
    for r, shown in enumerate(rounds):
        for page, what in enumerate(shown):
            content = (
                {"terms": what}
                if isinstance(what, Mapping)
                else {"vector": what, "terms": {f"w{page}-{r}": 1}}
                if what
                else {}
            )
            visits.append(Visit(url=f"https://a.org/{page}", at=START + r * DAY, links=[], **content))  # type: ignore[arg-type]
    history.add(visits)
    panel = build(history, "1d", min_share=0)
    return history, panel


def by_page(panel: Panel, values: np.ndarray) -> list[list[float]]:
    return [
        np.round(row, 4).tolist()
        for _, row in sorted(zip(panel.url.to_pylist(), values, strict=True), key=lambda p: p[0])
    ]


FRUIT = [{"apple": 3, "pear": 1}, {"apple": 1, "pear": 2}, {"wheel": 2, "road": 1}, {"road": 3, "wheel": 1, "apple": 1}]


def test_page_vectors_are_lsa_of_the_term_counts(tmp_path: Path) -> None:
    history, panel = history_of(tmp_path, [*FRUIT, None])
    found = page_vectors(history, panel)
    counts = term_counts(history, texts_up_to(panel, 0))[1]
    n_words = [sum(terms.values()) for terms in FRUIT] + [0]
    assert np.ravel(counts.sum(axis=1)).tolist() == [n_words[int(url[-1])] for url in panel.url.to_pylist()]
    texts = np.flatnonzero(counts.sum(axis=1))
    expected = Lsa().fit_transform(counts[texts])
    np.testing.assert_allclose(found.values[texts], expected, atol=1e-6)
    assert found.known.tolist() == [not url.endswith("4") for url in panel.url.to_pylist()]
    assert not found.values[~found.known].any()


def test_a_vector_is_that_of_the_text_last_shown(tmp_path: Path) -> None:
    history, panel = history_of(tmp_path, FRUIT, [None, {"wheel": 5, "road": 2}, *FRUIT[2:]])
    digests = texts_up_to(panel, 1)
    counts = term_counts(history, digests)[1]
    np.testing.assert_allclose(page_vectors(history, panel).values, Lsa().fit_transform(counts), atol=1e-6)
    row = {url[-1]: i for i, url in enumerate(panel.url.to_pylist())}
    assert digests[row["0"]] == texts_up_to(panel, 0)[row["0"]], "without a text in the second round, that of the first"
    vectors = page_vectors(history, panel).values
    assert vectors[row["1"]] @ vectors[row["2"]] > 0.9, "the second page is about wheels and roads now"


def test_vectors_that_came_with_the_data_are_taken_as_they_are(tmp_path: Path) -> None:
    given = [[3.0, 4.0, 0.0], [0.0, 0.5, 0.0], None, [1.0, 1.0, 1.0]]
    history, panel = history_of(tmp_path, given, [[0.0, 0.0, 2.0], None, None, [1.0]])
    found = page_vectors(history, panel, 0)
    assert by_page(panel, found.values) == [vector or [0, 0, 0] for vector in given]
    last = page_vectors(history, panel)
    expected = [[0, 0, 2], [0, 0.5, 0], [0, 0, 0], [0, 0, 0]]
    assert by_page(panel, last.values) == expected, "one of another length cannot be compared"
    asked_for = page_vectors(history, panel, 0, transformer=Lsa(2)).values
    assert asked_for.shape[1] < 3, "unless a transformer is asked for"


@pytest.mark.parametrize(
    "transformer",
    [
        TruncatedSVD(2, random_state=0),
        TfidfTransformer(),
        Normalizer(),
        make_pipeline(FunctionTransformer(sparse.csr_matrix.toarray, accept_sparse=True), PCA(2)),
    ],
    ids=lambda transformer: type(transformer).__name__,
)
def test_any_transformer_of_scikit_learn_can_be_used_instead(tmp_path: Path, transformer: TruncatedSVD) -> None:
    history, panel = history_of(tmp_path, [*FRUIT, None])
    found = page_vectors(history, panel, transformer=clone(transformer))
    counts = term_counts(history, texts_up_to(panel, 0))[1]
    texts = np.flatnonzero(counts.sum(axis=1))
    expected = clone(transformer).fit_transform(counts[texts])
    expected = expected.toarray() if sparse.issparse(expected) else expected
    np.testing.assert_allclose(found.values[texts], expected, atol=1e-5)
    assert not found.values[~np.isin(np.arange(5), texts)].any(), (
        "a page without text is all zero, also where a text is not"
    )
    assert found.values.dtype == np.float32


@pytest.mark.parametrize("shown", [[None, None], [{}, None]])
def test_without_any_text_no_page_has_a_vector(tmp_path: Path, shown: list[Shown]) -> None:
    history, panel = history_of(tmp_path, shown)
    found = page_vectors(history, panel)
    assert found.values.shape[0] == 2
    assert not found.known.any()


@pytest.mark.parametrize("shown", [[{"one": 1}], [{"same": 2}, {"same": 1}], [{"one": 1, "two": 2}, None]])
def test_one_page_or_one_word_is_enough_for_unit_vectors(tmp_path: Path, shown: list[Shown]) -> None:
    history, panel = history_of(tmp_path, shown)
    lengths = np.linalg.norm(page_vectors(history, panel).values, axis=1)
    assert sorted(lengths) == pytest.approx(sorted(1.0 if terms else 0.0 for terms in shown))


def test_texts_up_to_a_round_are_the_last_known_ones(tmp_path: Path) -> None:
    _, panel = history_of(tmp_path, [{"a": 1}])
    panel = replace(panel, terms=np.array([[5, 0, 7, 0], [0, 0, 0, 0], [0, 3, 3, 4]]))
    assert [texts_up_to(panel, last).tolist() for last in range(4)] == [[5, 0, 0], [5, 0, 3], [7, 0, 3], [7, 0, 4]]


def test_term_counts_keep_the_order_of_texts(tmp_path: Path) -> None:
    history, panel = history_of(tmp_path, [*FRUIT, None])
    digests = texts_up_to(panel, 0)
    vocabulary, counts = term_counts(history, digests)
    assert (np.diff(vocabulary) > 0).all()
    assert counts.shape == (5, 4)
    twice = term_counts(history, np.r_[digests, 0, digests[2], 12345])[1]
    np.testing.assert_array_equal(twice.toarray()[[2, 6]], counts.toarray()[[2, 2]])
    assert not twice[[5, 7]].nnz, "no text, or one that is not stored"


# -- reduced ----------------------------------------------------------------------------------------------------------


def test_reduced_vectors_are_the_pooled_clusters_of_dimensions() -> None:
    vectors = np.random.default_rng(0).normal(size=(80, 192)).astype(np.float32)
    vectors[:, 60:120] += vectors[:, :60]  # some dimensions are alike
    vectors[7] = 0
    found = reduced(vectors)
    texts = np.delete(vectors, 7, axis=0)
    merge = FeatureAgglomeration(n_clusters=20, metric="cosine", linkage="complete").fit(texts)
    expected = np.column_stack([texts[:, merge.labels_ == i].mean(axis=1) for i in range(20)])
    np.testing.assert_allclose(np.delete(found, 7, axis=0), expected, atol=1e-6)
    assert not found[7].any()
    assert found.shape == (80, 20)
    assert found.dtype == np.float32


def test_alike_dimensions_are_merged_to_their_mean() -> None:
    one, other = np.random.default_rng(0).normal(size=(2, 50)).astype(np.float32)
    found = reduced(np.column_stack([one, other, 3 * one, 2 * other]), 2)
    expected = np.column_stack([2 * one, 1.5 * other])
    order = [0, 1] if np.allclose(found[:, 0], expected[:, 0], atol=1e-5) else [1, 0]
    np.testing.assert_allclose(found[:, order], expected, atol=1e-5)


def test_few_dimensions_stay_as_they_are_and_dead_ones_are_dropped() -> None:
    vectors = np.random.default_rng(0).normal(size=(6, 20)).astype(np.float32)
    np.testing.assert_array_equal(reduced(vectors), vectors)
    vectors[:, [3, 5]] = 0
    np.testing.assert_array_equal(reduced(vectors), np.delete(vectors, [3, 5], axis=1))
    wide = np.hstack([vectors, np.zeros((6, 90), np.float32)])
    np.testing.assert_array_equal(reduced(wide), np.delete(vectors, [3, 5], axis=1))


@pytest.mark.parametrize(
    ("vectors", "shape"),
    [
        (np.zeros((5, 30)), (5, 0)),
        (np.ones((5, 1)), (5, 1)),
        (np.ones((5, 30)), (5, 20)),
        (np.ones((1, 30)), (1, 20)),
        (np.ones((0, 30)), (0, 0)),
        (np.ones((5, 0)), (5, 0)),
    ],
)
def test_degenerate_vectors_are_reduced_too(vectors: np.ndarray, shape: tuple[int, int]) -> None:
    found = reduced(vectors.astype(np.float32))
    assert found.shape == shape
    assert np.isfinite(found).all()
