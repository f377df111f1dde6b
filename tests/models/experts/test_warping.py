"""Dynamic time warping against the full matrix of the textbook."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_contents import dynamics, made_contents, random_texts, slow_weights
from recrawl.models.experts.series import candidates, word_series
from recrawl.models.experts.warping import warped
from series_by_row import dtw

values = st.lists(st.integers(0, 40).map(lambda n: n / 8), min_size=1, max_size=25)


def slow_dtw(x: list[float], y: list[float], band: int | None = None) -> float:
    n = len(x)
    matrix = np.full((n + 1, n + 1), np.inf)
    matrix[0, 0] = 0
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            if band is None or abs(i - j) <= band:
                cost = abs(x[i - 1] - y[j - 1])
                matrix[i, j] = cost + min(matrix[i - 1, j], matrix[i, j - 1], matrix[i - 1, j - 1])
    return float(matrix[n, n])


@given(values, st.randoms(use_true_random=False), st.none() | st.integers(0, 30))
def test_it_is_the_textbooks(x: list[float], random: object, band: int | None) -> None:
    y = [value + random.choice([0, 0, 1, 2.5]) for value in random.sample(x, len(x))]  # type: ignore[attr-defined]
    assert dtw([x], [y], band)[0] == pytest.approx(slow_dtw(x, y, band), abs=1e-9)


@given(values, st.integers(0, 40).map(lambda n: n / 8), st.none() | st.integers(0, 30))
def test_so_it_is_for_a_constant(x: list[float], constant: float, band: int | None) -> None:
    y = [constant] * len(x)
    assert dtw([x], [y], band)[0] == pytest.approx(slow_dtw(x, y, band), abs=1e-9)
    assert dtw([y], [x], band)[0] == pytest.approx(slow_dtw(y, x, band), abs=1e-9)


def test_figure_4_stretches_one_series_over_the_other() -> None:
    slow, quick = [[0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 0.0]], [[0.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0]]
    assert dtw(slow, quick)[0] == 0
    assert dtw(slow, quick, band=0)[0] == 7  # |0-0| + |0-1| + |1-2| + |1-0| + |2-0| + |2-0| + |0-0|


def test_a_wider_band_is_never_further() -> None:
    x, y = np.random.default_rng(0).random((2, 20, 30))
    distances = np.array([dtw(x, y, band) for band in range(30)])
    assert (np.diff(distances, axis=0) <= 1e-12).all()
    assert np.array_equal(distances[-1], dtw(x, y))


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="band of -1"):
        dtw([[1.0]], [[1.0]], -1)
    with pytest.raises(ValueError, match="shapes"):
        dtw([[1.0, 2.0]], [[1.0]])


@pytest.mark.parametrize(("n_words", "band", "scaled"), [(50, None, True), (3, 4, True), (0, 2, False)])
def test_a_similarity_is_the_weighted_sum_over_words(n_words: int, band: int | None, scaled: bool) -> None:
    texts = random_texts(12)
    contents = made_contents(texts)
    page, expert = candidates(contents)
    found = warped(word_series(contents, n_words=n_words), page, expert, band, scaled)
    for p, e, similarity in zip(page, expert, found, strict=True):
        expected = 0.0
        for word, weight in slow_weights(texts, p, n_words).items():
            x, y = np.array(dynamics(texts, p, word)), np.array(dynamics(texts, e, word))
            scale = np.abs(x).mean() if scaled else 1.0
            expected += weight / (1 + slow_dtw(list(x / scale), list(y / scale), band))
        assert similarity == pytest.approx(expected, abs=1e-9)


def test_a_page_is_like_itself() -> None:
    contents = made_contents(random_texts(13))
    pages = np.arange(len(contents.page))
    assert warped(word_series(contents), pages, pages, band=3) == pytest.approx(1)


def test_an_expert_without_the_words_is_as_far_as_there_are_rounds() -> None:
    contents = made_contents([[{"a": 1}, {"a": 1, "b": 2}, {"a": 3, "b": 1}], [{"c": 1}, {"c": 2}, {"d": 1}]])
    assert warped(word_series(contents), [0, 1], [1, 0]) == pytest.approx(1 / (1 + 3))


def test_one_round_is_enough() -> None:
    contents = made_contents([[{"a": 1, "b": 1}], [{"a": 1}]])
    found = warped(word_series(contents), [0, 1], [1, 0])
    idf_b = np.log(3 / 2) + 1
    assert found[0] == pytest.approx((1 / (1 + 1) * 1 + 1 / (1 + 1) * idf_b) / (1 + idf_b))  # a: |1 - 2|, b: |1 - 0|
    assert found[1] == pytest.approx(1 / (1 + 0.5))
