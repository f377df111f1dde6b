"""Which features a model relies on: how much worse it gets on held-out pages once a feature is shuffled among them.

Of two features with the same information, a model needs only one, so alone neither looks important (LBLA section 5.3 warns of it).
`correlated_groups` finds such features, and `permutation_importance` shuffles them together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from scipy.stats import rankdata

from recrawl.core.arrays import Flags, Floats, Ints

Array = NDArray[Any]

_UNRELATED = 2.0  # the distance of features whose correlation is undefined: farther than any threshold
_ROUNDING = 1e-9  # distance that rounding may put between two copies of a feature


@dataclass(frozen=True)
class FeatureImportance:
    """How much a score drops when a feature, or a group of them, is shuffled."""

    name: str
    mean: float
    spread: float  # standard deviation of `drops`
    drops: tuple[float, ...]  # one for each repeat


def permutation_importance(
    predict: Callable[[Array], Array],
    X: Array,  # noqa: N803, the field's name for [row, feature]
    truth: Array,
    score: Callable[[Array, Array], float],
    groups: Mapping[str, Sequence[int]] | None = None,
    *,
    n_repeats: int = 5,
    seed: int = 0,
    max_rows: int = 100_000,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[FeatureImportance]:
    """The importance of every group of columns of `X`, the most important first; give it rows the model has not learned from.

    `score(truth, predicted)` is better when higher. The columns of a group keep their values together: all are taken from the
    same other row. Without `groups` every column is one, named by its number. Every group meets the same `n_repeats`
    shuffles, so importances differ by the features, not by luck, and do not depend on the other groups.
    Of more than `max_rows` rows, that many are drawn. `on_progress` is called with the number of groups done and of all.

    >>> X = np.random.default_rng(0).random((1000, 2))
    >>> accuracy = lambda truth, predicted: float((truth == predicted).mean())
    >>> groups = {"noise": [0], "cause": [1]}
    >>> importances = permutation_importance(lambda X: X[:, 1] > 0.5, X, X[:, 1] > 0.5, accuracy, groups)
    >>> [(importance.name, round(importance.mean, 1)) for importance in importances]
    [('cause', 0.5), ('noise', 0.0)]

    References: Breiman (2001), Random forests; LBLA section 5.3.
    """
    rng = np.random.default_rng(seed)
    rows = _some_rows(len(X), max_rows, rng)
    truth, shuffled = np.asarray(truth)[rows], np.array(X[rows])
    shuffles = [rng.permutation(len(rows)) for _ in range(n_repeats)]
    groups = {str(column): [column] for column in range(shuffled.shape[1])} if groups is None else groups
    whole = score(truth, predict(shuffled)) if len(rows) else math.nan
    importances = []
    for name, group in groups.items():
        columns = np.asarray(group, np.int64)
        kept, drops = shuffled[:, columns], [math.nan] * n_repeats
        for repeat, shuffle in enumerate(shuffles if len(rows) else ()):
            shuffled[:, columns] = kept[shuffle]
            drops[repeat] = whole - score(truth, predict(shuffled))
        shuffled[:, columns] = kept
        importances.append(_summary(name, drops))
        if on_progress is not None:
            on_progress(len(importances), len(groups))
    return sorted(importances, key=lambda importance: (math.isnan(importance.mean), -importance.mean))


def correlated_groups(
    X: Array,  # noqa: N803
    names: Sequence[str],
    threshold: float = 0.9,
    *,
    max_rows: int = 20_000,
    seed: int = 0,
) -> dict[str, list[int]]:
    """Columns of `X` with about the same information, as groups for `permutation_importance`.

    Clusters by average linkage on 1 - |Spearman|: the members of two clusters that are joined correlate at least `threshold` on
    average. Correlations are taken over the rows in which both columns are known. A column that does not vary stays alone.

    >>> X = np.array([[1.0, 10, 5], [2, 20, 9], [3, 30, 1], [4, 40, 7]])
    >>> correlated_groups(X, ["size", "words", "depth"])
    {'size and 1 more': [0, 1], 'depth': [2]}
    """
    if len(names) != X.shape[1]:
        raise ValueError(f"{len(names):,} names for {X.shape[1]:,} columns: every column needs one")
    rows = _some_rows(len(X), max_rows, np.random.default_rng(seed))
    members: dict[int, list[int]] = {}
    for column, cluster in enumerate(_clusters(_distances(np.asarray(X[rows], np.float64)), 1 - threshold)):
        members.setdefault(int(cluster), []).append(column)
    return {_group_name([names[column] for column in group]): group for group in members.values()}


def _some_rows(n_rows: int, max_rows: int, rng: np.random.Generator) -> Ints:
    if n_rows <= max_rows:
        return np.arange(n_rows)
    return np.sort(rng.choice(n_rows, max_rows, replace=False))


def _summary(name: str, drops: Sequence[float]) -> FeatureImportance:
    if not drops or not np.isfinite(drops).all():
        return FeatureImportance(name, math.nan, math.nan, tuple(map(float, drops)))
    return FeatureImportance(name, float(np.mean(drops)), float(np.std(drops)), tuple(map(float, drops)))


def _group_name(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _clusters(distances: Floats, farthest: float) -> Ints:
    """A number for each column, equal for those in one cluster."""
    if len(distances) < 2:
        return np.arange(len(distances))
    tree = linkage(squareform(distances, checks=False), "average")
    clusters: Ints = fcluster(tree, farthest + _ROUNDING, "distance")
    return clusters


def _distances(columns: Floats) -> Floats:
    """1 - |Spearman| of every two columns.

    Every column is ranked once, over the rows in which it is known, and ranks are correlated over the rows known in both: the
    sums of all pairs are then five matrix products, where ranking again for each pair would take a sort for each.
    """
    known = ~np.isnan(columns)
    ranks = np.where(known, _ranks(columns, known), 0.0)
    here = known.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):  # no row in common: NaN, unrelated
        n = here.T @ here
        mean = ranks.T @ here / n  # [i, j]: of column i where j is known, too
        variance = (ranks**2).T @ here / n - mean**2
        correlation = np.abs(ranks.T @ ranks / n - mean * mean.T) / np.sqrt(np.maximum(variance * variance.T, 0))
    # Ranks are scaled to -1/2 to 1/2, so a variance this small is a rounding error.
    defined = (np.minimum(variance, variance.T) > 1e-12) & np.isfinite(correlation)
    distances = np.where(defined, np.maximum(1 - correlation, 0), _UNRELATED)
    np.fill_diagonal(distances, 0)
    return (distances + distances.T) / 2


def _ranks(columns: Floats, known: Flags) -> Floats:
    n_known = np.maximum(known.sum(axis=0), 1)
    # NaN ranks last if it counts as more than anything; infinity, which it then ties with, is made the largest number.
    finite = np.where(known, np.nan_to_num(columns), np.inf)
    ranks = rankdata(finite, axis=0) if len(columns) else columns
    centred: Floats = (ranks - (n_known + 1) / 2) / n_known
    return centred
