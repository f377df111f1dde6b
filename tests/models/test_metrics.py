import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from recrawl.models.metrics import (
    calibration,
    classification_scores,
    expected_calibration_error,
    log_loss,
    mean_log_likelihood,
    precision_at,
    regression_scores,
    spearman,
    spearman_matrix,
)

few_values = st.integers(0, 4).map(float)
pairs = st.lists(st.tuples(few_values, few_values), min_size=1, max_size=40)
yes_no = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=40)
chances = st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1)), min_size=1, max_size=40)


@pytest.fixture(autouse=True)
def every_warning_is_an_error() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def columns(rows: list[tuple[Any, Any]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows])


def curve_by_counting(truth: np.ndarray, predicted: np.ndarray, n_points: int) -> list[float]:
    """Precision@k% of values without ties, from sets of pages."""
    n = len(truth)
    best, guessed = (sorted(range(n), key=lambda page: -values[page]) for values in (truth, predicted))
    tops = [max(1, round(point / n_points * n)) for point in range(1, n_points + 1)]
    curve = [len({*best[:top]} & {*guessed[:top]}) / top for top in tops]
    return [curve[0], *curve]


@given(yes_no)
def test_classification_scores_are_their_formulas(rows: list[tuple[int, int]]) -> None:
    truth, predicted = columns(rows)
    both, n_true, n_said = (truth & predicted).sum(), truth.sum(), predicted.sum()
    recalls = [np.mean(predicted[truth == kind] == kind) for kind in np.unique(truth)]
    assert classification_scores(truth, predicted) == pytest.approx(
        {
            "precision": both / n_said if n_said else 0.0,
            "recall": both / n_true if n_true else 0.0,
            "f1": 2 * both / (n_said + n_true) if n_said + n_true else 0.0,
            "balanced_accuracy": np.mean(recalls),
        },
        rel=1e-12,
    )


def test_a_model_that_never_says_yes_scores_zero_and_is_half_balanced() -> None:
    scores = classification_scores([1, 0, 0], [0, 0, 0])
    assert scores == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "balanced_accuracy": 0.5}


def test_regression_scores_are_their_formulas() -> None:
    rng = np.random.default_rng(0)
    truth = rng.poisson(2, 301)
    predicted = truth + rng.normal(size=301)
    errors = np.abs(truth - predicted)
    assert regression_scores(truth, predicted) == pytest.approx(
        {
            "r2": 1 - (errors**2).sum() / ((truth - truth.mean()) ** 2).sum(),
            "mae": errors.mean(),
            "medae": sorted(errors)[150],
        },
        rel=1e-12,
    )


def test_absurd_values_have_errors_but_no_r2() -> None:
    scores = regression_scores([1e200, 2e200, 3e200], [1e200, 2e200, 5e200])
    assert math.isnan(scores["r2"]), "the squares are not finite"
    assert (scores["mae"], scores["medae"]) == (pytest.approx(2e200 / 3), 0.0)


def test_r2_of_a_constant_truth_is_undefined_but_its_errors_are_not() -> None:
    scores = regression_scores([0.1] * 3, [0.1, 0.1, 0.4])
    assert math.isnan(scores["r2"])
    assert scores["mae"] == pytest.approx(0.1)


@given(pairs)
def test_spearman_is_the_correlation_of_ranks_with_ties_sharing_theirs(rows: list[tuple[float, float]]) -> None:
    truth, predicted = columns(rows)
    if len({*truth}) > 1 and len({*predicted}) > 1:
        ranks = [[(values < v).sum() + ((values == v).sum() + 1) / 2 for v in values] for values in (truth, predicted)]
        a, b = (np.array(of_side) - (len(rows) + 1) / 2 for of_side in ranks)
        assert spearman(truth, predicted) == pytest.approx((a @ b) / np.sqrt((a @ a) * (b @ b)), abs=1e-12)
    else:
        assert math.isnan(spearman(truth, predicted))


@given(st.permutations(range(37)), st.integers(1, 60))
def test_precision_at_every_share_is_what_counting_gives(predicted: list[int], n_points: int) -> None:
    truth = np.arange(37.0)
    curve = precision_at(truth, predicted, n_points=n_points)
    assert curve.precision == pytest.approx(curve_by_counting(truth, np.array(predicted), n_points))
    assert curve.share == pytest.approx(np.arange(n_points + 1) / n_points)


def test_ties_on_both_sides_are_resolved_at_random() -> None:
    truth, predicted = np.array([1.0, 0, 0, 0]), np.array([0.0, 0, 0, 1])
    curve = precision_at(truth, predicted, n_points=4, n_draws=20_000)
    # Top 2: page 0 and one of 1 to 3 against page 3 and one of 0 to 2; page 0 is in both with 1/3, page 3 too, 1 or 2 with 2/9.
    # Top 3: one of 1 to 3 is missing in truth, one of 0 to 2 in the prediction; the same one with 2/9.
    assert curve.precision == pytest.approx([0, 0, 4 / 9, 20 / 27, 1], abs=0.01)


