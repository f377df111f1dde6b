"""How much pages differ from what is expected of them: a mixture of gamma distributions, learnt from all pages."""

from __future__ import annotations

import numpy as np
from numba import njit

from recrawl.core.arrays import Floats
from recrawl.core.workers import over_ranges

EXPONENTS = np.arange(-5.0, 6.0)
LEVELS = 4.0**EXPONENTS  #: a page's rate as a multiple of the expected one, from a thousandth to a thousand
SHAPE = 0.5  #: of the gamma distribution around each level: wide enough that there are no gaps between them
_START = np.where(EXPONENTS > 0, 8.0**-EXPONENTS, 2.0**EXPONENTS)
#: Shares of the levels as long as nothing is known: most pages are quiet, the mean is about 1.
START = _START / _START.sum()
PSEUDO_PAGES = 2.0  #: pages in all that count for the shares at the start
N_STEPS = 20  #: steps of expectation maximisation; the next fit continues from there


class Mixture:
    """The rate of a page as a multiple of the expected one: gamma distributed around one of `LEVELS`.

    One gamma distribution does not fit: in most collections the greater part of the pages never gains a link, some do now and
    then, and a few gain many every day. A page without links soon counts as one of the first kind, and one with some is not pulled
    down to the mean of those that never have any. Counts are in batches of links, since links that arrive together are one event.

    References: Robbins (1956) for empirical Bayes, Laird (1978) for learning the shares.
    """

    def __init__(self, shares: Floats = START) -> None:
        self.shares = shares.copy()

    def posterior(self, arrived: Floats, expected: Floats) -> tuple[Floats, Floats]:
        """The rates of pages as multiples of the expected ones, and how well they are known, given batches arrived and expected.

        The latter is the shape of a gamma distribution with the same mean and variance.

        >>> rate, shape = Mixture().posterior(np.array([0.0, 0.0, 40.0]), np.array([0.0, 9.0, 20.0]))
        >>> rate.round(2).tolist(), shape.round(1).tolist()
        ([1.0, 0.04, 1.97], [0.0, 0.4, 40.1])
        """
        rate, shape = np.empty(len(arrived)), np.empty(len(arrived))
        over_ranges(
            len(arrived),
            lambda low, high: _posterior(low, high, arrived, expected, self.shares, LEVELS, SHAPE, rate, shape),
        )
        return rate, shape

    def log_likelihood(self, arrived: Floats, expected: Floats) -> float:
        """The log-likelihood of these counts, without what does not depend on `expected`."""
        fit = _fits(arrived, expected, LEVELS, SHAPE)
        best = fit.max(axis=1, initial=-np.inf)
        return float((best + np.log(np.exp(fit - best[:, None]) @ self.shares)).sum())

    def learn(self, arrived: Floats, expected: Floats) -> None:
        """How common each level is."""
        fit = _fits(arrived, expected, LEVELS, SHAPE)
        likelihood = np.exp(fit - fit.max(axis=1, keepdims=True, initial=-np.inf))
        for _ in range(N_STEPS):
            counts = self.shares * (likelihood.T @ (1.0 / (likelihood @ self.shares)))
            self.shares = (counts + PSEUDO_PAGES * START) / (len(arrived) + PSEUDO_PAGES)


@njit(cache=True, nogil=True)
def _fit(arrived, expected, shape):  # type: ignore[no-untyped-def]
    """The log-likelihood of a count under a gamma mixture of Poisson distributions: negative binomial, without its constants."""
    fit = -shape * np.log1p(expected / shape)
    return fit if arrived <= 0.0 else fit + arrived * np.log(max(expected, 1e-300) / (shape + expected))


@njit(cache=True, nogil=True)
def _fits(arrived, expected, levels, shape):  # type: ignore[no-untyped-def]
    fits = np.empty((len(arrived), len(levels)))
    for i in range(len(arrived)):
        for j in range(len(levels)):
            fits[i, j] = _fit(arrived[i], expected[i] * levels[j], shape)
    return fits


@njit(cache=True, nogil=True)
def _posterior(low, high, arrived, expected, shares, levels, shape, rate, known):  # type: ignore[no-untyped-def]
    fit = np.empty(len(levels))
    for i in range(low, high):
        best = -np.inf
        for j in range(len(levels)):
            fit[j] = _fit(arrived[i], expected[i] * levels[j], shape)
            best = max(best, fit[j])
        whole = first = second = 0.0
        for j in range(len(levels)):
            weight = shares[j] * np.exp(fit[j] - best)
            scale = levels[j] / (expected[i] * levels[j] + shape)
            whole += weight
            first += weight * scale * (arrived[i] + shape)
            second += weight * scale**2 * (arrived[i] + shape) * (arrived[i] + shape + 1.0)
        rate[i] = first / whole
        known[i] = rate[i] ** 2 / max(second / whole - rate[i] ** 2, 1e-12 * rate[i] ** 2)
