"""Forests of extremely randomised trees, several times as fast as those of scikit-learn, with the same rules.

They differ in how trees are grown (see `tree_passes`), not in what is grown: only the random numbers are others. A node takes
16 bytes instead of 80, so that a large forest fits into memory.

References: Geurts, Ernst and Wehenkel (2006), "Extremely randomized trees".
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs  # comes with scikit-learn
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from recrawl.core.arrays import Floats, Floats32, Ints
from recrawl.core.workers import even_ranges, in_threads
from recrawl.models.tree_growth import LANES, Growth, Tree, add_predictions, empty_tree, grow, workspace
from recrawl.models.tree_passes import Rows


class _FastTrees(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What the forests for values and for classes share.

    Fitted, it holds all trees one after the other: tree k has the nodes from `offsets_[k]` to `offsets_[k + 1]`.
    """

    n_estimators: int
    max_features: str | float | None
    min_samples_leaf: int
    random_state: Any
    n_jobs: int | None

    def first_trees(self, n: int) -> Self:
        """The forest as it was with its first n trees."""
        cut = copy(self)
        cut.offsets_, cut.gains_ = self.offsets_[: n + 1], self.gains_[:n]
        return cut

    @property
    def feature_importances_(self) -> Floats:
        """How much each feature reduces the impurity, on average over trees; together 1, or 0 if no tree was split."""
        check_is_fitted(self)
        by_tree = self.gains_.sum(axis=1, keepdims=True)
        of_split = self.gains_[by_tree[:, 0] > 0] / by_tree[by_tree[:, 0] > 0]
        return np.asarray(of_split.mean(axis=0) if len(of_split) else np.zeros(self.n_features_in_))

    def _grow(
        self, x: Floats32, y: Floats, weight: Floats | None, of_classes: tuple[float, float] = (1.0, 1.0)
    ) -> None:
        """Grow the trees; `of_classes` weighs rows with y = 0 and with y = 1, if there is no weight of rows."""
        if weight is not None:
            if not (weight > 0).any():
                raise ValueError("every row has the weight zero: there is nothing to learn from")
            x, y, weight = x[weight > 0], (y * weight)[weight > 0], weight[weight > 0]
        growth = Growth(x.shape[1], self._n_candidates(x.shape[1]), self._least_leaf(), *of_classes)
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=self.n_estimators)
        rows = Rows(_padded(x), y, np.empty(0) if weight is None else weight)
        n_threads = min(effective_n_jobs(self.n_jobs), len(seeds))
        shares = [(rows, growth, seeds[low:high]) for low, high in even_ranges(len(seeds), n_threads)]
        trees = [tree for part in in_threads(_grown, shares, n_threads) for tree in part]
        self.offsets_: Ints = np.cumsum([0] + [len(tree.split) for tree in trees])
        self.gains_: Floats = np.array([tree.gain for tree in trees])
        self.split_ = np.concatenate([tree.split for tree in trees])
        self.right_ = np.concatenate([tree.right for tree in trees])
        self.value_ = np.concatenate([tree.value for tree in trees])

    def _means(self, X: Any) -> Floats:  # noqa: N803
        """The mean prediction of the trees for every row."""
        check_is_fitted(self)
        x = np.ascontiguousarray(validate_data(self, X, reset=False, dtype=np.float32, ensure_all_finite="allow-nan"))
        forest, sums = Tree(self.split_, self.right_, self.value_, self.gains_), np.zeros(len(x))

        def predict(low: int, high: int) -> None:
            for root in self.offsets_[:-1]:
                add_predictions(x[low:high], forest, root, sums[low:high])

        in_threads(predict, even_ranges(len(x), min(effective_n_jobs(self.n_jobs), len(x))))
        return np.asarray(sums / (len(self.offsets_) - 1))

    def _n_candidates(self, n: int) -> int:
        """How many of n features are tried for a split, as scikit-learn counts them."""
        wanted = self.max_features
        if wanted is None:
            return n
        if wanted == "sqrt":
            return max(1, math.isqrt(n))
        if isinstance(wanted, int | np.integer) and wanted >= 1:
            return min(int(wanted), n)
        if isinstance(wanted, float | np.floating) and 0 < wanted <= 1:
            return max(1, int(wanted * n))
        raise ValueError(
            f"max_features is {wanted!r}; it must be 'sqrt', a number of features, a share up to 1.0, or None"
        )

    def _least_leaf(self) -> int:
        if not isinstance(self.min_samples_leaf, int | np.integer) or self.min_samples_leaf < 1:
            raise ValueError(f"min_samples_leaf is {self.min_samples_leaf!r}; it must be a whole number from 1")
        if not isinstance(self.n_estimators, int | np.integer) or self.n_estimators < 1:
            raise ValueError(f"n_estimators is {self.n_estimators!r}; it must be a whole number from 1")
        return int(self.min_samples_leaf)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class FastTreesRegressor(RegressorMixin, _FastTrees):  # type: ignore[misc]  # scikit-learn has no types
    """Extremely randomised trees for a value, as `sklearn.ensemble.ExtraTreesRegressor`.

    >>> model = FastTreesRegressor(10, random_state=0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 8, 8])
    >>> model.predict([[0.0], [3.0]])
    array([0., 8.])
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_features: str | float | None = 1.0,
        min_samples_leaf: int = 1,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.min_samples_leaf = min_samples_leaf
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Grow the trees."""
        x, values = validate_data(self, X, y, dtype=np.float32, ensure_all_finite="allow-nan", y_numeric=True)
        self._grow(x, np.asarray(values, np.float64), _row_weights(sample_weight, x))
        return self

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """The value of every row."""
        return self._means(X)


