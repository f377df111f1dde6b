"""Cross-correlation round by round against all rounds at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_contents import made_contents, random_texts
from recrawl.models.experts.correlation import cross_correlation
from recrawl.models.experts.online import OnlineCorrelation, OnlineSimilarity
from recrawl.models.experts.series import candidates, word_series
from series_by_row import best_correlation


@given(
    st.integers(1, 40),
    st.integers(0, 3),
    st.integers(0, 20),
    st.sampled_from([0.0, 1.0, 1e3]),
    st.integers(0, 2**32 - 1),
)
def test_it_equals_the_batch_at_every_step(rounds: int, first: int, more: int, level: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    series = level + random.integers(0, 5, (6, rounds)) / 7
    series[5] = series[5, 0]  # one is constant
    x, y = random.integers(0, 6, (2, 15))
    online = OnlineCorrelation(6, x, y, first + more, first)
    for n in range(rounds):
        online.add(series[:, n])
        expected = best_correlation(series[x, : n + 1], series[y, : n + 1], first, first + more)
        assert np.abs(online.value() - expected).max() < 1e-9


def test_it_is_as_exact_after_thousands_of_rounds_and_far_from_zero() -> None:
    random = np.random.default_rng(1)
    series = 1e4 + np.cumsum(random.normal(size=(4, 3_000)), axis=1)
    series[:, 0] = 0.0  # a first value that is unlike all others is the worst to be relative to
    online = OnlineCorrelation(4, [0, 1, 2], [1, 2, 3], 30)
    for values in series.T:
        online.add(values)
    assert np.abs(online.value() - best_correlation(series[:3], series[1:], max_delay=30)).max() < 1e-9


@pytest.mark.parametrize("constant", [0.0, 0.1, 1 / 3, 1e9])
def test_constant_series_give_exactly_zero(constant: float) -> None:
    online = OnlineCorrelation(2, [0, 1, 0], [1, 0, 0], 5)
    for value in np.random.default_rng(2).random(50):
        online.add([constant, value])
        assert online.value().tolist() == [0, 0, 0]


def test_before_the_first_delay_has_passed_there_is_nothing_to_say() -> None:
    online = OnlineCorrelation(2, [0], [1], 3)
    assert online.value().tolist() == [0]
    online.add([1.0, 2.0])
    assert online.value().tolist() == [0]


def test_it_does_not_grow_with_the_rounds() -> None:
    online = OnlineCorrelation(3, [0, 1], [1, 2], 4)

    def held() -> int:
        return sum(part.nbytes for part in vars(online).values() if isinstance(part, np.ndarray))

    before = held()
    for values in np.random.default_rng(3).random((500, 3)):
        online.add(values)
    assert held() == before


def test_values_added_are_not_changed() -> None:
    online, values = OnlineCorrelation(2, [0], [1], 3), np.array([1.0, 2.0])
    for _ in range(3):
        online.add(values)
    assert values.tolist() == [1, 2]


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="delays of 3 to 2"):
        OnlineCorrelation(2, [0], [1], 2, 3)
    with pytest.raises(ValueError, match="3 values for 2 series"):
        OnlineCorrelation(2, [0], [1]).add([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="2 series x, but 1 series y"):
        OnlineCorrelation(2, [0, 1], [1])


@pytest.mark.parametrize(("n_words", "delay"), [(50, 1), (3, 4), (0, 40)])
def test_similarities_equal_those_of_all_rounds_at_once(n_words: int, delay: int) -> None:
    contents = made_contents(random_texts(14))
    page, expert = candidates(contents)
    words = word_series(contents, n_words=n_words).words
    online = OnlineSimilarity(words, page, expert, delay)
    for text in contents.text.T:
        online.add(contents.counts, text)
    expected = cross_correlation(word_series(contents, n_words=n_words), page, expert, max_delay=delay)
    assert np.abs(online.value() - expected).max() < 1e-9


def test_each_round_may_come_with_its_own_texts() -> None:
    contents = made_contents(random_texts(15))
    page, expert = candidates(contents)
    series = word_series(contents)
    online = OnlineSimilarity(series.words, page, expert, 5)
    for text in contents.text.T:
        online.add(contents.counts[np.maximum(text, 0)], np.where(text >= 0, np.arange(len(text)), -1))
    assert np.abs(online.value() - cross_correlation(series, page, expert, max_delay=5)).max() < 1e-9


def test_pages_without_words_are_fine() -> None:
    contents = made_contents([[None, {}, {}], [{}, {"a": 1}, {}], [{"a": 1}, {"a": 1}, {"a": 1}]])
    page, expert = candidates(contents)
    online = OnlineSimilarity(word_series(contents).words, page, expert)
    for text in contents.text.T:
        online.add(contents.counts, text)
        assert np.isfinite(online.value()).all()


def test_no_pairs_are_fine() -> None:
    contents = made_contents(random_texts(16))
    online = OnlineSimilarity(word_series(contents).words, [], [])
    online.add(contents.counts, contents.text[:, 0])
    assert len(online.value()) == 0
