import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

from recrawl.models.forests import OrderedTreesClassifier, OrderedTreesRegressor, in_order


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(0)
    x = chance.integers(0, 4, (400, 6)).astype(np.float32)
    return x, x[:, 0] * 2 + x[:, 1] + chance.normal(0, 0.5, 400)


def test_rows_weights_and_answers_stay_together(rows: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = rows
    ordered, answers, weights = in_order(x, y, np.arange(400))
    np.testing.assert_array_equal(ordered, x[weights])
    np.testing.assert_array_equal(answers, y[weights])
    assert ordered.tolist() == sorted(x.tolist())


def test_the_order_of_the_rows_does_not_matter(rows: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = rows
    shuffled = np.random.default_rng(1).permutation(400)
    for model, answers in (
        (OrderedTreesRegressor(30, random_state=0), y),
        (OrderedTreesClassifier(30, random_state=0), (y > 4).astype(int)),
    ):
        one, other = clone(model).fit(x, answers), clone(model).fit(x[shuffled], answers[shuffled])
        method = "predict_proba" if hasattr(one, "predict_proba") else "predict"
        np.testing.assert_allclose(getattr(one, method)(x), getattr(other, method)(x), atol=0.12)


def test_they_predict_as_well_as_those_of_scikit_learn(rows: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = rows
    weights = np.linspace(0.5, 2, 300)
    for ours, theirs, answers in (
        (OrderedTreesRegressor, ExtraTreesRegressor, y),
        (OrderedTreesClassifier, ExtraTreesClassifier, (y > 4).astype(int)),
    ):
        fitted = [
            kind(200, min_samples_leaf=2, random_state=0).fit(x[:300], answers[:300], weights)
            for kind in (ours, theirs)
        ]
        scores = [model.score(x[300:], answers[300:]) for model in fitted]
        assert scores[0] == pytest.approx(scores[1], abs=0.02)
