"""Cross-correlation against numpy's and against the formula word by word."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from made_contents import dynamics, made_contents, random_texts, slow_weights
from recrawl.models.experts.correlation import cross_correlation
from recrawl.models.experts.series import candidates, most_similar, word_series
from series_by_row import best_correlation

values = st.lists(st.integers(-50, 50).map(lambda n: n / 8), min_size=1, max_size=30)


def slow_correlation(x: list[float], y: list[float], first: int = 1, last: int | None = None) -> float:
    n = len(x)
    if len(set(x)) == 1 or len(set(y)) == 1:
        return 0.0
    mean_x, mean_y = sum(x) / n, sum(y) / n
    scale = n * float(np.std(x)) * float(np.std(y))
    delays = range(first, n if last is None else min(n - 1, last) + 1)
    sums = (sum((x[i] - mean_x) * (y[i - d] - mean_y) for i in range(d, n)) for d in delays)
    return max((total / scale for total in sums), default=0.0)


@given(values, st.randoms(use_true_random=False), st.integers(0, 4), st.none() | st.integers(4, 40))
def test_it_is_the_formula(x: list[float], random: object, first: int, last: int | None) -> None:
    y = [value + random.choice([0, 0, 1, 2.5]) for value in random.sample(x, len(x))]  # type: ignore[attr-defined]
    found = best_correlation([x], [y], first, last)
    assert found[0] == pytest.approx(slow_correlation(x, y, first, last), abs=1e-9)


def test_it_is_the_largest_of_numpys_at_positive_delays() -> None:
    x, y = np.random.default_rng(0).random((2, 100, 57))

    def numpys(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
        sums = np.correlate(a - a.mean(), b - b.mean(), "full") / (len(a) * a.std() * b.std())
        return float(sums[len(a) :].max())  # sums[N - 1] is that of no delay

    expected = [numpys(a, b) for a, b in zip(x, y, strict=True)]
    assert best_correlation(x, y) == pytest.approx(expected, abs=1e-12)


def test_the_delay_of_an_expert_that_leads_is_found() -> None:
    random = np.random.default_rng(1)
    y = random.random(200)
    x = np.roll(y, 5)
    assert best_correlation(x, y)[0] > 0.9
    assert best_correlation(x, y, max_delay=4)[0] < 0.3
    assert best_correlation(y, x)[0] < 0.3  # the other way round it follows, and is no use


def test_without_delay_a_series_equals_itself() -> None:
    x = np.random.default_rng(2).random((3, 40))
    assert best_correlation(x, x, first_delay=0) == pytest.approx(1)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1 / 3, 1e9])
def test_constant_series_give_zero(constant: float) -> None:
    x = np.random.default_rng(3).random(37)
    assert best_correlation(np.full(37, constant), x)[0] == 0
    assert best_correlation(x, np.full(37, constant))[0] == 0
    assert best_correlation(np.full(37, constant), np.full(37, constant), first_delay=0)[0] == 0


def test_short_series_have_no_delays() -> None:
    assert best_correlation([[1.0]], [[2.0]]).tolist() == [0]
    assert best_correlation([[1.0, 2.0, 4.0]], [[2.0, 4.0, 1.0]], first_delay=3).tolist() == [0]
    assert best_correlation(np.empty((2, 0)), np.empty((2, 0))).tolist() == [0, 0]
    assert best_correlation(np.empty((0, 5)), np.empty((0, 5))).tolist() == []


def test_the_correlation_may_be_negative() -> None:
    assert best_correlation([[0.0, 1.0]], [[0.0, 1.0]])[0] == pytest.approx(-0.5)  # 0.5 · -0.5 / (2 · 0.5 · 0.5)


@pytest.mark.parametrize(("first", "last", "named"), [(-1, None, "delays of -1 rounds"), (3, 2, "delays of 3 to 2")])
def test_bad_delays_are_named(first: int, last: int | None, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        best_correlation([[1.0, 2.0]], [[1.0, 2.0]], first, last)


def test_series_of_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="shapes"):
        best_correlation([[1.0, 2.0]], [[1.0]])


@pytest.mark.parametrize(("n_words", "first", "last"), [(50, 1, None), (3, 1, 5), (0, 0, None)])
def test_a_similarity_is_the_weighted_sum_over_words(n_words: int, first: int, last: int | None) -> None:
    texts = random_texts(8)
    contents = made_contents(texts)
    page, expert = candidates(contents)
    found = cross_correlation(word_series(contents, n_words=n_words), page, expert, first, last)
    for p, e, similarity in zip(page, expert, found, strict=True):
        expected = sum(
            weight * slow_correlation(dynamics(texts, p, word), dynamics(texts, e, word), first, last)
            for word, weight in slow_weights(texts, p, n_words).items()
        )
        assert similarity == pytest.approx(expected, abs=1e-9)


def test_the_order_of_the_pairs_does_not_matter() -> None:
    contents = made_contents(random_texts(9))
    series, (page, expert) = word_series(contents), candidates(contents)
    order = np.random.default_rng(0).permutation(len(page))
    shuffled = cross_correlation(series, page[order], expert[order])
    assert np.array_equal(shuffled, cross_correlation(series, page, expert)[order])


def test_one_round_says_nothing() -> None:
    contents = made_contents([[{"a": 1, "b": 1}], [{"a": 1}]])
    assert cross_correlation(word_series(contents), [0, 1], [1, 0]).tolist() == [0, 0]


def test_pages_that_were_never_known_at_the_same_time_are_compared_by_what_was_carried_forward() -> None:
    early = [{"a": 1, "b": n} for n in (1, 2, 3)] + [None] * 3
    late = [None] * 3 + [{"a": 2, "b": n} for n in (1, 2, 3)]
    found = cross_correlation(word_series(made_contents([early, late])), [0, 1], [1, 0])
    assert np.isfinite(found).all()
    assert found[1] > 0.3  # what the early page had first, the late one has three rounds later


def test_pages_that_move_together_are_chosen_before_pages_with_the_same_words() -> None:
    random = np.random.default_rng(10)
    a, b = random.integers(1, 9, (2, 60))
    steps = [[{"a": int(x), "b": int(y), "c": 10} for x, y in zip(a, b, strict=True)]]
    leads = [{"a": int(x), "b": int(y), "c": 10} for x, y in zip(np.roll(a, -2), np.roll(b, -2), strict=True)]
    same_words = [dict(steps[0][-1])] * 60
    contents = made_contents([*steps, same_words, leads])
    page, expert = candidates(contents)
    similarity = cross_correlation(word_series(contents), page, expert)
    neighbour, weight = most_similar(page, expert, similarity, 2)
    assert neighbour[0].tolist() == [2, 1]
    assert weight[0, 0] > 0.8
    assert weight[0, 1] == 0


def test_equal_experts_are_equally_similar() -> None:
    texts = random_texts(11, n_pages=2, n_rounds=50)
    contents = made_contents([texts[0], *[texts[1]] * 7])
    found = cross_correlation(word_series(contents), np.zeros(7, int), np.arange(1, 8))
    assert len(set(found.tolist())) == 1
