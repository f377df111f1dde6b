from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from recrawl.models.learners import named
from recrawl.papers.outlinks.protocol import SCORING
from recrawl.papers.outlinks.tuning import best_settings, first_trees

SIZES = {
    "hist-gradient-boosting": "max_iter",
    "extra-trees": "n_estimators",
    "lightgbm-unlimited": "n_estimators",
    "scikit-extra-trees": "n_estimators",
    "poisson": "max_iter",
}
CASES = [
    *((kind, name) for kind in ("rate", "number", "presence") for name in ("hist-gradient-boosting", "extra-trees")),
    *((kind, "lightgbm-unlimited") for kind in ("rate", "presence")),
    ("presence", "scikit-extra-trees"),
    ("number", "poisson"),
]


def rows(kind: str) -> tuple[Any, Any]:
    """Some columns tell the answer, some do not; a tenth of the cells is unknown."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 6)).astype(np.float32)
    signal = x[:, 0] + x[:, 1] * x[:, 2] + rng.normal(size=120)
    x[rng.random(x.shape) < 0.1] = np.nan
    answers = {"rate": 1 / (1 + np.exp(-signal)), "number": np.maximum(signal, 0).round(), "presence": signal > 0.8}
    return x, answers[kind].astype(np.float32)


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_the_chosen_settings_are_those_of_a_plain_search_of_the_grid(kind: str, name: str) -> None:
    x, y = rows(kind)
    model = named(name).make(kind, seed=3, n_jobs=1)
    prefix = "estimator__" if "estimator" in model.get_params(deep=False) else ""
    leaf = "min_child_samples" if name.startswith("lightgbm") else "min_samples_leaf"
    grid = {prefix + SIZES[name]: [30, 5, 15], prefix + leaf: [3, 10, 20]}
    plain = GridSearchCV(model, grid, scoring=SCORING[kind], cv=5, refit=False).fit(x, y)
    assert best_settings(model, grid, x, y, SCORING[kind]) == plain.best_params_


@pytest.mark.parametrize(("kind", "name"), CASES[:-1])
def test_the_first_trees_of_a_model_are_the_smaller_model(kind: str, name: str) -> None:
    x, y = rows(kind)
    large, small = (named(name).make(kind, seed=3, n_jobs=1, **{SIZES[name]: n}).fit(x, y) for n in (30, 12))
    answer = "predict_proba" if kind == "presence" else "predict"
    np.testing.assert_array_equal(getattr(first_trees(large, 12), answer)(x), getattr(small, answer)(x))
    assert not np.array_equal(getattr(large, answer)(x), getattr(small, answer)(x)), "the model itself is left whole"


def test_no_size_of_a_model_is_grown_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = rows("rate")
    model = named("extra-trees").make("rate", n_jobs=2)
    grown = []
    fit = type(model).fit
    monkeypatch.setattr(
        type(model), "fit", lambda self, *args: grown.append((self.n_estimators, self.n_jobs)) or fit(self, *args)
    )
    best_settings(model, {"n_estimators": [2, 4, 8], "min_samples_leaf": [2, 5]}, x, y, "r2", folds=3)
    assert grown == [(8, 1)] * 2 * 3


def test_a_grid_of_sizes_alone_is_searched_too() -> None:
    x, y = rows("rate")
    assert set(best_settings(named("extra-trees").make("rate"), {"n_estimators": [1, 20]}, x, y, "r2")) == {
        "n_estimators"
    }
