"""Counts modelled as counts: gradient boosting that predicts a distribution over 0, 1, 2, … new links.

`PoissonCounts` is the papers' assumption, made fast; `NegativeBinomialCounts` lets the variance exceed the mean; `HurdleCounts`
predicts first whether there is anything new, and then how much. These are the "more realistic probability models for the number of
new outlinks" that Dang et al. (2022), section 7, call for. All accept NaN in X, and predict sensibly where there is nothing to
learn.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import KFold
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from recrawl.core.arrays import Flags, Floats
from recrawl.models.boosting import BoostedClassifier, BoostedRegressor
from recrawl.models.distributions import (
    SMALLEST_POSITIVE_MEAN,
    CountDistribution,
    Hurdle,
    NegativeBinomial,
    Poisson,
    Truncated,
)

FEW_ROWS = 20  #: with fewer rows no tree is grown: every page gets the distribution of all rows
SUREST = 1e-6  #: no probability of a new link, and no expected count, is below one in a million
_DISPERSIONS = (1e-6, 1e3)
_ONE_FOLD_FROM = 30_000  # with this many rows one fold is enough for a single number


def as_counts(y: ArrayLike) -> Floats:
    """Y as an array of floats, or an error that says what is wrong with it.

    >>> as_counts([0, 3, -1])
    Traceback (most recent call last):
    ValueError: y must hold counts, 0 or more, but its smallest value is -1.0
    """
    counts = np.asarray(y, np.float64)
    if np.isnan(counts).any():
        raise ValueError(
            f"y must hold counts, but Input y contains NaN in {np.isnan(counts).sum()} rows; leave them out"
        )
    if counts.size and counts.min() < 0:
        raise ValueError(f"y must hold counts, 0 or more, but its smallest value is {counts.min()}")
    return counts


def smoothed_share(hits: Flags, weight: Floats) -> float:
    """The share of hits by Laplace's rule (k + 1) / (n + 2): never 0 and never 1."""
    n = len(hits)
    return float((np.average(hits, weights=weight) * n + 1) / (n + 2))


def constant_mean(y: Floats, weight: Floats) -> float:
    """The mean of y; if all are zero, the Poisson mean under which P(y ≥ 1) follows Laplace's rule.

    >>> constant_mean(np.zeros(98), np.ones(98))
    0.01005...
    """
    if y.any():
        return float(np.average(y, weights=weight))
    return float(-np.log1p(-smoothed_share(y > 0, weight)))


class CountRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What all count models share: the checks, and predictions that follow from `predict_distribution`.

    A model implements `_learn` and `_distribution`.
    """

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Learn the distribution of counts y (0 or more) from features X (NaN allowed)."""
        if y is not None:  # scikit-learn explains best what is wrong with None
            as_counts(y)
        numbers = (np.float64, np.float32)
        table, counts = validate_data(self, X, y, ensure_all_finite="allow-nan", dtype=numbers, y_numeric=True)
        weight = _check_sample_weight(sample_weight, table, dtype=np.float64, ensure_non_negative=True)
        kept = weight > 0
        self._learn(table[kept], as_counts(counts)[kept], weight[kept])
        return self

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """The expected count of every row."""
        return self.predict_distribution(X).mean

    def predict_positive(self, X: Any) -> Floats:  # noqa: N803
        """P(y ≥ 1) of every row."""
        return self.predict_distribution(X).p_positive

    def predict_distribution(self, X: Any) -> CountDistribution:  # noqa: N803
        """The whole distribution of every row's count."""
        check_is_fitted(self)
        return self._distribution(validate_data(self, X, reset=False, ensure_all_finite="allow-nan"))

    def _learn(self, X: Floats, y: Floats, weight: Floats) -> None:  # noqa: N803
        raise NotImplementedError

    def _distribution(self, X: Floats) -> CountDistribution:  # noqa: N803
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.positive_only = True
        tags.regressor_tags.poor_score = True  # the checks score on shifted Gaussian targets, which are not counts
        return tags


