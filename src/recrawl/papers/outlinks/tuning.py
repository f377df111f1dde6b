"""The best settings of a learner by cross-validation over a grid, with no tree grown twice.

A model of 200 trees is the first 200 of one with 500: boosting grows them one after the other, and a forest draws their seeds in
order. So only the largest size of a grid is trained, for every other setting and fold, and the smaller ones are read off it: the
papers' four sizes cost as much as one. Fits run in parallel, each on one core, because threads within a fit of a few hundred rows
wait for each other most of the time.
"""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV

from recrawl.core.arrays import Floats32
from recrawl.models.boosting import LightClassifier, LightRegressor
from recrawl.models.fast_trees import FastTreesClassifier, FastTreesRegressor
from recrawl.papers.outlinks.settings import is_size

Grid = dict[str, list[Any]]

_BOOSTED = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
_FAST = (FastTreesClassifier, FastTreesRegressor)
_FORESTS = (ExtraTreesClassifier, ExtraTreesRegressor)
_LIGHT = (LightClassifier, LightRegressor)


def best_settings(
    estimator: Any, grid: Grid, x: Floats32, y: Floats32, scoring: str, folds: int = 5, n_jobs: int = 1
) -> dict[str, Any]:
    """The settings of the grid with the best mean score on unseen folds; of equally good ones those with the fewest trees.

    `scoring` is a name that scikit-learn knows. A fit that fails counts as the worst.
    """
    size = next((name for name in grid if is_size(name) and _can_be_cut(estimator)), None)
    sizes: list[int | None] = [None] if size is None else sorted(grid[size])
    search = GridSearchCV(
        _on_one_core(estimator, {} if size is None else {size: sizes[-1]}),
        {name: values for name, values in grid.items() if name != size},
        scoring=partial(_scores, scoring=scoring, sizes=sizes),
        cv=folds,
        refit=False,
        error_score=-np.inf,
        n_jobs=n_jobs,
    ).fit(x, y)
    means = np.array([search.cv_results_[f"mean_test_{n}"] for n in sizes])  # [size, other settings]
    of_size, of_others = np.unravel_index(np.argmax(np.nan_to_num(means, nan=-np.inf)), means.shape)
    chosen: dict[str, Any] = search.cv_results_["params"][of_others]
    return chosen if size is None else chosen | {size: sizes[of_size]}


def _on_one_core(estimator: Any, settings: dict[str, Any]) -> Any:
    one = {name: 1 for name in estimator.get_params() if name.split("__")[-1] == "n_jobs"}
    return clone(estimator).set_params(**one, **settings)


def _scores(model: Any, x: Floats32, y: Floats32, *, scoring: str, sizes: list[int | None]) -> dict[str, float]:
    """The score of the model with each number of trees."""
    scorer = get_scorer(scoring)
    return {str(n): scorer(model if n is None else first_trees(model, n), x, y) for n in sizes}


def _can_be_cut(estimator: Any) -> bool:
    return isinstance(estimator.get_params().get("estimator", estimator), _BOOSTED + _FAST + _FORESTS + _LIGHT)


def first_trees(model: Any, n: int) -> Any:
    """A trained model as it was with its first n trees; also inside a wrapper."""
    cut = copy(model)
    if isinstance(model, _BOOSTED):
        cut._predictors = model._predictors[:n]
    elif isinstance(model, _FAST):
        cut = model.first_trees(n)
    elif isinstance(model, _FORESTS):
        cut.estimators_ = model.estimators_[:n]
    elif isinstance(model, _LIGHT):
        cut.n_used = n
    elif hasattr(model, "estimator_"):
        cut.estimator_ = first_trees(model.estimator_, n)
    return cut
