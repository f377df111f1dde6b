"""The mixture of rates beside integrals over them, and beside the truth that counts were drawn from."""

from functools import cache

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import trapezoid

from recrawl.policies.harvest.mixture import LEVELS, N_STEPS, PSEUDO_PAGES, SHAPE, START, Mixture

LOG_RATES = np.linspace(np.log(1e-9), np.log(1e5), 200_001)
RATES = np.exp(LOG_RATES)


@cache
def densities() -> np.ndarray:
    """Of rates, before anything is known of the page; by scipy, at every step of the grid."""
    return np.asarray(Mixture().shares @ stats.gamma(SHAPE, scale=LEVELS[:, None] / SHAPE).pdf(RATES))


@given(st.integers(0, 30), st.floats(0.05, 50))
def test_rate_and_shape_are_the_moments_of_the_posterior(arrived: int, expected: float) -> None:
    rate, shape = (each[0] for each in Mixture().posterior(np.array([float(arrived)]), np.array([expected])))
    usual = max(arrived, 1e-9)
    likelihood = np.exp(arrived * (LOG_RATES + np.log(expected)) - expected * RATES - usual * np.log(usual) + arrived)
    whole, first, second = (trapezoid(RATES**power * densities() * likelihood * RATES, LOG_RATES) for power in range(3))
    assert np.isclose(rate, first / whole, rtol=1e-3)
    assert np.isclose(shape, (first / whole) ** 2 / (second / whole - (first / whole) ** 2), rtol=5e-3)


def test_the_likelihood_is_that_of_negative_binomial_counts() -> None:
    chance = np.random.default_rng(0)
    arrived, mixture = chance.integers(0, 9, 50).astype(float), Mixture()

    def slow(expected: np.ndarray) -> float:
        laws = [stats.nbinom(SHAPE, SHAPE / (SHAPE + expected * level)).pmf(arrived.astype(int)) for level in LEVELS]
        return float(np.log(mixture.shares @ np.array(laws)).sum())

    first, second = chance.uniform(0.1, 5, (2, 50))
    fast = mixture.log_likelihood(arrived, first) - mixture.log_likelihood(arrived, second)
    assert np.isclose(fast, slow(first) - slow(second))  # they differ by a constant only


def test_shares_are_learnt_by_expectation_maximisation() -> None:
    chance = np.random.default_rng(1)
    expected = chance.uniform(0.5, 20, 40)
    arrived = chance.poisson(expected * chance.choice([0.02, 4.0], 40, p=[0.8, 0.2])).astype(float)
    mixture, shares = Mixture(), START.copy()
    mixture.learn(arrived, expected)
    for _ in range(N_STEPS):
        counts = PSEUDO_PAGES * START
        for n, due in zip(arrived, expected, strict=True):
            law = shares * [stats.nbinom(SHAPE, SHAPE / (SHAPE + due * level)).pmf(int(n)) for level in LEVELS]
            counts = counts + law / law.sum()
        shares = counts / counts.sum()
    assert np.allclose(mixture.shares, shares)


def test_quiet_pages_are_distinguished_from_busy_ones() -> None:
    """Nine of ten pages never gain a link: a page with a few is not pulled down to them, nor they up to it."""
    chance = np.random.default_rng(0)
    is_busy = np.arange(2_000) % 10 == 0
    expected = np.full(2_000, 3.0)
    arrived = chance.poisson(np.where(is_busy, 30.0, 0.0)).astype(float)
    mixture = Mixture()
    for _ in range(5):
        mixture.learn(arrived, expected)
    rate, _ = mixture.posterior(arrived, expected)
    assert abs(rate[is_busy].mean() / 10 - 1) < 0.05
    assert rate[~is_busy].mean() < 0.01
    seen_little = mixture.posterior(np.array([0.0, 1.0]), np.array([0.3, 0.3]))[0]
    assert seen_little[0] < 0.3
    assert seen_little[1] > 4.0


def test_a_page_without_a_past_has_the_expected_rate() -> None:
    rate, shape = Mixture().posterior(np.zeros(1), np.zeros(1))
    assert abs(rate[0] - 1) < 0.01
    assert 0 < shape[0] < 0.1
    assert Mixture().log_likelihood(np.empty(0), np.empty(0)) == 0
    mixture = Mixture()
    mixture.learn(np.empty(0), np.empty(0))
    assert np.allclose(mixture.shares, START)
