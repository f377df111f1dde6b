"""Boosted trees of scikit-learn and LightGBM, on as many threads as are useful, for tables in which a column may be empty.

A young history has lags that no page knows yet, and a fold or the positive rows alone may lack a column that the whole table has.
The bins of `HistGradientBoosting` cannot be cut from no values (scikit-learn 1.9 raises "window shape cannot be larger than input
array shape"), so such columns are held constant while learning; no tree then splits on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

# Bins are cut from a sample of 200,000 rows: a column known in a smaller share of the rows may be empty in the sample.
_HARDLY_KNOWN = 1e-4
#: Rows up to which one thread is used. More threads would spend their time waiting for each other, on a busy machine minutes.
ONE_THREAD_UP_TO = 100_000
_MOST_LEAVES = 131_072  # LightGBM allows no more


def _threads(rows: Any) -> threadpool_limits:
    return threadpool_limits(1 if len(rows) <= ONE_THREAD_UP_TO else None, user_api="openmp")


def _unless_equal(sample_weight: Any) -> Any:
    """None where all weights are equal: with weights scikit-learn 1.9 takes longer to cut the bins than to grow the trees."""
    return None if sample_weight is None or np.ptp(np.asarray(sample_weight)) == 0 else sample_weight


class BoostedRegressor(HistGradientBoostingRegressor):  # type: ignore[misc]  # scikit-learn has no types
    """`HistGradientBoostingRegressor` that ignores columns in which (nearly) nothing is known.

    On the logarithmic scale of counts many trees that each correct a little can add up to millions of links for a page unlike all
    in training. So no row is expected to have more than the largest count in training.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Grow the trees."""
        with _threads(y):
            super().fit(without_empty_columns(X), y, _unless_equal(sample_weight))
        self.most_ = float(np.max(y))
        return self

    def predict(self, X: Any) -> Any:  # noqa: N803
        """The expected value of every row."""
        with _threads(X):
            expected = super().predict(X)
        return np.minimum(expected, getattr(self, "most_", np.inf)) if self.loss == "poisson" else expected


class BoostedClassifier(HistGradientBoostingClassifier):  # type: ignore[misc]  # scikit-learn has no types
    """`HistGradientBoostingClassifier` that ignores columns in which (nearly) nothing is known."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Grow the trees."""
        with _threads(y):
            super().fit(without_empty_columns(X), y, _unless_equal(sample_weight))
        return self

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """The probability of every class."""
        with _threads(X):
            return super().predict_proba(X)


class LightRegressor(LGBMRegressor):
    """`LGBMRegressor` that keeps to one thread for a small table, and takes `num_leaves=None` for no limit on leaves."""

    n_used: int | None = None  # only the first trees count, see `tuning.first_trees`

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # type: ignore[override]  # noqa: N803
        """Grow the trees."""
        with _fitted_to(self, y):
            super().fit(X, y, sample_weight)
        return self

    def predict(self, X: Any, **more: Any) -> Any:  # type: ignore[override]  # noqa: N803
        """The expected value of every row."""
        return super().predict(X, **{"num_iteration": self.n_used, **_one_thread(X), **more})


class LightClassifier(LGBMClassifier):
    """`LGBMClassifier` that keeps to one thread for a small table, and takes `num_leaves=None` for no limit on leaves."""

    n_used: int | None = None  # only the first trees count, see `tuning.first_trees`

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # type: ignore[override]  # noqa: N803
        """Grow the trees."""
        with _fitted_to(self, y):
            super().fit(X, y, sample_weight)
        return self

    def predict_proba(self, X: Any, **more: Any) -> Any:  # type: ignore[override]  # noqa: N803
        """The probability of every class."""
        return super().predict_proba(X, **{"num_iteration": self.n_used, **_one_thread(X), **more})


@contextmanager
def _fitted_to(model: Any, rows: Any) -> Iterator[None]:
    """The settings of LightGBM for that many rows.

    It takes the number of threads from its own setting, not from OpenMP; and it knows no `num_leaves` without a limit, but a tree
    cannot have more leaves than there are rows for.
    """
    wanted = {"n_jobs": model.n_jobs, "num_leaves": model.num_leaves}
    model.n_jobs = 1 if len(rows) <= ONE_THREAD_UP_TO else model.n_jobs
    if model.num_leaves is None:
        model.num_leaves = most_leaves(len(rows), model.min_child_samples)
    try:
        yield
    finally:
        vars(model).update(wanted)


def most_leaves(n_rows: int, min_rows: int) -> int:
    """How many leaves a tree on that many rows can have, if each holds at least `min_rows`.

    >>> most_leaves(1000, 25), most_leaves(10, 25)
    (40, 2)
    """
    return min(max(n_rows // max(min_rows, 1), 2), _MOST_LEAVES)


def _one_thread(rows: Any) -> dict[str, Any]:
    return {"num_threads": 1} if len(rows) <= ONE_THREAD_UP_TO else {}


def without_empty_columns(X: Any) -> Any:  # noqa: N803
    """The same table with 0 in every cell of the columns that hold (nearly) no number; X itself if there are none.

    >>> without_empty_columns(np.array([[1.0, np.nan], [np.nan, np.nan]]))
    array([[ 1.,  0.], [nan,  0.]])
    """
    values = np.asarray(X)
    if values.ndim != 2 or values.dtype.kind != "f":
        return X
    known = np.count_nonzero(~np.isnan(values), axis=0)
    empty = known < max(1, _HARDLY_KNOWN * len(values))
    if not empty.any():
        return X
    if hasattr(X, "assign"):  # a pandas table keeps its column names
        return X.assign(**dict.fromkeys(X.columns[empty], 0.0))
    filled = values.copy()
    filled[:, empty] = 0
    return filled
