"""Baselines that every learner has to beat: one column taken as it is, and always zero.

NNL-Pr, NNL-Av and CCR of Dang et al. (2022), Table 4, are the page's previous count, its average count and its content change rate,
each as the prediction itself.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.models.counts import as_counts, smoothed_share
from recrawl.models.probability import PresenceFromCounts


class Itself(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Predicts its single column; where that is not known (NaN), the mean of y in training.

    The probability of anything new is the share of positive rows in training among those whose value was zero, above zero, or not
    known, each shrunk by one imagined row towards the share of all.

    >>> previous = np.array([[0.0], [0.0], [0.0], [3.0], [5.0]])
    >>> model = Itself().fit(previous, [0, 0, 2, 1, 4])
    >>> model.predict([[7.0], [np.nan]]), model.predict_positive([[0.0], [7.0]]).round(2)
    (array([7. , 1.4]), array([0.39, 0.86]))
    """

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Remember the mean of y, and how often y is positive after zero, after more, and after nothing known."""
        values, counts = _only_column(X), as_counts(y)
        weight = np.ones(len(counts)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        self.n_features_in_ = 1
        self.mean_ = float(np.average(counts, weights=weight))
        overall = smoothed_share(counts > 0, weight)
        group, weight = _group(values), weight / weight.mean()
        rows = np.bincount(group, weight, minlength=3)
        positive = np.bincount(group, weight * (counts > 0), minlength=3)
        self.share_positive_ = (positive + overall) / (rows + 1)
        return self

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """The column."""
        check_is_fitted(self)
        values = _only_column(X)
        return np.where(np.isnan(values), self.mean_, values)

    def predict_positive(self, X: Any) -> Floats:  # noqa: N803
        """P(y ≥ 1): the share in training of rows whose value was zero, above zero, or not known."""
        check_is_fitted(self)
        return np.asarray(self.share_positive_[_group(_only_column(X))])

    def predict_presence(self, X: Any) -> Flags:  # noqa: N803
        """Whether the column is above zero, the papers' rule; where it is not known, what was more common in training."""
        values = _only_column(X)
        return np.where(np.isnan(values), self.predict_positive(X) >= 0.5, values > 0)


class AlwaysZero(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Nothing new, ever: right for most pages, and of no use (Dang et al. 2022, section 6.1: R² −0.14, median error 0)."""

    def fit(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Learn nothing."""
        self.n_features_in_ = np.shape(X)[1]
        return self

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """Zeros."""
        check_is_fitted(self)
        return np.zeros(len(X))

    predict_positive = predict

    def predict_presence(self, X: Any) -> Flags:  # noqa: N803
        """No."""
        return self.predict(X) > 0


class PresenceByValue(PresenceFromCounts):
    """A baseline as a classifier: the class by its own rule, the probability from training."""

    def predict(self, X: Any) -> Ints:  # noqa: N803
        """1 where the baseline predicts something new."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_presence(X)).astype(np.int64)

    def _probability(self, X: Any) -> Floats:  # noqa: N803
        return np.asarray(self.estimator_.predict_positive(X))


def _group(values: Floats) -> NDArray[np.intp]:
    """0: the value is zero, 1: above zero, 2: not known."""
    return np.where(np.isnan(values), 2, values > 0).astype(np.intp)


def _only_column(X: Any) -> Floats:  # noqa: N803
    """The one column of X."""
    values = np.asarray(X, np.float64)
    if values.ndim != 2 or values.shape[1] != 1:
        raise ValueError(f"This baseline predicts its single column as it is, but X has the shape {values.shape}")
    return values[:, 0]
