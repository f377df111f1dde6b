"""The forecast: what bends its curve and what must not, and when it may use trees."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.models.forecast import ForecastCounts

UNKNOWN = [np.nan, np.nan]


def past_and_counts(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Anchors (a rate and a mean) and a column of noise; counts are Poisson with that mean."""
    rng = np.random.default_rng(seed)
    mean = rng.gamma(0.5, 2.0, n)
    x = np.column_stack([1 - np.exp(-mean), np.maximum(mean, 1e-3), rng.normal(size=n)])
    return x, rng.poisson(mean)


def curve_only(**more: int) -> ForecastCounts:
    """Trees of no use, so that what is seen is the curve."""
    return ForecastCounts(n_anchors=2, max_iter=1, learning_rate=1e-9, **more)


def test_rows_without_anchors_do_not_bend_the_curve() -> None:
    x, y = past_and_counts(2000)
    lively = np.column_stack([np.full((1000, 2), np.nan), np.zeros(1000)])
    alone = curve_only().fit(x, y)
    beside = curve_only().fit(np.vstack([lively, x]), np.r_[np.full(1000, 40), y])
    asked = np.array([[0.02, 0.02, 0], [0.5, 1.0, 0], [0.99, 8.0, 0]])
    np.testing.assert_allclose(beside.predict_positive(asked), alone.predict_positive(asked), rtol=1e-6)
    np.testing.assert_allclose(beside.predict(asked), alone.predict(asked), rtol=1e-6)


def test_where_anchors_are_not_known_the_answer_is_that_of_such_rows() -> None:
    x, y = past_and_counts(2000)
    without = np.column_stack([np.full((400, 2), np.nan), np.zeros(400)])
    model = curve_only().fit(np.vstack([without, x]), np.r_[np.tile([0, 0, 0, 4], 100), y])
    distribution = model.predict_distribution(np.array([[*UNKNOWN, 0.0]]))
    assert distribution.p_positive[0] == pytest.approx(101 / 402)
    assert distribution.mean[0] == pytest.approx(4 * 101 / 402)


@pytest.mark.parametrize("n", [60, 90, 98])
def test_few_rows_of_pure_noise_grow_no_trees(n: int) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y = rng.poisson(1.0, n)
        model = ForecastCounts().fit(rng.random((n, 30)), y)
        assert [share for _, _, share in model.chosen_] == [0.0, 0.0]
        distribution = model.predict_distribution(rng.random((3, 30)))
        assert distribution.p_positive == pytest.approx([((y > 0).sum() + 1) / (n + 2)] * 3)


def test_without_any_past_to_learn_from_the_anchors_are_the_answer() -> None:
    """Two rounds: every row that was learnt from was seen before there was a past, every page asked about has one."""
    rng = np.random.default_rng(0)
    x = np.column_stack([np.full((60, 2), np.nan), rng.normal(size=60)])
    model = ForecastCounts(n_anchors=2).fit(x, np.tile([0, 0, 9], 20))
    distribution = model.predict_distribution(np.array([[0.25, 0.5, 0.0], [0.75, 9.0, 0.0], [1.0, 3.0, 0.0]]))
    assert distribution.p_positive == pytest.approx([0.25, 0.75, 1 - 1 / 62])
    assert distribution.mean[:2] == pytest.approx([0.5, 9.0])
