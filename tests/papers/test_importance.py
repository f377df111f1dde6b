import math

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.inspection import permutation_importance as reference
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from recrawl.papers.outlinks.importance import correlated_groups, permutation_importance

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
TRUTH = 3 * X[:, 0] + X[:, 1] + 0.1 * RNG.normal(size=400)
MODEL = LinearRegression().fit(X, TRUTH)


def test_importances_are_distributed_as_those_of_scikit_learn() -> None:
    found = {i.name: i for i in permutation_importance(MODEL.predict, X, TRUTH, r2_score, n_repeats=100)}
    expected = reference(MODEL, X, TRUTH, n_repeats=100, random_state=0)
    for column in range(4):
        error = math.hypot(found[str(column)].spread, expected.importances_std[column]) / 10
        assert found[str(column)].mean == pytest.approx(expected.importances_mean[column], abs=4 * error)
        assert found[str(column)].spread == pytest.approx(expected.importances_std[column], rel=0.4)


def test_a_drop_is_the_score_lost_with_the_columns_of_a_group_from_other_rows() -> None:
    asked: list[np.ndarray] = []

    def predict(rows: np.ndarray) -> np.ndarray:
        asked.append(rows.copy())
        return np.asarray(MODEL.predict(rows))

    found = permutation_importance(predict, X, TRUTH, r2_score, {"first two": [0, 1]}, n_repeats=2)
    whole, *shuffled = asked
    assert (whole == X).all()
    for rows, drop in zip(shuffled, found[0].drops, strict=True):
        assert (rows[:, 2:] == X[:, 2:]).all()
        assert sorted(map(tuple, rows[:, :2])) == sorted(map(tuple, X[:, :2]))
        assert (rows[:, :2] != X[:, :2]).any()
        assert drop == pytest.approx(r2_score(TRUTH, MODEL.predict(X)) - r2_score(TRUTH, MODEL.predict(rows)))
    assert found[0].mean == pytest.approx(np.mean(found[0].drops))
    assert found[0].spread == pytest.approx(np.std(found[0].drops))


def test_two_copies_look_unimportant_alone_but_not_as_a_group() -> None:
    cause = RNG.normal(size=2000)
    rows = np.column_stack([cause, cause, RNG.normal(size=2000)])
    truth = cause + 0.5 * rows[:, 2]
    model = ExtraTreesRegressor(100, max_features=1, random_state=0).fit(rows[:1000], truth[:1000])
    rows, truth = rows[1000:], truth[1000:]
    alone = {i.name: i.mean for i in permutation_importance(model.predict, rows, truth, r2_score)}
    groups = correlated_groups(rows, ["a", "copy of a", "b"])
    together = {i.name: i.mean for i in permutation_importance(model.predict, rows, truth, r2_score, groups)}
    assert groups == {"a and 1 more": [0, 1], "b": [2]}
    assert together["a and 1 more"] > 1.5 * (alone["0"] + alone["1"])
    assert together["b"] == pytest.approx(alone["2"])


def test_the_most_important_comes_first_and_a_seed_settles_all() -> None:
    first, again, other = (permutation_importance(MODEL.predict, X, TRUTH, r2_score, seed=seed) for seed in (1, 1, 2))
    assert [i.name for i in first][:2] == ["0", "1"]
    assert first == again != other


def test_an_importance_does_not_depend_on_the_other_groups() -> None:
    among_all = next(i for i in permutation_importance(MODEL.predict, X, TRUTH, r2_score) if i.name == "1")
    assert permutation_importance(MODEL.predict, X, TRUTH, r2_score, {"1": [1]}) == [among_all]


def test_the_rows_given_are_left_as_they_were_and_only_some_of_them_used() -> None:
    before, sizes, calls = X.copy(), set(), []

    def predict(rows: np.ndarray) -> np.ndarray:
        sizes.add(len(rows))
        return np.asarray(MODEL.predict(rows))

    permutation_importance(
        predict, X, TRUTH, r2_score, max_rows=50, on_progress=lambda done, total: calls.append((done, total))
    )
    assert (before == X).all()
    assert sizes == {50}
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_without_rows_importances_are_nan() -> None:
    found = permutation_importance(MODEL.predict, X[:0], TRUTH[:0], r2_score)
    assert [i.name for i in found] == ["0", "1", "2", "3"]
    assert all(math.isnan(i.mean) for i in found)
    assert correlated_groups(X[:0], list("abcd")) == {"a": [0], "b": [1], "c": [2], "d": [3]}
    assert correlated_groups(X[:, :0], []) == {}
    assert correlated_groups(X[:, :1], ["a"]) == {"a": [0]}


def test_groups_join_columns_whose_ranks_agree_or_are_opposite() -> None:
    rows = np.column_stack([X[:, 0], X[:, 1], np.exp(X[:, 0]), -X[:, 1], X[:, 2]])
    assert correlated_groups(rows, list("abcde"), 1.0) == {"a and 1 more": [0, 2], "b and 1 more": [1, 3], "e": [4]}


def test_the_threshold_is_an_absolute_spearman_correlation() -> None:
    noisy = np.column_stack([X[:, 0], X[:, 0] + X[:, 1]])
    rho = spearmanr(*noisy.T).statistic
    assert len(correlated_groups(noisy, ["a", "b"], rho - 1e-6)) == 1
    assert len(correlated_groups(noisy, ["a", "b"], rho + 1e-6)) == 2


def test_columns_with_gaps_are_compared_where_both_are_known() -> None:
    gaps = X[:, 0].copy()
    gaps[::2] = np.nan
    other_gaps = X[:, 0].copy()
    other_gaps[1::2] = np.nan
    rows = np.column_stack([X[:, 0], gaps, np.full(400, np.nan), X[:, 1]])
    assert correlated_groups(rows, list("abcd"), 0.98) == {"a and 1 more": [0, 1], "c": [2], "d": [3]}
    assert len(correlated_groups(np.column_stack([gaps, other_gaps]), ["a", "b"])) == 2, "no row in common"


def test_columns_that_do_not_vary_stay_alone_whatever_the_threshold() -> None:
    rows = np.column_stack([np.ones(400), np.ones(400), X[:, 0], X[:, 1]])
    assert correlated_groups(rows, list("abcd"), 0.0) == {"a": [0], "b": [1], "c and 1 more": [2, 3]}


def test_infinite_values_have_a_rank_like_any_other() -> None:
    rows = np.column_stack([X[:, 0], np.where(X[:, 0] == X[:, 0].max(), np.inf, X[:, 0])])
    assert len(correlated_groups(rows, ["a", "b"], 1.0)) == 1


def test_every_column_needs_a_name() -> None:
    with pytest.raises(ValueError, match="3 names for 4 columns"):
        correlated_groups(X, list("abc"))
