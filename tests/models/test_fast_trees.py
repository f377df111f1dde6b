from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import skops.io
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.utils.estimator_checks import check_estimator

from recrawl.models import saved
from recrawl.models.fast_trees import FastTreesClassifier, FastTreesRegressor
from recrawl.models.learners import named


def problem(name: str, seed: int = 0, n: int = 2_400) -> tuple[Any, Any]:
    """Made-up rows whose answer depends on some of their features: smooth, skewed, whole numbers with ties, or with gaps."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 7))
    if name == "skewed":
        x = np.exp(2 * x)
    if name == "ties":
        x = np.clip(np.round(x), -1, 2)
    signal = 2 * np.tanh(x[:, 0]) + np.sign(x[:, 1]) * np.minimum(np.abs(x[:, 2]), 2) + rng.normal(0, 0.5, n)
    if name == "gaps":
        x[rng.random(x.shape) < 0.15] = np.nan
    return x.astype(np.float32), signal


PROBLEMS = ("smooth", "skewed", "ties", "gaps")


def halves(x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    half = len(x) // 2
    return x[:half], y[:half], x[half:], y[half:]


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_values_are_predicted_as_well_as_by_scikit_learn(name: str, seed: int) -> None:
    x, y, unseen, truth = halves(*problem(name, seed))
    ours, theirs = (
        r2_score(truth, kind(150, min_samples_leaf=2, random_state=seed).fit(x, y).predict(unseen))
        for kind in (FastTreesRegressor, ExtraTreesRegressor)
    )
    assert ours > 0.3
    assert ours == pytest.approx(theirs, abs=0.012)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_classes_are_predicted_as_well_as_by_scikit_learn(name: str, weighted: bool) -> None:
    x, y, unseen, truth = halves(*problem(name))
    weights = np.random.default_rng(1).integers(0, 3, len(x)) if weighted else None
    chances = [
        kind(200, min_samples_leaf=3, class_weight="balanced", random_state=0)
        .fit(x, y > 1.5, sample_weight=weights)
        .predict_proba(unseen)[:, 1]
        for kind in (FastTreesClassifier, ExtraTreesClassifier)
    ]
    areas, losses = ([score(truth > 1.5, c) for c in chances] for score in (roc_auc_score, log_loss))
    assert areas[0] == pytest.approx(areas[1], abs=0.01)
    assert losses[0] == pytest.approx(losses[1], abs=0.025)


@pytest.mark.parametrize("share", [1, 2, 7, 0.5])
def test_trees_are_as_large_as_those_of_scikit_learn_whatever_is_tried_for_a_split(share: float) -> None:
    x, y = problem("ties")
    settings: dict[str, Any] = {"max_features": share, "min_samples_leaf": 4, "random_state": 0}
    ours, theirs = FastTreesRegressor(60, **settings).fit(x, y), ExtraTreesRegressor(60, **settings).fit(x, y)
    nodes = np.mean([tree.tree_.node_count for tree in theirs.estimators_])
    assert np.diff(ours.offsets_).mean() == pytest.approx(nodes, rel=0.03)


def test_many_columns_of_which_few_are_tried_are_read_one_by_one_to_the_same_effect() -> None:
    x, y, unseen, truth = halves(*problem("gaps"))
    x, unseen = (np.hstack([part, part**2, *[part[:, [0]]] * 70]) for part in (x, unseen))
    ours, theirs = (
        r2_score(truth, kind(100, max_features="sqrt", random_state=0).fit(x, y).predict(unseen))
        for kind in (FastTreesRegressor, ExtraTreesRegressor)
    )
    assert ours == pytest.approx(theirs, abs=0.015)


def test_importances_are_those_of_scikit_learn() -> None:
    x, y = problem("smooth")
    ours, theirs = (
        kind(150, min_samples_leaf=2, random_state=0).fit(x, y).feature_importances_
        for kind in (FastTreesRegressor, ExtraTreesRegressor)
    )
    np.testing.assert_allclose(ours, theirs, atol=0.015)
    assert ours.sum() == pytest.approx(1)


def test_every_leaf_is_the_mean_of_its_rows_and_has_enough_of_them() -> None:
    x, y = problem("gaps", n=500)
    weight = np.random.default_rng(2).random(500)
    model = FastTreesRegressor(1, min_samples_leaf=5, random_state=0).fit(x, y, weight)
    leaf = np.array([leaf_of(model, row) for row in x])
    for at in np.unique(leaf):
        inside = leaf == at
        assert inside.sum() >= 5
        assert model.value_[at] == pytest.approx(np.average(y[inside], weights=weight[inside]))
    np.testing.assert_array_equal(model.predict(x), model.value_[leaf])
    assert (model.split_ < 0).sum() == len(np.unique(leaf)), "no leaf is empty"


def leaf_of(model: Any, row: Any) -> int:
    """The leaf of a row in the first tree, by the plain meaning of its arrays."""
    at = 0
    while model.split_[at] >= 0:
        feature, missing_left = divmod(int(model.split_[at]), 2)
        goes_left = bool(missing_left) if np.isnan(row[feature]) else row[feature] <= model.value_[at]
        at = at + 1 if goes_left else int(model.right_[at])
    return at


def test_a_constant_target_is_a_single_leaf() -> None:
    model = FastTreesRegressor(3, random_state=0).fit(problem("smooth", n=50)[0], np.full(50, 0.1))
    assert model.predict(np.zeros((2, 7))).tolist() == pytest.approx([0.1, 0.1])
    assert len(model.split_) == 3
    assert model.feature_importances_.tolist() == [0.0] * 7


def test_constant_features_are_never_used() -> None:
    x, y = problem("smooth", n=300)
    x[:, [1, 4]] = 3.0
    x[:, 5] = np.nan
    model = FastTreesRegressor(20, max_features=1, random_state=0).fit(x, y)
    assert set(model.split_[model.split_ >= 0] // 2) == {0, 2, 3, 6}
    alone = FastTreesRegressor(5, random_state=0).fit(x[:, [1]], y)
    assert alone.predict(x[:1, [1]])[0] == pytest.approx(y.mean())


def test_one_feature_with_two_values_gives_the_mean_of_each() -> None:
    x, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([1.0, 3.0, 5.0, 9.0])
    model = FastTreesRegressor(4, random_state=0).fit(x, y)
    assert model.predict([[0.0], [0.4], [1.0]])[[0, 2]].tolist() == [2.0, 7.0]
    assert FastTreesRegressor(4, min_samples_leaf=3, random_state=0).fit(x, y).predict(x).tolist() == [4.5] * 4


def test_thresholds_are_uniform_between_the_smallest_and_the_largest_value() -> None:
    x = np.array([[0.0], [1.0], [4.0]])
    model = FastTreesRegressor(4_000, min_samples_leaf=1, random_state=0).fit(x, [0.0, 5.0, 9.0])
    roots = model.value_[model.offsets_[:-1]]
    assert np.quantile(roots, [0.25, 0.5, 0.75]).tolist() == pytest.approx([1, 2, 3], abs=0.15)


def test_missing_values_tell_when_they_are_all_there_is_to_tell() -> None:
    x = np.where(np.arange(40) % 2, np.nan, 7.0).reshape(-1, 1)
    model = FastTreesRegressor(40, random_state=0).fit(x, np.arange(40) % 2)
    theirs = ExtraTreesRegressor(40, random_state=0).fit(x, np.arange(40) % 2)
    ask = [[np.nan], [7.0]]
    np.testing.assert_allclose(model.predict(ask), theirs.predict(ask), atol=0.2)
    assert model.predict(ask)[0] > 0.6 > 0.4 > model.predict(ask)[1]


def test_a_value_missing_only_later_goes_where_most_rows_went() -> None:
    x, y = np.arange(10.0).reshape(-1, 1), np.arange(10) > 7
    model = FastTreesRegressor(1, min_samples_leaf=2, random_state=1).fit(x, y)
    at = 0
    while model.split_[at] >= 0:
        inside = [row for row in x if passes(model, row, at)]
        n_left = sum(row[0] <= model.value_[at] for row in inside)
        assert model.split_[at] % 2 == (n_left > len(inside) - n_left)
        at += 1


def passes(model: Any, row: Any, node: int) -> bool:
    at = 0
    while at != node and model.split_[at] >= 0:
        at = at + 1 if row[0] <= model.value_[at] else int(model.right_[at])
    return at == node


@pytest.mark.parametrize("kind", [FastTreesRegressor, FastTreesClassifier])
def test_threads_change_nothing_and_the_seed_everything(kind: Any) -> None:
    x, y = problem("gaps", n=400)
    one, two, other = (kind(9, random_state=seed, n_jobs=jobs).fit(x, y > 0) for seed, jobs in ((4, 1), (4, 2), (5, 2)))
    for name in ("split_", "right_", "value_", "offsets_", "gains_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(one.predict(x), two.predict(x))
    assert not np.array_equal(one.value_, other.value_)
    np.testing.assert_array_equal(clone(one).fit(x, y > 0).value_, one.value_)


def test_rows_without_weight_count_as_if_they_were_absent() -> None:
    x, y = problem("smooth", n=200)
    weight = (np.arange(200) % 3 > 0).astype(float)
    with_zeros = FastTreesRegressor(5, random_state=0).fit(x, y, weight)
    without = FastTreesRegressor(5, random_state=0).fit(x[weight > 0], y[weight > 0], weight[weight > 0])
    np.testing.assert_array_equal(with_zeros.predict(x), without.predict(x))
    with pytest.raises(ValueError, match="every row has the weight zero"):
        FastTreesClassifier(class_weight={False: 0.0, True: 0.0}).fit(x, y > 0)


def test_weights_of_classes_are_weights_of_their_rows() -> None:
    x, y = problem("smooth", n=300)
    label = y > 1
    by_class = FastTreesClassifier(8, class_weight={False: 1.0, True: 4.0}, random_state=0).fit(x, label)
    by_row = FastTreesClassifier(8, random_state=0).fit(x, label, np.where(label, 4.0, 1.0))
    np.testing.assert_allclose(by_class.predict_proba(x), by_row.predict_proba(x))


@pytest.mark.parametrize("kind", ["presence", "number"])
def test_a_saved_forest_predicts_the_same(kind: str) -> None:
    x, y = problem("gaps", n=300)
    model = named("extra-trees").make(kind, n_estimators=6).fit(x, np.maximum(y, 0).round())
    again = skops.io.loads(skops.io.dumps(model), trusted=sorted(saved.TRUSTED))
    np.testing.assert_array_equal(again.predict(x), model.predict(x))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_features": "all"}, "max_features is 'all'"),
        ({"max_features": 1.5}, "max_features is 1.5"),
        ({"min_samples_leaf": 0}, "min_samples_leaf is 0"),
        ({"n_estimators": 0}, "n_estimators is 0"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_value(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FastTreesRegressor(**settings).fit(*problem("smooth", n=20))


@pytest.mark.parametrize("model", [FastTreesRegressor(8, random_state=0), FastTreesClassifier(8, random_state=0)])
def test_the_conventions_of_scikit_learn_are_kept(model: Any) -> None:
    heaviest = (
        "leaves are pure, so that weights of classes do not matter; scikit-learn's forests are given a minimum weight"
    )
    check_estimator(model, expected_failed_checks={"check_class_weight_classifiers": heaviest})
