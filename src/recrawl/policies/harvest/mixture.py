"""How far pages differ from what is expected of them: a mixture of gamma distributions, learnt from all pages."""

from __future__ import annotations

import numpy as np
from numba import njit

from recrawl.core.arrays import Floats
from recrawl.core.workers import over_ranges

EXPONENTS = np.arange(-5.0, 6.0)
LEVELS = 4.0**EXPONENTS  #: times what is expected of a page, from a thousandth to a thousand times
SHAPE = 0.5  #: of the gamma distribution around each level: wide enough that there are no gaps between them
_START = np.where(EXPONENTS > 0, 8.0**-EXPONENTS, 2.0**EXPONENTS)
START = (
    _START / _START.sum()
)  #: shares of the levels as long as nothing is known: most pages are quiet, the mean is about 1
PSEUDO_PAGES = 2.0  #: that are taken to be as likely as that of each level
N_STEPS = 20  #: of expectation maximisation; the next time it goes on from there


class Mixture:
    """The rate of a page by what is expected of it: gamma distributed around one of `LEVELS`.

    One gamma distribution does not fit: of the pages of most collections the greater part never gains a link, some do now and
    then, and a few gain many every day. A page without links soon counts as one of the first kind, and one with some is not drawn
    down to the mean of those that never have any. Counts are in batches of links, since links that come together tell no more
    than one.

    References: Robbins (1956) for empirical Bayes, Laird (1978) for learning the shares.
    """

    def __init__(self) -> None:
        self.shares = START.copy()

    def posterior(self, came: Floats, expected: Floats) -> tuple[Floats, Floats]:
        """Of pages on which so many batches came where so many were expected: their rates by what is expected, and how well known.

        The latter is the shape of a gamma distribution with the same mean and variance.

        >>> rate, shape = Mixture().posterior(np.array([0.0, 0.0, 40.0]), np.array([0.0, 9.0, 20.0]))
        >>> rate.round(2).tolist(), shape.round(1).tolist()
        ([1.0, 0.04, 1.97], [0.0, 0.4, 40.1])
        """
        rate, shape = np.empty(len(came)), np.empty(len(came))
        over_ranges(
            len(came), lambda low, high: _posterior(low, high, came, expected, self.shares, LEVELS, SHAPE, rate, shape)
        )
        return rate, shape

    def log_likelihood(self, came: Floats, expected: Floats) -> float:
        """Of these counts, but for what does not depend on what was expected."""
        fit = _fits(came, expected, LEVELS, SHAPE)
        best = fit.max(axis=1, initial=-np.inf)
        return float((best + np.log(np.exp(fit - best[:, None]) @ self.shares)).sum())

    def learn(self, came: Floats, expected: Floats) -> None:
        """How common each level is."""
        fit = _fits(came, expected, LEVELS, SHAPE)
        likelihood = np.exp(fit - fit.max(axis=1, keepdims=True, initial=-np.inf))
        for _ in range(N_STEPS):
            counts = self.shares * (likelihood.T @ (1.0 / (likelihood @ self.shares)))
            self.shares = (counts + PSEUDO_PAGES * START) / (len(came) + PSEUDO_PAGES)


@njit(cache=True, nogil=True)
def _fit(came, expected, shape):  # type: ignore[no-untyped-def]
    """The log-likelihood of a count under a gamma mixture of Poisson distributions: negative binomial, without its constants."""
    fit = -shape * np.log1p(expected / shape)
    return fit if came <= 0.0 else fit + came * np.log(max(expected, 1e-300) / (shape + expected))


@njit(cache=True, nogil=True)
def _fits(came, expected, levels, shape):  # type: ignore[no-untyped-def]
    fits = np.empty((len(came), len(levels)))
    for i in range(len(came)):
        for j in range(len(levels)):
            fits[i, j] = _fit(came[i], expected[i] * levels[j], shape)
    return fits


@njit(cache=True, nogil=True)
def _posterior(low, high, came, expected, shares, levels, shape, rate, known):  # type: ignore[no-untyped-def]
    fit = np.empty(len(levels))
    for i in range(low, high):
        best = -np.inf
        for j in range(len(levels)):
            fit[j] = _fit(came[i], expected[i] * levels[j], shape)
            best = max(best, fit[j])
        whole = first = second = 0.0
        for j in range(len(levels)):
            weight = shares[j] * np.exp(fit[j] - best)
            scale = levels[j] / (expected[i] * levels[j] + shape)
            whole += weight
            first += weight * scale * (came[i] + shape)
            second += weight * scale**2 * (came[i] + shape) * (came[i] + shape + 1.0)
        rate[i] = first / whole
        known[i] = rate[i] ** 2 / max(second / whole - rate[i] ** 2, 1e-12 * rate[i] ** 2)