class FastTreesClassifier(ClassifierMixin, _FastTrees):  # type: ignore[misc]  # scikit-learn has no types
    """Extremely randomised trees for two classes, as `sklearn.ensemble.ExtraTreesClassifier`.

    With two classes the Gini impurity is twice the variance of 0 and 1, so these are the trees of a value.

    >>> model = FastTreesClassifier(10, random_state=0).fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
    >>> model.predict([[0.0], [3.0]])
    array(['no', 'yes'], dtype='<U3')
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_features: str | float | None = "sqrt",
        min_samples_leaf: int = 1,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.min_samples_leaf = min_samples_leaf
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Grow the trees."""
        x, labels = validate_data(self, X, y, dtype=np.float32, ensure_all_finite="allow-nan")
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is multiclass: {self.classes_}"
            )
        of_classes = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)
        weight = _row_weights(sample_weight, x)
        if weight is not None or not of_classes.all():
            weight = of_classes[codes] * (1.0 if weight is None else weight)
        self._grow(x, codes.astype(np.float64), weight, (float(of_classes[0]), float(of_classes[-1])))
        return self

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """The probability of every class for every row."""
        second = self._means(X)
        return np.column_stack([1 - second, second]) if len(self.classes_) == 2 else np.ones((len(second), 1))

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The most probable class of every row; of two equally probable ones the first."""
        most = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[most])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _row_weights(sample_weight: ArrayLike | None, x: Floats32) -> Floats | None:
    if sample_weight is None:
        return None
    return np.asarray(_check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True))


def _padded(x: Floats32) -> Floats32:
    """Rows as trees want them: missing values are infinite, and the number of columns is a multiple of `LANES`."""
    rows = np.zeros((len(x), -(-x.shape[1] // LANES) * LANES), np.float32)
    rows[:, : x.shape[1]] = x
    rows[np.isnan(rows)] = np.inf
    return rows


def _grown(rows: Rows, growth: Growth, seeds: Ints) -> list[Tree]:
    """A tree for each seed, one after the other in the same memory."""
    moved = Rows(np.empty_like(rows.x), np.empty_like(rows.y), np.empty_like(rows.weight))
    n_leaves = max(1, len(rows.y) // growth.min_leaf)
    room, trees = workspace(rows.x.shape[1], n_leaves), []
    large = empty_tree(2 * n_leaves, growth.n_features)
    for seed in seeds:
        moved.x[:], moved.y[:], moved.weight[:] = rows.x, rows.y, rows.weight
        large.gain[:] = 0.0
        n = grow(moved, large, growth, room, np.uint64(seed))
        trees.append(Tree(large.split[:n].copy(), large.right[:n].copy(), large.value[:n].copy(), large.gain.copy()))
    return trees
