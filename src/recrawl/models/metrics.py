"""How good predictions are: yes or no, how many, in which order, and how likely.

The usual scores are those of scikit-learn and scipy, imported when they are needed. Every function takes arrays of equal length and
returns NaN where there is no score: for no pages, for a NaN among the values, and where the formula divides by 0.

References: Dang et al. (2022), "Look back, look around", sections 5.3 and 7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from recrawl.core.arrays import Floats, Ints

#: How near to 0 and 1 a probability may come in `log_loss`: one sure mistake costs 34.5, not infinitely much.
CLIP = 1e-15


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
    """A predicted distribution that gives the likelihood of the true values."""

    def log_likelihood(self, y: Floats, /) -> Floats:
        """The natural logarithm of the likelihood of each value."""


def classification_scores(truth: ArrayLike, predicted: ArrayLike) -> dict[str, float]:
    """Precision, recall, F1 and balanced accuracy of yes (1) and no (0).

    Precision without a predicted 1, and recall without a true one, are 0, so that a model that never says yes scores 0 rather
    than NaN. Balanced accuracy is the mean recall of the classes that occur.

    >>> classification_scores([1, 1, 0, 0, 0], [1, 0, 1, 0, 0])["balanced_accuracy"]
    0.5833333333333333
    """
    true, guess = _pair(truth, predicted)
    if not _is_defined(true, guess):
        return dict.fromkeys(("precision", "recall", "f1", "balanced_accuracy"), math.nan)
    from sklearn.metrics import precision_recall_fscore_support, recall_score

    yes, said = true == 1, guess == 1
    precision, recall, f1, _ = precision_recall_fscore_support(yes, said, average="binary", zero_division=0.0)
    # scikit-learn's own balanced accuracy warns where one of the classes does not occur.
    balanced = recall_score(yes, said, labels=np.unique(yes), average="macro")
    return {
        "precision": float(precision),
        "recall": float(recall),
        "f1": float(f1),
        "balanced_accuracy": float(balanced),
    }


def regression_scores(truth: ArrayLike, predicted: ArrayLike) -> dict[str, float]:
    """R², mean and median absolute error; R² is NaN where the truth does not vary.

    >>> regression_scores([1, 2, 3], [1, 2, 5])
    {'r2': -1.0, 'mae': 0.6666666666666666, 'medae': 0.0}
    """
    true, guess = _pair(truth, predicted)
    if not (_is_defined(true, guess) and np.isfinite(true).all() and np.isfinite(guess).all()):
        return dict.fromkeys(("r2", "mae", "medae"), math.nan)
    from sklearn.metrics import mean_absolute_error, median_absolute_error, r2_score

    with np.errstate(over="ignore", invalid="ignore"):  # squares of absurd values are infinite, and R² then NaN
        variance = float(np.var(true))
        # scikit-learn calls R² 0 or 1 where the truth does not vary; the mean of equal values need not be exact.
        varies = 0 < variance < math.inf and true.min() < true.max()
        return {
            "r2": float(r2_score(true, guess)) if varies else math.nan,
            "mae": float(mean_absolute_error(true, guess)),
            "medae": float(median_absolute_error(true, guess)),
        }


def spearman(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Spearman's rank correlation, ties sharing their average rank; NaN where one side does not vary.

    >>> round(spearman([1, 2, 3, 4], [10, 20, 40, 30]), 12)
    0.8
    """
    true, guess = _pair(truth, predicted)
    if not _is_defined(true, guess) or not (true.min() < true.max() and guess.min() < guess.max()):
        return math.nan
    from scipy.stats import spearmanr

    return float(spearmanr(true, guess).statistic)


def spearman_matrix(columns: ArrayLike) -> Floats:
    """Spearman's ρ of every two columns on the rows in which both are known (not NaN); NaN where one does not vary there.

    Columns that are known in the same rows are ranked together; there are few patterns of known rows. (scipy's `spearmanr` with
    nan_policy="omit" takes each pair of columns by itself, which is hundreds of times slower.)

    >>> spearman_matrix([[1, 2, 3], [2, 4, 1], [3, 6, 2], [4, math.nan, 0]]).round(2)
    array([[ 1. ,  1. , -0.8],
           [ 1. ,  1. , -0.5],
           [-0.8, -0.5,  1. ]])
    """
    values = np.asarray(columns, np.float64)
    rho = np.full((values.shape[1],) * 2, np.nan)
    patterns, pattern = np.unique(~np.isnan(values.T), axis=0, return_inverse=True)
    each = range(len(patterns))
    for a, b in [
        *combinations(each, 2),
        *zip(each, each, strict=True),
    ]:  # a pattern with itself last: it uses all its rows
        here = np.isin(pattern.ravel(), (a, b))
        rho[np.ix_(here, here)] = _rank_correlations(values[np.ix_(patterns[a] & patterns[b], here)])
    return rho


def _rank_correlations(columns: Floats) -> Floats:
    """Spearman's ρ of every two columns without unknowns."""
    if not len(columns):
        return np.full((columns.shape[1],) * 2, np.nan)
    from scipy.stats import rankdata

    centred = rankdata(columns, axis=0) - (len(columns) + 1) / 2
    scale = np.sqrt((centred**2).sum(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.clip(centred.T @ centred / np.outer(scale, scale), -1, 1))


def precision_at(
    truth: ArrayLike, predicted: ArrayLike, n_points: int = 100, n_draws: int = 5, seed: int = 0
) -> PrecisionCurve:
    """Precision@k%: the share of the true top k% of pages that is in the predicted top k%, for all k.

    No two pages may share a rank, so ties on both sides are broken at random, and the curve is the mean of `n_draws` draws.
    The top k% are at least one page. There is no top 0%: there the curve has the height of its first point, so that a perfect
    ranking has area 1; a random one follows the diagonal, area 0.5.

    >>> precision_at([4, 3, 2, 1], [4, 3, 1, 2], n_points=4).precision
    array([1. , 1. , 1. , 0.66666667, 1. ])

    References: Dang et al. (2022), section 7, figures 14 and 15.
    """
    true, guess = _pair(truth, predicted)
    share = np.linspace(0, 1, n_points + 1)
    if not _is_defined(true, guess):
        return PrecisionCurve(share, np.full(len(share), np.nan), math.nan)
    from scipy.stats import rankdata

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
    """Predicted against observed: the share of positives among pages with about the same probability.

    Bins hold equally many pages, except that pages of equal probability stay together, so there can be fewer than `n_bins`.
    (scikit-learn's `calibration_curve` separates them, and gives no counts.)

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
    """The mean negative logarithm of the probability given to the truth, probabilities kept `CLIP` away from 0 and 1.

    >>> round(log_loss([1, 0], [0.5, 0.5]), 4)
    0.6931
    """
    true, chance = _pair(truth, probability)
    if not _is_defined(true, chance):
        return math.nan
    from sklearn.metrics import log_loss as mean_log_loss

    return float(mean_log_loss(true == 1, np.clip(chance, CLIP, 1 - CLIP), labels=[False, True]))


def mean_log_likelihood(distribution: Likelihood, truth: ArrayLike) -> float:
    """The mean logarithm of the likelihood that predicted distributions give to the truth; higher is better."""
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
    """Ranks from 0 on for places with ties, which are broken at random."""
    n = len(place)
    ranks = np.empty(n, np.int64)
    ranks[np.argsort(place * n + rng.permutation(n))] = np.arange(n)
    return ranks
