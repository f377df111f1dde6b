import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils.estimator_checks import check_estimator

from recrawl.models.boosting import BoostedClassifier, BoostedRegressor, without_empty_columns
from recrawl.models.counts import HurdleCounts, NegativeBinomialCounts, PoissonCounts, likeliest_dispersion
from recrawl.models.distributions import Hurdle, NegativeBinomial, Poisson, Truncated
from recrawl.models.probability import NaturalGradientCounts

DISPERSION = 1.5
FAST = {"max_iter": 10, "min_samples_leaf": 5, "random_state": 0}
MODELS = (PoissonCounts(**FAST), NegativeBinomialCounts(**FAST), HurdleCounts(**FAST), NaturalGradientCounts(10))
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def many_zeros_and_a_heavy_tail(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """About seven rows in ten are zero for a reason of their own; the others are negative binomial without zeros."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 3))
    present = rng.uniform(size=n) < 1 / (1 + np.exp(1.2 - features[:, 0]))
    means = np.exp(1.5 + 0.7 * features[:, 1])
    made = stats.nbinom(1 / DISPERSION, 1 / (1 + DISPERSION * means))
    return features, np.where(present, made.ppf(rng.uniform(made.pmf(0), 1)), 0)


def test_over_dispersed_counts_with_many_zeros_are_likeliest_under_hurdle_then_negative_binomial_then_poisson():
    train, test = many_zeros_and_a_heavy_tail(1500, 1), many_zeros_and_a_heavy_tail(2000, 2)
    poisson, negative_binomial, hurdle = (
        model(max_iter=40, learning_rate=0.1, max_leaf_nodes=6)
        .fit(*train)
        .predict_distribution(test[0])
        .log_likelihood(test[1])
        .mean()
        for model in (PoissonCounts, NegativeBinomialCounts, HurdleCounts)
    )
    assert hurdle > negative_binomial + 0.02
    assert negative_binomial > poisson + 0.5


def test_the_hurdle_recovers_what_made_the_counts_and_its_intervals_hold_what_they_promise():
    train, (features, counts) = many_zeros_and_a_heavy_tail(3000, 3), many_zeros_and_a_heavy_tail(3000, 4)
    model = HurdleCounts(max_iter=40, learning_rate=0.1, max_leaf_nodes=6).fit(*train)
    distribution = model.predict_distribution(features)
    assert model.dispersion_ == pytest.approx(DISPERSION, rel=0.25)
    assert np.mean(counts <= distribution.quantile(0.9)) == pytest.approx(0.9, abs=0.02)
    assert distribution.mean.mean() == pytest.approx(counts.mean(), rel=0.1)
    assert distribution.p_positive.mean() == pytest.approx(np.mean(counts > 0), abs=0.02)


@pytest.mark.parametrize("family", [NegativeBinomial, Truncated])
def test_the_likeliest_dispersion_is_the_one_that_made_the_counts(family):
    rng = np.random.default_rng(5)
    counts = rng.poisson(3 * rng.gamma(1 / 1.5, 1.5, size=60_000)).astype(float)
    means = np.full(len(counts), 3.0)
    if family is Truncated:
        counts = counts[counts > 0]
        means = np.full(len(counts), 3 / NegativeBinomial([3.0], 1.5).p_positive[0])
    assert likeliest_dispersion(family, means, counts, np.ones(len(counts))) == pytest.approx(1.5, rel=0.05)


def test_counts_with_less_spread_than_poisson_get_no_dispersion():
    assert likeliest_dispersion(NegativeBinomial, np.full(50, 2.0), np.full(50, 2.0), np.ones(50)) < 1e-4


def test_the_dispersion_is_that_of_rows_the_trees_have_not_seen():
    rng = np.random.default_rng(6)
    noise, counts = rng.normal(size=(200, 10)), rng.poisson(4 * rng.gamma(1, 1, size=200))
    greedy = NegativeBinomialCounts(learning_rate=0.3, max_iter=30, min_samples_leaf=2, random_state=0)
    greedy.fit(noise, counts)
    in_sample = likeliest_dispersion(NegativeBinomial, greedy.predict(noise), counts.astype(float), np.ones(200))
    assert greedy.dispersion_ > 1 > 0.1 > in_sample


def test_answers_agree_with_the_distribution_and_have_its_type(awkward):
    for model, kind in zip(MODELS, (Poisson, NegativeBinomial, Hurdle, Poisson), strict=True):
        fitted = clone(model).fit(*awkward)
        distribution = fitted.predict_distribution(awkward[0])
        assert isinstance(distribution, kind)
        assert np.array_equal(distribution.mean, fitted.predict(awkward[0]))
        assert np.array_equal(distribution.p_positive, fitted.predict_positive(awkward[0]))


@every_model
def test_all_zero_counts_leave_the_chance_of_laplace(model):
    fitted = clone(model).fit(np.random.default_rng(0).normal(size=(98, 2)), np.zeros(98))
    assert fitted.predict_positive(np.zeros((1, 2)))[0] == pytest.approx(1 / 100, rel=1e-6)
    assert fitted.predict(np.zeros((1, 2)))[0] == pytest.approx(0.01, rel=0.01)
    assert fitted.predict_distribution(np.zeros((1, 2))).quantile(0.9).tolist() == [0]


@every_model
@pytest.mark.parametrize("n", [1, 2, 5, 19])
def test_few_rows_give_every_page_the_distribution_of_them_all(model, n):
    fitted = clone(model).fit(np.arange(n)[:, None], np.arange(n) % 3)
    assert len(np.unique(fitted.predict([[0.0], [np.nan], [99.0]]))) == 1
    assert np.isfinite(fitted.predict_distribution([[0.0]]).log_likelihood([4])).all()


@every_model
@pytest.mark.parametrize("counts", [np.ones(40), np.full(40, 7), np.arange(40) + 1, np.repeat([0, 1], [39, 1])])
def test_counts_without_zeros_or_nearly_all_zero_are_learnt(model, counts):
    fitted = clone(model).fit(np.arange(40.0)[:, None], counts)
    assert fitted.predict(np.arange(40.0)[:, None]).mean() == pytest.approx(counts.mean(), rel=0.25)


@every_model
def test_constant_empty_and_holed_columns_are_no_obstacle(model, awkward):
    features, counts = awkward
    for table in (features, np.full_like(features, np.nan), np.ones_like(features)):
        fitted = clone(model).fit(table, counts)
        assert np.isfinite(fitted.predict(table)).all()
        assert np.isfinite(fitted.predict(np.full((3, 4), np.nan))).all()
        assert ((fitted.predict_positive(table) > 0) & (fitted.predict_positive(table) < 1)).all()


@every_model
@pytest.mark.parametrize(("wrong", "words"), [(-1.0, "0 or more"), (np.nan, "NaN in 1 row")])
def test_what_is_no_count_is_refused_in_a_sentence(model, wrong, words, awkward):
    counts = awkward[1].astype(float)
    counts[3] = wrong
    with pytest.raises(ValueError, match=words):
        clone(model).fit(awkward[0], counts)


@every_model
def test_rows_without_weight_do_not_count(model, awkward):
    features, counts = awkward
    weighted = clone(model).fit(features, np.where(np.arange(80) < 60, counts, 999), np.arange(80) < 60)
    alone = clone(model).fit(features[:60], counts[:60])
    np.testing.assert_allclose(weighted.predict(features), alone.predict(features), rtol=1e-6)
    with pytest.raises(ValueError, match=r"[Ss]ample weights"):
        clone(model).fit(features, counts, np.zeros(80))


@every_model
def test_the_conventions_of_scikit_learn_are_kept(model):
    check_estimator(
        model,
        expected_failed_checks={
            "check_sample_weight_equivalence_on_dense_data": "bins and folds are cut by rows, not by weight",
            "check_non_transformer_estimators_n_iter": "never stops early, so max_iter is the number",
        },
    )


def test_columns_hardly_known_are_held_constant_and_names_are_kept():
    table = np.full((30_000, 2), np.nan)
    table[:2] = 5
    table[:3, 1] = 5
    assert np.array_equal(without_empty_columns(table)[:, 0], np.zeros(30_000))
    assert np.array_equal(without_empty_columns(table)[:, 1], table[:, 1], equal_nan=True)
    frame = pd.DataFrame({"known": [1.0, 2.0], "empty": [np.nan, np.nan]})
    for model in (BoostedRegressor(max_iter=1), BoostedClassifier(max_iter=1)):
        assert model.fit(frame, [0, 1]).feature_names_in_.tolist() == ["known", "empty"]
    assert np.isnan(frame["empty"]).all()


def test_no_count_is_expected_above_the_largest_that_was_taught() -> None:
    rng = np.random.default_rng(0)
    x = rng.exponential(1.0, size=(3000, 3))
    y = rng.poisson(np.exp(np.minimum(x.sum(axis=1), 6)))
    model = PoissonCounts(learning_rate=1.0, max_iter=300, min_samples_leaf=1).fit(x, y)  # made to overshoot
    plain = HistGradientBoostingRegressor(
        loss="poisson", learning_rate=1.0, max_iter=300, min_samples_leaf=1, early_stopping=False
    ).fit(x, y)
    far = rng.exponential(3.0, size=(3000, 3))
    assert plain.predict(far).max() > y.max()
    assert model.predict(far).max() == y.max()