class PoissonCounts(CountRegressor):
    """Boosted trees for the mean of a Poisson distribution, in seconds.

    The number of new links as a Poisson variable: Dang et al. (2022), section 5.1.

    >>> age = np.repeat([[1.0], [np.nan]], 50, axis=0)
    >>> model = PoissonCounts(max_iter=100).fit(age, np.repeat([0, 4], 50))
    >>> model.predict([[1.0], [np.nan]]).round(1)
    array([0., 4.])
    """

    def __init__(
        self,
        learning_rate: float = 0.05,
        max_iter: int = 200,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_leaf_nodes: int | None = 31,
        random_state: int | None = None,
    ) -> None:
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_leaf_nodes = max_leaf_nodes
        self.random_state = random_state

    def _learn(self, X: Floats, y: Floats, weight: Floats) -> None:  # noqa: N803
        self.mean_ = self._mean_model(X, y, weight)

    def _distribution(self, X: Floats) -> CountDistribution:  # noqa: N803
        return Poisson(_means(self.mean_, X))

    def _mean_model(self, X: Floats, y: Floats, weight: Floats) -> Any:  # noqa: N803
        """The boosted trees, or one number where there is too little to learn from."""
        if len(y) < FEW_ROWS or not y.any():
            return constant_mean(y, weight)
        return self._boosted(BoostedRegressor, loss="poisson").fit(X, y, sample_weight=weight)

    def _boosted(self, kind: Any, **settings: Any) -> Any:
        """Boosted trees with this model's settings; without early stopping, so that there are `max_iter` of them."""
        names = ("learning_rate", "max_iter", "min_samples_leaf", "l2_regularization", "max_leaf_nodes", "random_state")
        return kind(early_stopping=False, **{name: getattr(self, name) for name in names}, **settings)

    def _unseen_means(self, X: Floats, y: Floats, weight: Floats) -> tuple[Floats, NDArray[np.intp]]:  # noqa: N803
        """Means for rows that the trees did not see, and which rows: errors in training rows are too small."""
        seed = self.random_state if isinstance(self.random_state, int) else 0
        folds = KFold(3, shuffle=True, random_state=seed).split(X)
        means, rows = [], []
        for train, test in islice(folds, 1 if len(y) >= _ONE_FOLD_FROM else 3):
            means.append(_means(self._mean_model(X[train], y[train], weight[train]), X[test]))
            rows.append(test)
        return np.concatenate(means), np.concatenate(rows)


class NegativeBinomialCounts(PoissonCounts):
    """The means of `PoissonCounts`, and one dispersion, the most likely one on rows that the trees have not seen.

    Costs three more fits (one more from 30,000 rows on).
    """

    def _learn(self, X: Floats, y: Floats, weight: Floats) -> None:  # noqa: N803
        super()._learn(X, y, weight)
        self.dispersion_ = 0.0
        if not y.any():
            return  # the most likely one would be unbounded
        if isinstance(self.mean_, float):
            means, rows = np.full(len(y), max(self.mean_, SUREST)), np.arange(len(y))
        else:
            means, rows = self._unseen_means(X, y, weight)
        self.dispersion_ = likeliest_dispersion(NegativeBinomial, means, y[rows], weight[rows])

    def _distribution(self, X: Floats) -> CountDistribution:  # noqa: N803
        return NegativeBinomial(_means(self.mean_, X), self.dispersion_)


class HurdleCounts(PoissonCounts):
    """Trees for whether there is anything new, trees for how much if so, one dispersion for the latter.

    The second are fitted to y − 1 of the positive rows with Poisson loss, so the mean of positives is above one. The dispersion is
    the most likely one on rows that they have not seen. Classes are not balanced: probabilities are meant to be calibrated, not to
    make up for rare positives.
    """

    def _learn(self, X: Floats, y: Floats, weight: Floats) -> None:  # noqa: N803
        some = y > 0
        self.presence_: Any = smoothed_share(some, weight)
        if len(y) >= FEW_ROWS and some.any() and not some.all():
            self.presence_ = self._boosted(BoostedClassifier).fit(X, some, sample_weight=weight)
        self.extra_, self.dispersion_ = 0.0, 0.0
        if some.any():
            self._learn_positive(X[some], y[some], weight[some])

    def _learn_positive(self, X: Floats, y: Floats, weight: Floats) -> None:  # noqa: N803
        beyond_one = np.maximum(y - 1, 0)
        if len(y) < FEW_ROWS or not beyond_one.any():
            self.extra_ = float(np.average(beyond_one, weights=weight))
            means, rows = np.full(len(y), 1 + self.extra_), np.arange(len(y))
        else:
            self.extra_ = self._mean_model(X, beyond_one, weight)
            means, rows = self._unseen_means(X, beyond_one, weight)
            means = 1 + means
        self.dispersion_ = likeliest_dispersion(Truncated, means, y[rows], weight[rows])

    def _distribution(self, X: Floats) -> CountDistribution:  # noqa: N803
        if isinstance(self.presence_, float):
            present = np.full(len(X), self.presence_)
        else:
            present = np.clip(self.presence_.predict_proba(X)[:, 1], SUREST, 1 - SUREST)
        positive = np.maximum(1 + _means(self.extra_, X), SMALLEST_POSITIVE_MEAN)
        return Hurdle(present, Truncated(positive, self.dispersion_))


def likeliest_dispersion(family: Any, means: Floats, y: Floats, weight: Floats) -> float:
    """The dispersion under which the counts y, with these means, are most likely; 0 where no dispersion is best."""

    def surprise(log_dispersion: float) -> float:
        return -float(np.dot(weight, family(means, np.exp(log_dispersion)).log_likelihood(y)))

    best = minimize_scalar(surprise, bounds=np.log(_DISPERSIONS), method="bounded", options={"xatol": 1e-3})
    return float(np.exp(best.x)) if best.fun < surprise(np.log(_DISPERSIONS[0])) else 0.0


def _means(model: Any, X: Floats) -> Floats:  # noqa: N803
    """The predictions of boosted trees, or of the one number in their place; never below one in a million."""
    means = np.full(len(X), model) if isinstance(model, float) else model.predict(X)
    return np.asarray(np.maximum(means, SUREST))
