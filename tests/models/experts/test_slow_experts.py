"""The slow version of the experts (`slow_experts`) on cases worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import slow_experts as slow
from slow_experts import Pages, Setting

A, B, C = 0, 1, 2  # pages


def made(texts: list[list[dict[str, int] | None]], change: list[list[int]]) -> Pages:
    return slow.watched(texts, [[text is not None for text in of_page] for of_page in texts], change)


def changing(*change: list[int]) -> Pages:
    """Pages whose contents are random and whose changes are given."""
    content = np.random.default_rng(3).dirichlet(np.ones(6), (len(change), len(change[0])))
    return Pages(content, np.array(change, np.int8))


def two_pages() -> Pages:
    return made(
        [[{"a": 1}, {"a": 1, "b": 1}, {"b": 4}], [{"b": 1}, {"b": 2}, {"a": 3, "b": 1}]],
        [[-1, 1, 1], [-1, 0, 1]],
    )


def test_a_page_that_was_not_seen_shows_what_it_showed_when_it_was_last_seen() -> None:
    text = {"a": 1, "b": 3}
    pages = slow.watched([[None, text, {"b": 9}, None]], [[False, True, False, False]], [[-1, -1, -1, -1]])
    assert pages.content[0].tolist() == [[0, 0], [0.25, 0.75], [0.25, 0.75], [0.25, 0.75]]


def test_a_text_without_words_is_the_zero_vector() -> None:
    assert made([[{"a": 2}, {}]], [[-1, 1]]).content[0].tolist() == [[1], [0]]


def test_2d_features_are_frequency_words_magnitudes_steps_and_past_changes() -> None:
    half, one = math.sqrt(0.5), math.sqrt(2)
    expected = [1.0, 0.0, 1.0, half, one, half, 0.0, 1, 0]  # (b) against (a+b)/2 and (a); steps 1 → 0 and 0 → 0
    found = slow.features_2d(two_pages(), A, 2, Setting(window=2))
    assert found == pytest.approx(expected)


def test_a_longer_interval_compares_contents_that_lie_further_apart() -> None:
    steps = slow.features_2d(two_pages(), A, 2, Setting(window=1, interval=2))
    assert steps == pytest.approx([1, 0, 1, math.sqrt(0.5), math.sqrt(0.5), 1])


def test_the_change_frequency_is_the_mean_of_the_known_changes_in_the_window() -> None:
    pages = changing([-1, 1, -1, 0, 1])
    frequency = [slow.features_2d(pages, A, t, Setting(window=3))[0] for t in (0, 1, 2, 4)]
    assert frequency == [0, 0.5, 1, 0.5]  # at 1: no change at −1, unknown at 0, change at 1


def test_only_word_features_are_scaled() -> None:
    plain = slow.features_3d(two_pages(), B, A, 2, Setting())
    scaled = slow.features_3d(two_pages(), B, A, 2, Setting(word_scale=10))
    assert scaled == pytest.approx(plain * [1, 10, 10, 1, 1, 1, 1, 1, 1])


def test_3d_features_add_the_cosines_of_contents_and_of_changes() -> None:
    found = slow.features_3d(two_pages(), B, A, 2, Setting(window=2))
    # A: a, (a+b)/2, b. B: b, b, (3a+b)/4, so that B changed by 3(a − b)/4 since both earlier times.
    alike = [1 / math.sqrt(10), 1 / math.sqrt(2)]
    assert found[:9] == pytest.approx(slow.features_2d(two_pages(), B, 2, Setting(window=2)))
    assert found[9:] == pytest.approx([*alike, -math.sqrt(0.5), -math.sqrt(0.5), -1, -1])


def test_a_cosine_with_a_zero_vector_is_zero() -> None:
    still = slow.features_3d(two_pages(), B, A, 1, Setting())  # B did not change from 0 to 1
    assert still[-3:] == pytest.approx([1 / math.sqrt(2), 0, 0])


def test_the_page_itself_as_expert_has_its_2d_features_only() -> None:
    assert np.array_equal(
        slow.features_3d(two_pages(), A, A, 2, Setting()), slow.features_2d(two_pages(), A, 2, Setting())
    )


def test_training_examples_lie_in_the_window_and_have_a_known_label_by_then() -> None:
    pages = changing([-1, 1, 0, -1, 1, 0, 1, 0])
    assert slow.training_times(pages, A, 5, Setting(training_size=5)) == [1, 3, 4]  # 2 has the unknown label of 3
    assert slow.training_times(pages, A, 5, Setting(training_size=5, interval=2)) == [2, 3]
    assert list(slow.decision_times(pages, Setting(training_size=5))) == [4, 5, 6]
    assert len(slow.training_times(changing([0] * 60), A, 49, Setting())) == 49


def test_with_two_examples_the_svm_takes_the_side_of_the_middle_in_kernel_space() -> None:
    pages = changing(np.random.default_rng(5).integers(0, 2, 60).tolist())
    setting = Setting(training_size=3)
    found, n_models = slow.single_expert(pages, A, setting), 0
    x = np.array([slow.features_2d(pages, A, t, setting) for t in range(60)])
    kernel = (x @ x.T + 1) ** 3
    for t in slow.decision_times(pages, setting):
        older, newer = pages.change[A, t - 1], pages.change[A, t]
        yes, no = (t - 2, t - 1) if older else (t - 1, t - 2)
        side = kernel[t, yes] - kernel[t, no] - (kernel[yes, yes] - kernel[no, no]) / 2
        assert found[t] == (older if older == newer else side > 0)
        n_models += older != newer
    assert n_models > 20
    assert set(found[2:59]) == {0, 1}
    assert found[[0, 1, 59]].tolist() == [-1, -1, -1]


def test_a_single_class_is_repeated_and_without_examples_nothing_changes() -> None:
    pages = changing([-1, 1, 1, 1, 1, -1, -1, -1, -1, 1], [0, 1, 1, 0, 1, 0, 1, 1, 0, 1])
    setting = Setting(training_size=4)
    expected = [-1, -1, -1, 1, 1, 1, 1, 0, 0, -1]
    draws = {t: [[0], [0]] for t in range(10)}
    assert slow.single_expert(pages, A, setting).tolist() == expected
    assert slow.multiple_experts(pages, A, [B], [0.3], 1.0, setting).tolist() == expected
    assert slow.union(pages, A, [B], setting).tolist() == expected
    assert slow.bagging(pages, A, [B], draws, setting).tolist() == expected
    assert slow.boosting(pages, A, [B], 3, setting).tolist() == expected
    assert slow.baseline(pages, A, setting).tolist() == expected


def random_pages(n_pages: int = 3, n_times: int = 40) -> Pages:
    return changing(*np.random.default_rng(7).integers(0, 2, (n_pages, n_times)).tolist())


SHORT = Setting(training_size=12)


def test_the_heaviest_expert_outvotes_the_others_and_a_tie_is_no_change() -> None:
    pages = random_pages()
    own, b, c = (slow.expert_opinion(pages, A, expert, SHORT) for expert in (A, B, C))
    assert not np.array_equal(own, b)
    assert np.array_equal(slow.multiple_experts(pages, A, [B, C], [5, 1], 1, SHORT), b)
    assert np.array_equal(slow.multiple_experts(pages, A, [B, C], [1, 1], 3, SHORT), own)
    assert np.array_equal(slow.multiple_experts(pages, A, [B], [1], 1, SHORT), np.minimum(own, b))
    assert np.array_equal(slow.multiple_experts(pages, A, [B, C], [1, 1], 1, SHORT), np.median([own, b, c], axis=0))


def test_an_expert_learns_the_label_of_the_target() -> None:
    rng = np.random.default_rng(11)
    signal = rng.integers(0, 2, 60)
    target = np.r_[0, signal[:-1]]  # the target does tomorrow what the expert does today
    pages = Pages(np.full((2, 60, 2), 0.5), np.array([target, signal], np.int8))
    opinion = slow.expert_opinion(pages, A, B, Setting(training_size=20))
    assert slow.accuracy(pages, A, opinion, Setting(training_size=20)) == 1


def test_the_union_without_experts_is_the_single_expert() -> None:
    pages = random_pages()
    assert np.array_equal(slow.union(pages, A, [], SHORT), slow.single_expert(pages, A, SHORT))
    assert len(slow.features_union(pages, [B, C], A, 9, SHORT)) == 10 + 2 * 13
    assert not np.array_equal(slow.union(pages, A, [B, C], SHORT), slow.single_expert(pages, A, SHORT))


def test_bagging_with_every_example_once_is_the_union() -> None:
    pages = random_pages()
    once = {t: [list(range(11))] for t in slow.decision_times(pages, SHORT)}
    assert np.array_equal(slow.bagging(pages, A, [B], once, SHORT), slow.union(pages, A, [B], SHORT))


def test_bagging_takes_the_majority_and_a_tie_is_no_change() -> None:
    pages = changing([0, 1, 1, 0, 0, 1])
    setting = Setting(training_size=5)  # at 4 the labels of the examples are 1, 1, 0, 0
    for draws, expected in (([[0, 1]], 1), ([[0, 1], [2, 3]], 0), ([[0, 0], [1], [2]], 1), ([[0], [2], [3]], 0)):
        assert slow.bagging(pages, A, [], {4: draws}, setting)[4] == expected


class Scripted:
    """A learner with given answers, whatever its input; its rows are their own names."""

    def __init__(self, script: list[list[int]], given: list[list[float]]) -> None:
        self.script, self.given = script, given

    def fit(self, x: Any, y: Any, sample_weight: Any) -> Scripted:
        self.says = self.script[len(self.given)]
        self.given.append(sample_weight.tolist())
        return self

    def decision_function(self, x: Any) -> Any:
        return np.array([self.says[int(name)] for name in x[:, 0]])


def scripted(*script: list[int]) -> tuple[Setting, list[list[float]]]:
    given: list[list[float]] = []
    return replace(SHORT, learner=partial(Scripted, list(script), given)), given


ROWS, LABELS = np.arange(5.0)[:, None], np.array([1, 1, 0, 0], np.int8)  # row 4 is asked


def test_boosting_gives_errors_more_weight_and_models_a_say_by_their_error() -> None:
    # The first errs on row 1 (error 1/4), which then weighs 1/2, the others 1/6 each; the second errs on row 0 (1/6).
    setting, given = scripted([1, -1, -1, -1, 1], [-1, 1, -1, -1, -1], [-1, -1, 1, 1, 1])
    models = slow.boosted_models(ROWS[:4], LABELS, 3, setting)
    assert [alpha for alpha, _ in models] == pytest.approx([math.log(3) / 2, math.log(5) / 2])
    assert given[0] == [1, 1, 1, 1]
    assert given[1] == pytest.approx([2 / 3, 2, 2 / 3, 2 / 3])
    assert given[2] == pytest.approx([2, 1.2, 0.4, 0.4])  # then the third errs everywhere: left out
    again, _ = scripted([1, -1, -1, -1, 1], [-1, 1, -1, -1, -1])
    assert slow.boosted(ROWS[:4], LABELS, ROWS[4], 2, again) == 0  # ln 5 against ln 3


def test_boosting_stops_at_a_model_without_errors() -> None:
    setting, given = scripted([1, 1, -1, -1, 1])
    assert slow.boosted(ROWS[:4], LABELS, ROWS[4], 5, setting) == 1
    assert len(given) == 1
    later, given = scripted([1, -1, -1, -1, -1], [1, 1, -1, -1, 1])
    assert slow.boosted(ROWS[:4], LABELS, ROWS[4], 5, later) == 1
    assert len(given) == 2
    [_, (alpha, _)] = slow.boosted_models(ROWS[:4], LABELS, 5, scripted([1, -1, -1, -1, -1], [1, 1, -1, -1, 1])[0])
    assert alpha == pytest.approx(math.log(1e10) / 2)


def test_boosting_whose_first_model_is_no_better_than_a_coin_predicts_no_change() -> None:
    setting, given = scripted([1, 1, 1, 1, 1])
    assert slow.boosted(ROWS[:4], LABELS, ROWS[4], 5, setting) == 0
    assert len(given) == 1


def test_boosting_once_with_an_svm_is_the_union() -> None:
    pages = random_pages()
    sharp = replace(SHORT, learner=partial(slow.svm, C=1e4))
    assert np.array_equal(slow.boosting(pages, A, [B], 1, sharp), slow.union(pages, A, [B], sharp))


def test_the_coin_is_judged_by_what_it_gets_right_on_average() -> None:
    pages = changing([-1, 1, 1, 0, 1, -1, 0])
    setting = Setting(training_size=4)
    assert slow.change_frequency(pages, A, setting)[3:6] == pytest.approx([2 / 3, 2 / 3, 1 / 2])
    assert slow.baseline(pages, A, setting).tolist() == [-1, -1, -1, 1, 1, 0, -1]
    assert slow.judged_times(pages, A, setting) == [3, 5]  # labels 1, unknown, 0
    assert slow.coin_accuracy(pages, A, setting) == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert slow.accuracy(pages, A, slow.baseline(pages, A, setting), setting) == 1


def test_pages_count_equally_and_those_without_a_judged_window_not_at_all() -> None:
    assert slow.overall([1.0, 0.5, math.nan]) == 0.75
    short = changing([0, 1, 0])
    assert math.isnan(slow.accuracy(short, A, slow.single_expert(short, A, Setting()), Setting()))


def test_the_filter_keeps_pages_that_change_their_behaviour_in_three_of_ten_pairs() -> None:
    assert slow.passes_filter([0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1])  # 3 of 10
    assert not slow.passes_filter([0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0])  # 2 of 10
    assert not slow.passes_filter([1] * 20)
    assert slow.passes_filter([-1, 0, 1, -1, 0, 0])  # 1 of 2: pairs with an unknown do not count
    assert not slow.passes_filter([0, -1, 1, -1])  # no pair
