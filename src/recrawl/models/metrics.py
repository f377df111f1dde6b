"""How good predictions are: yes or no, how many, in which order, and how likely (LBLA section 5.3 and section 7).

Every function takes arrays of equal length and answers NaN where there is no answer: for no pages, for a NaN among the values,
and where the formula divides by nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from recrawl.core.arrays import Floats, Ints

CLIP = (
    1e-15  #: how near to 0 and 1 a probability may come in `log_loss`: one sure mistake costs 34.5, not infinitely much
)


@dataclass(frozen=True)
class PrecisionCurve:
    """Precision@k%: entry i of `precision` belongs to entry i of `share`, which runs from 0 to 1."""

    share: Floats
    precision: Floats
    area: float  # 1: the same order, 0.5: a random one


@dataclass(frozen=True)
class CalibrationBin:
    """Pages of about the same predicted probability, and how many of them were positive."""

    predicted: float  # mean probability
    observed: float  # share of positives
    count: int


class Likelihood(Protocol):
    """A predicted distribution that knows how likely the values are that came."""

    def log_likelihood(self, y: Floats, /) -> Floats:
        """The natural logarithm of the likelihood of each value."""


def classification_scores(truth: ArrayLike, predicted: ArrayLike) -> dict[str, float]:
    """Precision, recall, F1 and balanced accuracy of yes (1) and no (0).

    Precision without a predicted 1, and recall without a true one, are 0, so that a model that never says yes scores 0 rather
    than nothing. Balanced accuracy is the mean recall of the classes that occur.

    >>> classification_scores([1, 1, 0, 0, 0], [1, 0, 1, 0, 0])["balanced_accuracy"]
    0.5833333333333333
    """
    true, guess = _pair(truth, predicted)
    if not _is_defined(true, guess):
        return dict.fromkeys(("precision", "recall", "f1", "balanced_accuracy"), math.nan)
    positive, said = true == 1, guess == 1
    both, n_positive, n_said = (int(np.count_nonzero(flags)) for flags in (positive & said, positive, said))
    n_negative = len(true) - n_positive
    recalls = [hits / n for hits, n in ((both, n_positive), (n_negative - n_said + both, n_negative)) if n]
    return {
        "precision": both / n_said if n_said else 0.0,
        "recall": both / n_positive if n_positive else 0.0,
        "f1": 2 * both / (n_said + n_positive) if n_said + n_positive else 0.0,
        "balanced_accuracy": sum(recalls) / len(recalls),
    }


def regression_scores(truth: ArrayLike, predicted: ArrayLike) -> dict[str, float]:
    """R², mean and median absolute error; R² is NaN where the truth does not vary.

    >>> regression_scores([1, 2, 3], [1, 2, 5])
    {'r2': -1.0, 'mae': 0.6666666666666666, 'medae': 0.0}
    """
    true, guess = _pair(truth, predicted)
    if not (_is_defined(true, guess) and np.isfinite(true).all() and np.isfinite(guess).all()):
        return dict.fromkeys(("r2", "mae", "medae"), math.nan)
    with np.errstate(over="ignore", invalid="ignore"):  # squares of absurd values are infinite, and R² then NaN
        errors = np.abs(true - guess)
        around_mean = float(np.sum((true - true.mean()) ** 2))
        unexplained = float(np.sum(errors**2))
    varies = around_mean > 0 and true.min() < true.max()  # the mean of equal values need not be exact
    r2 = 1 - unexplained / around_mean if varies and math.isfinite(around_mean) else math.nan
    return {"r2": r2, "mae": float(errors.mean()), "medae": float(np.median(errors))}


def spearman(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Spearman's rank correlation, ties sharing their average rank; NaN where one side does not vary.

    >>> spearman([1, 2, 3, 4], [10, 20, 40, 30])
    0.8
    """
    true, guess = _pair(truth, predicted)
    if not _is_defined(true, guess):
        return math.nan
    middle = (len(true) + 1) / 2  # the mean of all ranks, whatever the ties
    a, b = rankdata(true) - middle, rankdata(guess) - middle
    scale = math.sqrt(float(a @ a) * float(b @ b))
    return min(1.0, max(-1.0, float(a @ b) / scale)) if scale else math.nan


def spearman_matrix(columns: ArrayLike) -> Floats:
    """Spearman's ρ of every two columns on the rows in which both are known (not NaN); NaN where one does not vary there.

    Columns that are known in the same rows are ranked together; patterns of known rows are few.

    >>> spearman_matrix([[1, 2, 3], [2, 4, 1], [3, 6, 2], [4, math.nan, 0]]).round(2)
    array([[ 1. ,  1. , -0.8],
           [ 1. ,  1. , -0.5],
           [-0.8, -0.5,  1. ]])
    """
    values = np.asarray(columns, np.float64)
    rho = np.full((values.shape[1],) * 2, np.nan)
    patterns, pattern = np.unique(~np.isnan(values.T), axis=0, return_inverse=True)
    each = range(len(patterns))
    for a, b in [*combinations(each, 2), *zip(each, each, strict=True)]:  # alone last: there all its rows count
        here = np.isin(pattern.ravel(), (a, b))
        rho[np.ix_(here, here)] = _rank_correlations(values[np.ix_(patterns[a] & patterns[b], here)])
    return rho