def test_a_perfect_ranking_has_area_one_and_a_random_or_constant_one_about_a_half() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(20_000)
    assert precision_at(truth, truth * 2).area == pytest.approx(1)
    assert precision_at(truth, rng.random(20_000)).area == pytest.approx(0.5, abs=0.01)
    assert precision_at(truth, np.zeros(20_000)).area == pytest.approx(0.5, abs=0.01)
    assert precision_at(np.zeros(20_000), truth).area == pytest.approx(0.5, abs=0.01)
    assert precision_at(truth, -truth).area == pytest.approx(0.307, abs=0.01)  # 2 - 1/k above a half: 1 - ln 2


def test_the_same_seed_gives_the_same_curve() -> None:
    truth, predicted = np.repeat([0, 1], 50), np.tile([0, 1], 50)
    first, again, other = (precision_at(truth, predicted, seed=seed).precision.tolist() for seed in (1, 1, 2))
    assert first == again != other


@given(chances)
def test_log_loss_is_its_formula(rows: list[tuple[int, float]]) -> None:
    truth, chance = columns(rows)
    clipped = np.clip(chance, 1e-15, 1 - 1e-15)
    expected = -np.mean(np.where(truth == 1, np.log(clipped), np.log1p(-clipped)))
    assert log_loss(truth, chance) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_one_sure_mistake_has_a_finite_log_loss() -> None:
    assert log_loss([1], [0]) == pytest.approx(-math.log(1e-15))


def test_calibration_bins_are_those_of_scikit_learn_where_no_probabilities_are_equal() -> None:
    from sklearn.calibration import calibration_curve

    rng = np.random.default_rng(0)
    chance = rng.random(1000) ** 2
    truth = rng.random(1000) < chance
    observed, predicted = calibration_curve(truth, chance, n_bins=10, strategy="quantile")
    bins = calibration(truth, chance)
    assert [bin.count for bin in bins] == [100] * 10
    assert [bin.observed for bin in bins] == pytest.approx(observed.tolist(), abs=0.011)  # edges interpolate there
    assert [bin.predicted for bin in bins] == pytest.approx(predicted.tolist(), abs=0.011)
    error = np.mean([abs(bin.predicted - bin.observed) for bin in bins])
    assert expected_calibration_error(truth, chance) == pytest.approx(error)


@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from([0.0, 0.1, 0.5, 1.0])), min_size=1, max_size=60))
def test_pages_of_equal_probability_share_a_bin_and_no_page_is_lost(rows: list[tuple[int, float]]) -> None:
    truth, chance = columns(rows)
    bins = calibration(truth, chance, n_bins=7)
    assert sum(bin.count for bin in bins) == len(rows)
    assert sum(bin.count * bin.observed for bin in bins) == pytest.approx(truth.sum())
    assert len(bins) <= min(7, len({*chance}))
    means = [bin.predicted for bin in bins]
    assert means == sorted(means)


def test_without_pages_or_with_a_nan_the_answer_is_nan() -> None:
    for truth, predicted in (([], []), ([0.0, math.nan], [0.0, 1.0]), ([0.0, 1.0], [math.nan, 1.0])):
        scores = classification_scores(truth, predicted) | regression_scores(truth, predicted)
        assert all(math.isnan(score) for score in scores.values())
        for score in (spearman, log_loss, expected_calibration_error):
            assert math.isnan(score(truth, predicted))
        assert calibration(truth, predicted) == []
        curve = precision_at(truth, predicted)
        assert math.isnan(curve.area)
        assert np.isnan(curve.precision).all()


def test_a_single_page_and_infinite_values_raise_no_warning() -> None:
    assert math.isnan(spearman([1], [1]))
    assert math.isnan(regression_scores([1], [2])["r2"])
    assert precision_at([1], [2]).area == 1
    assert math.isnan(regression_scores([1, 2], [math.inf, 2])["mae"])
    assert math.isnan(regression_scores([1e300, -1e300], [1, 2])["r2"])
    assert spearman([1, 2, 3], [1, 2, math.inf]) == 1
    assert precision_at([1, 2, 3], [-math.inf, 2, math.inf]).area == 1


def test_columns_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="2 true values, but 1 predicted"):
        spearman([1, 2], [1])


def test_the_mean_log_likelihood_is_that_of_the_values_that_came() -> None:
    class Normal:
        def log_likelihood(self, y: np.ndarray) -> np.ndarray:
            return np.asarray(stats.norm.logpdf(y))

    assert mean_log_likelihood(Normal(), [0, 0]) == pytest.approx(-0.5 * math.log(2 * math.pi))
    assert math.isnan(mean_log_likelihood(Normal(), []))


@pytest.mark.parametrize("seed", range(5))
def test_the_matrix_of_spearman_compares_every_two_columns_where_both_are_known(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 6, (60, 8)).astype(float)
    table[:, 7] = 3  # does not vary
    for column in (1, 2, 5):
        table[rng.random(60) < 0.4, column] = math.nan
    table[:, 2] = np.where(np.isnan(table[:, 1]), math.nan, table[:, 2])
    table[:, 6] = np.where(np.isnan(table[:, 5]), 1, math.nan)  # never known where the one before it is
    found = spearman_matrix(table)
    for i in range(8):
        for j in range(8):
            both = ~np.isnan(table[:, i]) & ~np.isnan(table[:, j])
            assert found[i, j] == pytest.approx(spearman(table[both, i], table[both, j]), nan_ok=True)
