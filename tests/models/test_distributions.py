import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from recrawl.models.distributions import Hurdle, NegativeBinomial, Poisson, Truncated, untruncated_mean

MEANS = np.array([1e-6, 0.01, 0.4, 1.0, 3.7, 25.0, 140.0])
UP_TO = np.arange(20_000)
ONE_EACH = {
    "poisson": lambda mean: Poisson([mean]),
    "negative binomial": lambda mean: NegativeBinomial([mean], 0.8),
    "barely dispersed": lambda mean: NegativeBinomial([mean], 1e-7),
    "truncated": lambda mean: Truncated([1 + mean], 1.7),
    "truncated Poisson": lambda mean: Truncated([1 + mean], 0.0),
    "hurdle": lambda mean: Hurdle([0.3], Truncated([1 + mean], 0.5)),
}
every_distribution = pytest.mark.parametrize("make", ONE_EACH.values(), ids=ONE_EACH.keys())
every_mean = pytest.mark.parametrize("mean", MEANS)


def probabilities(distribution) -> np.ndarray:
    return np.exp([distribution.log_likelihood(UP_TO)]).ravel()


@every_distribution
@every_mean
def test_probabilities_sum_to_one_and_have_the_stated_mean(make, mean):
    distribution = make(mean)
    p = probabilities(distribution)
    assert p.sum() == pytest.approx(1, abs=1e-9)
    assert p @ UP_TO == pytest.approx(distribution.mean[0], rel=1e-7)
    assert p[1:].sum() == pytest.approx(distribution.p_positive[0], rel=1e-7)


@every_distribution
@every_mean
@pytest.mark.parametrize("q", [0, 0.05, 0.5, 0.7001, 0.9, 0.999])
def test_quantiles_are_those_of_a_walk_along_the_cumulated_probabilities(make, mean, q):
    walk = int(np.argmax(np.cumsum(probabilities(make(mean))) >= q))
    expected = max(walk, 1) if isinstance(make(mean), Truncated) else walk
    assert make(mean).quantile(q).tolist() == [expected]


def test_poisson_is_that_of_scipy():
    y = np.array([0, 0, 1, 0, 9, 20, 150])
    np.testing.assert_allclose(Poisson(MEANS).log_likelihood(y), stats.poisson.logpmf(y, MEANS), rtol=1e-12)
    assert Poisson(MEANS).quantile(0.9).tolist() == stats.poisson.ppf(0.9, MEANS).tolist()


def test_failures_before_successes_are_those_of_scipy():
    chance = np.random.default_rng(1)
    successes, p = 10 ** chance.uniform(-4, 4, 3_000), chance.uniform(1e-4, 1 - 1e-6, 3_000)
    p[:500] = 1 - 10 ** chance.uniform(-6, -1, 500)
    law, theirs, q = (
        NegativeBinomial.of_failures(successes, p),
        stats.nbinom(successes, p),
        chance.uniform(1e-9, 1 - 1e-9, 3_000),
    )
    assert law.quick_quantile(q).tolist() == theirs.ppf(q).tolist()
    count = np.floor(theirs.ppf(q)) - chance.integers(0, 3, 3_000)
    np.testing.assert_allclose(law.cdf(count), theirs.cdf(count), atol=1e-12)
    np.testing.assert_allclose(law.p_positive, theirs.sf(0), rtol=1e-9)
    np.testing.assert_allclose(law.mean, theirs.mean(), rtol=1e-9)
    same = NegativeBinomial(law.mean, law.dispersion)
    np.testing.assert_allclose(same.cdf(count), law.cdf(count), atol=1e-9)


@given(
    mean=st.floats(1e-4, 1e3), dispersion=st.floats(1e-4, 50), y=st.integers(0, 5000), q=st.floats(0.01, 0.99)
)  # fmt: skip
def test_negative_binomial_is_that_of_scipy(mean, dispersion, y, q):
    ours, theirs = NegativeBinomial([mean], dispersion), stats.nbinom(1 / dispersion, 1 / (1 + dispersion * mean))
    assert ours.log_likelihood([y])[0] == pytest.approx(theirs.logpmf(y), rel=1e-8, abs=1e-8)
    assert ours.exceeds([y])[0] == pytest.approx(theirs.sf(y), rel=1e-7, abs=1e-300)
    found = ours.quantile(q)[0]
    assert theirs.cdf(found) >= q - 1e-12
    assert found == 0 or theirs.cdf(found - 1) < q + 1e-12


