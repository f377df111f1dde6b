"""Temporal content similarity by cross-correlation: do the words of two pages come and go together, one page after the other?

References: Radinsky and Bennett (2013), "Predicting content change on the web", section 6.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft

from recrawl.experts.series import Floats, Ints, Series

_ROWS = 256  # transformed at a time: few enough for the cache
_DIGITS = 12  # transforms are exact to about 15; pages with the same texts must not differ by the rest


def cross_correlation(
    series: Series, page: ArrayLike, expert: ArrayLike, first_delay: int = 1, max_delay: int | None = None
) -> Floats:
    """Σ ω(w) Q(w) for pairs of pages, Q being the best correlation of the word's series on both over all delays.

    A delay d compares the page with what its expert showed d rounds earlier: one that only follows could not predict. The
    similarity lies between -1 and 1. Words that the page or its expert shows in every round alike, or never, add 0.
    """
    first, last = delays(series.values.shape[1], first_delay, max_delay)
    own = _spectra(series.values, last)

    def best(row: Ints, theirs: Floats, at: Ints) -> Floats:
        return _best(own, row, _spectra(theirs, last), at, first, last)

    return series.similarity(page, expert, best)


def best_correlation(x: ArrayLike, y: ArrayLike, first_delay: int = 1, max_delay: int | None = None) -> Floats:
    """max over d of Σ (x[i] - mean x)(y[i - d] - mean y) / (N σx σy), row by row; constant series give 0.

    What lies outside of the series is left out, not wrapped around: a long delay has few terms, but is divided by all N. The
    paper's d goes from 1 to N; here to N - 1, for at N no term is left. With one round only there is no delay, and 0. (The paper
    calls σ the variance; with the standard deviation it is a correlation.)

    >>> best_correlation([[0.0, 0.0, 4.0, 0.0]], [[4.0, 0.0, 0.0, 0.0]])  # at d = 2: (3 · 3 + -1 · -1) / 12
    array([0.83333333])
    """
    x, y = (np.atleast_2d(np.asarray(values, np.float64)) for values in (x, y))
    if x.shape != y.shape:
        raise ValueError(f"series of shapes {x.shape} and {y.shape}; both must have as many rows and rounds")
    first, last = delays(x.shape[1], first_delay, max_delay)
    same = np.arange(len(x))
    return _best(_spectra(x, last), same, _spectra(y, last), same, first, last)


def delays(n_rounds: int, first_delay: int, max_delay: int | None) -> tuple[int, int]:
    """The first and the last delay that leave at least one term; the last is before the first if there is none."""
    if first_delay < 0 or (max_delay is not None and max_delay < first_delay):
        upper = "" if max_delay is None else f" to {max_delay}"
        raise ValueError(
            f"delays of {first_delay}{upper} rounds; they must be 0 or more, the last not before the first"
        )
    return first_delay, n_rounds - 1 if max_delay is None else min(max_delay, n_rounds - 1)


@dataclass(frozen=True)
class _Spectra:
    """Fourier transforms of standardised series: the product of two is the transform of their sums at all delays.

    Over some hundred rounds this is two to three times as quick as adding up, since the transforms are made once for many pairs.
    """

    values: NDArray[np.complex128]  # [series that is not constant, frequency]
    number: Ints  # [series]: the row of its values, -1: it is constant
    size: int  # of the series with the zeros after it that keep its end from its beginning


def _spectra(series: Floats, last: int) -> _Spectra:
    """Made of those that vary only: an expert never shows most of the words that its pages ask for."""
    varies = (series != series[:, :1]).any(axis=1) if series.size else np.zeros(len(series), np.bool_)
    size = fft.next_fast_len(series.shape[1] + max(last, 0) + 1, real=True)
    values = fft.rfft(_standardised(series[varies]), size) if varies.any() else np.empty((0, 0), np.complex128)
    return _Spectra(values, np.where(varies, np.cumsum(varies) - 1, -1), size)


def _standardised(values: Floats) -> Floats:
    """Rows of mean 0 and length 1, so that a correlation is a plain sum of products."""
    unit: Floats = values - values.mean(axis=1, keepdims=True)
    length = np.sqrt(np.einsum("ij,ij->i", unit, unit))
    unit /= np.where(length > 0, length, 1)[:, None]
    return unit


def _best(own: _Spectra, row: Ints, theirs: _Spectra, at: Ints, first: int, last: int) -> Floats:
    found = np.zeros(len(row))
    x, y = own.number[row], theirs.number[at]
    compared = np.flatnonzero((x >= 0) & (y >= 0) & (first <= last))
    for start in range(0, len(compared), _ROWS):
        some = compared[start : start + _ROWS]
        product = own.values[x[some]] * theirs.values[y[some]].conj()
        found[some] = fft.irfft(product, own.size)[:, first : last + 1].max(axis=1)
    rounded: Floats = np.round(found, _DIGITS)
    return rounded