def _rank_correlations(columns: Floats) -> Floats:
    """Spearman's ρ of every two columns without unknowns."""
    if not len(columns):
        return np.full((columns.shape[1],) * 2, np.nan)
    centred = rankdata(columns, axis=0) - (len(columns) + 1) / 2
    scale = np.sqrt((centred**2).sum(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.clip(centred.T @ centred / np.outer(scale, scale), -1, 1))


def precision_at(
    truth: ArrayLike, predicted: ArrayLike, n_points: int = 100, n_draws: int = 5, seed: int = 0
) -> PrecisionCurve:
    """Precision@k%: which part of the k% of pages with most in truth is among the k% with most predicted, for all k.

    No two pages may share a rank, so ties on both sides are resolved at random, and the curve is the mean of `n_draws` draws.
    The top k% are at least one page. There is no top 0%: there the curve continues at the height of its first point, so that a
    perfect ranking has area 1; a random one follows the diagonal, area 0.5.

    >>> precision_at([4, 3, 2, 1], [4, 3, 1, 2], n_points=4).precision
    array([1. , 1. , 1. , 0.66666667, 1. ])

    References: LBLA section 7, figures 14 and 15.
    """
    true, guess = _pair(truth, predicted)
    share = np.linspace(0, 1, n_points + 1)
    if not _is_defined(true, guess):
        return PrecisionCurve(share, np.full(len(share), np.nan), math.nan)
    n = len(true)
    top = np.clip(np.rint(share * n).astype(np.int64), 1, n)
    top[0] = top[1]
    true_place, guess_place = (rankdata(-values, "dense").astype(np.int64) for values in (true, guess))
    rng = np.random.default_rng(seed)
    precision = np.zeros(len(share))
    for _ in range(n_draws):
        # A page is in both tops of k once k is past the worse of its two ranks.
        worse = np.maximum(_ranks(true_place, rng), _ranks(guess_place, rng))
        n_in_both = np.cumsum(np.bincount(worse, minlength=n))
        precision += n_in_both[top - 1] / top / n_draws
    return PrecisionCurve(share, precision, float(np.trapezoid(precision, share)))


def calibration(truth: ArrayLike, probability: ArrayLike, n_bins: int = 10) -> list[CalibrationBin]:
    """Predicted against observed: what share of the pages with about the same probability was positive.

    Bins hold equally many pages, except that pages of equal probability are never parted, so there can be fewer than `n_bins`.

    >>> calibration([0, 1, 1, 1], [0.2, 0.2, 0.9, 0.9], n_bins=2)[0]
    CalibrationBin(predicted=0.2, observed=0.5, count=2)
    """
    true, chance = _pair(truth, probability)
    if not _is_defined(true, chance):
        return []
    order = np.argsort(chance, kind="stable")
    true, chance = true[order], chance[order]
    cuts = np.arange(n_bins) * len(true) // n_bins
    starts = np.unique(np.searchsorted(chance, chance[cuts]))
    counts = np.diff(starts, append=len(true))
    predicted, observed = (np.add.reduceat(values, starts) / counts for values in (chance, true))
    return [CalibrationBin(float(p), float(o), int(n)) for p, o, n in zip(predicted, observed, counts, strict=True)]


def expected_calibration_error(truth: ArrayLike, probability: ArrayLike, n_bins: int = 10) -> float:
    """The mean distance between predicted and observed over the bins of `calibration`, weighted by their pages.

    >>> round(expected_calibration_error([0, 1, 1, 1], [0.2, 0.2, 0.9, 0.9], n_bins=2), 3)
    0.2
    """
    bins = calibration(truth, probability, n_bins)
    if not bins:
        return math.nan
    return sum(bin.count * abs(bin.predicted - bin.observed) for bin in bins) / sum(bin.count for bin in bins)


def log_loss(truth: ArrayLike, probability: ArrayLike) -> float:
    """The mean negative logarithm of the probability given to what came, probabilities kept `CLIP` away from 0 and 1.

    >>> round(log_loss([1, 0], [0.5, 0.5]), 4)
    0.6931
    """
    true, chance = _pair(truth, probability)
    if not _is_defined(true, chance):
        return math.nan
    chance = np.clip(chance, CLIP, 1 - CLIP)
    return float(-np.mean(np.where(true == 1, np.log(chance), np.log1p(-chance))))


def mean_log_likelihood(distribution: Likelihood, truth: ArrayLike) -> float:
    """The mean logarithm of the likelihood that predicted distributions give to what came; higher is better."""
    true = np.asarray(truth, np.float64)
    return float(np.mean(distribution.log_likelihood(true))) if len(true) else math.nan


def _pair(truth: ArrayLike, predicted: ArrayLike) -> tuple[Floats, Floats]:
    true, guess = np.asarray(truth, np.float64).ravel(), np.asarray(predicted, np.float64).ravel()
    if len(true) != len(guess):
        raise ValueError(
            f"{len(true):,} true values, but {len(guess):,} predicted ones: they must be of the same pages"
        )
    return true, guess


def _is_defined(*columns: Floats) -> bool:
    return all(len(values) and not np.isnan(values).any() for values in columns)


def _ranks(place: Ints, rng: np.random.Generator) -> Ints:
    """Ranks from 0 on for places with ties, which are resolved at random."""
    n = len(place)
    ranks = np.empty(n, np.int64)
    ranks[np.argsort(place * n + rng.permutation(n))] = np.arange(n)
    return ranks