@pytest.mark.parametrize("dispersion", [0.0, 1e-30, 1e-13, 1e-11, 1e-9])
def test_without_dispersion_a_negative_binomial_is_a_poisson(dispersion):
    y = np.array([0, 1, 1, 2, 3, 30, 170])
    np.testing.assert_allclose(
        NegativeBinomial(MEANS, dispersion).log_likelihood(y), Poisson(MEANS).log_likelihood(y), rtol=1e-6
    )
    assert NegativeBinomial(MEANS, dispersion).quantile(0.95).tolist() == Poisson(MEANS).quantile(0.95).tolist()


@given(dispersion=st.sampled_from([9.9e-4, 1e-3, 1.01e-3]), y=st.integers(0, 100_000))
def test_the_two_ways_to_compute_rising_factorials_meet(dispersion, y):
    slow = np.log1p(dispersion * np.arange(y)).sum()
    mean = 12.0
    rest = stats.poisson.logpmf(y, mean) + mean
    rest -= (y + 1 / dispersion) * np.log1p(dispersion * mean)
    assert NegativeBinomial([mean], dispersion).log_likelihood([y])[0] == pytest.approx(slow + rest, rel=1e-9, abs=1e-8)


def test_dispersion_may_differ_from_row_to_row():
    both = NegativeBinomial([2.0, 2.0], [0.0, 3.0]).log_likelihood([5, 5])
    apart = [NegativeBinomial([2.0], a).log_likelihood([5])[0] for a in (0.0, 3.0)]
    assert both.tolist() == apart


@given(mean=st.floats(1.00001, 1e5), dispersion=st.one_of(st.just(0.0), st.floats(1e-9, 500)))
def test_taking_the_zeros_away_gives_back_the_positive_mean(mean, dispersion):
    whole = NegativeBinomial(untruncated_mean([mean], dispersion), dispersion)
    assert whole.mean[0] / whole.p_positive[0] == pytest.approx(mean, rel=1e-8)


def test_a_positive_mean_of_one_is_always_one():
    always = Truncated([1.0, 0.2], 0.7)
    assert always.quantile(0.99).tolist() == [1, 1]
    assert always.log_likelihood([1, 1]) == pytest.approx(0, abs=1e-5)
    assert np.isfinite(always.log_likelihood([2, 2])).all()


def test_impossible_counts_have_a_log_likelihood_of_minus_infinity():
    assert Poisson([0.0]).log_likelihood([1]) == -np.inf
    assert Truncated([2.0], 0.5).log_likelihood([0]) == -np.inf
    assert Hurdle([0.0], Truncated([2.0], 0.5)).log_likelihood([3]) == -np.inf
    assert Hurdle([1.0], Truncated([2.0], 0.5)).log_likelihood([0]) == -np.inf
    assert Poisson([0.0]).log_likelihood([0]) == 0
    assert Hurdle([0.0], Truncated([2.0], 0.5)).quantile(0.999).tolist() == [0]


@every_distribution
def test_no_rows_are_no_problem(make):
    whole = make(2.0)
    none = type(whole)(*(Truncated([], 0.5) if name == "positive" else [] for name in whole.__dataclass_fields__))
    assert none.log_likelihood([]).shape == none.quantile(0.5).shape == none.mean.shape == (0,)


@pytest.mark.parametrize("q", [1.0, -0.1, np.nan])
def test_quantiles_outside_zero_to_one_are_refused(q):
    with pytest.raises(ValueError, match="0 <= q < 1"):
        Poisson([1.0]).quantile(q)
    with pytest.raises(ValueError, match="0 <= q < 1"):
        Hurdle([0.3], Truncated([2.0], 0.5)).quantile(q)
