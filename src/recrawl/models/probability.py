"""Wrappers that give every learner the same interface, also where its library refuses the data.

A classifier here always has the classes 0 (nothing new) and 1 (something new), in that order, so that `predict_proba(X)[:, 1]` is
the probability of new links even if training has shown only one of the two.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from recrawl.core.arrays import Floats, Ints
from recrawl.models.counts import FEW_ROWS, SUREST, CountRegressor, as_counts, constant_mean, smoothed_share
from recrawl.models.distributions import CountDistribution, Poisson


class _Presence(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Predictions of a classifier of 0 and 1 that follow from the probability of 1."""

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """One row per page: P(nothing new), P(something new)."""
        check_is_fitted(self)
        present = self._probability(X)
        return np.column_stack([1 - present, present])

    def predict(self, X: Any) -> Ints:  # noqa: N803
        """1 where something new is at least as probable as nothing."""
        return (self.predict_proba(X)[:, 1] >= 0.5).astype(np.int64)

    def _probability(self, X: Any) -> Floats:  # noqa: N803
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.classifier_tags.multi_class = False
        return tags


class ConstantIfOneClass(_Presence):
    """A classifier of presence (y > 0) that gives a constant probability when training shows one class only.

    The constant follows Laplace's rule: after n pages without new links, the next has one with 1 / (n + 2).

    >>> from sklearn.ensemble import ExtraTreesClassifier
    >>> never = ConstantIfOneClass(ExtraTreesClassifier()).fit(np.ones((8, 2)), np.zeros(8))
    >>> never.predict_proba([[1, 1]])
    array([[0.9, 0.1]])
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Learn presence from y: 0, or anything above it."""
        present = as_counts(y) > 0
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = np.shape(X)[1]
        self.constant_: float | None = None
        if present.all() or not present.any():
            self.constant_ = smoothed_share(present, _check_sample_weight(sample_weight, X, dtype=np.float64))
        else:
            self.estimator_ = clone(self.estimator).fit(X, present.astype(np.int64), **_weights(sample_weight))
        return self

    def _probability(self, X: Any) -> Floats:  # noqa: N803
        if self.constant_ is not None:
            return np.full(len(X), self.constant_)
        return np.asarray(self.estimator_.predict_proba(X)[:, 1], np.float64)


class ConstantIfOneValue(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A regressor that predicts a constant if all of y is one value; a single row is the smallest such case."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Learn y, unless there is nothing to learn."""
        values = np.asarray(y, np.float64)
        self.n_features_in_ = np.shape(X)[1]
        self.constant_: float | None = None
        if np.ptp(values) == 0:
            self.constant_ = float(values[0])
        else:
            self.estimator_ = clone(self.estimator).fit(X, values, **_weights(sample_weight))
        return self

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """The value of every row."""
        check_is_fitted(self)
        if self.constant_ is not None:
            return np.full(len(X), self.constant_)
        return np.asarray(self.estimator_.predict(X), np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class PresenceFromCounts(_Presence):
    """A model of counts as a classifier of presence.

    Give it the counts as y where they are known: it learns from how many, not only from whether. Given only 0 and 1, the expected
    count is itself the probability of a 1, since 1 − exp(−mean) would be too small.

    >>> from recrawl.models.counts import PoissonCounts
    >>> model = PresenceFromCounts(PoissonCounts()).fit(np.ones((40, 1)), np.tile([0, 1], 20))
    >>> model.predict_proba([[1.0]]).round(2)
    array([[0.5, 0.5]])
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Learn from counts, or from 0 and 1."""
        counts = as_counts(y)
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = np.shape(X)[1]
        self.is_presence_only_ = bool(counts.max(initial=0) <= 1)
        self.estimator_ = clone(self.estimator).fit(X, counts, sample_weight=sample_weight)
        return self

    def _probability(self, X: Any) -> Floats:  # noqa: N803
        if self.is_presence_only_:
            return np.asarray(np.clip(self.estimator_.predict(X), SUREST, 1 - SUREST))
        return np.asarray(self.estimator_.predict_positive(X))


class NaturalGradientCounts(CountRegressor):
    """NGBoost with a Poisson distribution (NNL-NGB): the papers' probabilistic learner with default settings.

    All rows are used in every step, as in the papers; `minibatch_frac=0.1` is many times faster. The trees are seeded, which
    NGBoost does not do by itself.

    References: Duan et al. (2020), "NGBoost"; Dang et al. (2022), section 5.3.
    """

    def __init__(
        self,
        n_estimators: int = 500,
        learning_rate: float = 0.01,
        minibatch_frac: float = 1.0,
        random_state: int | None = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.minibatch_frac = minibatch_frac
        self.random_state = random_state

    def _learn(self, X: Floats, y: Floats, weight: Floats) -> None:  # noqa: N803
        y = np.rint(y)  # NGBoost refuses anything but whole numbers
        self.constant_: float | None = None
        if len(y) < FEW_ROWS or np.ptp(y) == 0:
            self.constant_ = constant_mean(y, weight)
        else:
            self.model_ = self._unfitted().fit(X, y, sample_weight=weight)

    def _unfitted(self) -> Any:
        from ngboost import NGBRegressor  # takes two seconds to import, and only this learner needs it
        from ngboost.distns import Poisson as PoissonParameter

        return NGBRegressor(
            Dist=PoissonParameter,
            Base=DecisionTreeRegressor(max_depth=3, random_state=self.random_state),
            n_estimators=self.n_estimators,
            learning_rate=self.learning_rate,
            minibatch_frac=self.minibatch_frac,
            random_state=self.random_state,
            verbose=False,
        )

    def _distribution(self, X: Floats) -> CountDistribution:  # noqa: N803
        if self.constant_ is not None:
            return Poisson(np.full(len(X), max(self.constant_, SUREST)))
        return Poisson(np.maximum(self.model_.pred_dist(X).params["mu"], SUREST))


def _weights(sample_weight: ArrayLike | None) -> dict[str, ArrayLike]:
    """The keyword to pass on, if there is one: not every estimator takes it."""
    return {} if sample_weight is None else {"sample_weight": sample_weight}
