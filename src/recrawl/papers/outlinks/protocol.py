"""How a prediction is tested: which rows a model learns from, how it is tuned, and which rows it is tested on.

The papers (section 5.3) split the pages at random within one round. A crawler needs the other split as well: learn from the
rounds up to now, predict the next one, for every page.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from recrawl.core.arrays import Floats32, Ints
from recrawl.errors import NotEnoughData
from recrawl.insight.features import FeatureInputs, Features
from recrawl.insight.features.sets import n_anchors
from recrawl.insight.targets import Target
from recrawl.models.learners import Learner
from recrawl.models.rows import pooled
from recrawl.papers.outlinks.settings import OutlinkSettings
from recrawl.papers.outlinks.tuning import best_settings

TEST_SHARE, TUNE_SHARE = 0.25, 1 / 3  #: of all pages; of those that are left


@dataclass(frozen=True)
class PageSplit:
    """Rows to train and to test on; `tune` is the part of `train` that settings are chosen on."""

    train: Ints
    tune: Ints
    test: Ints


@dataclass(frozen=True, kw_only=True)
class PredictionTask:
    """A target with the rows to learn it from and the rows to predict."""

    target: Target
    features: Features
    x_train: Floats32
    y_train: Floats32
    x_tune: Floats32
    y_tune: Floats32
    x_test: Floats32
    y_test: Floats32
    test_pages: Ints  # rows of the panel


def page_split(n: int, seed: int) -> PageSplit:
    """A quarter of the pages for testing, a third of the rest for tuning (LBLA section 5.3).

    >>> split = page_split(12, seed=0)
    >>> len(split.test), len(split.tune), len(split.train)
    (3, 3, 9)
    """
    order = np.random.default_rng(seed).permutation(n)
    n_test = round(TEST_SHARE * n)
    train = order[n_test:]
    return PageSplit(train, train[: round(TUNE_SHARE * len(train))], order[:n_test])


def by_pages(
    known: FeatureInputs,
    target: Target,
    features: Features,
    seed: int,
    features_of: int | None = None,
) -> PredictionTask:
    """The papers' task: the last round, pages split at random.

    `features_of`: the round before which the features are known, if that is not the predicted one. The link change rate of static
    features is learnt from what the first round shows, so that all of the rate is in its future.
    """
    last = known.panel.shape[1] - 1
    truth = target.values(known.panel, last)
    pages = np.flatnonzero(~np.isnan(truth))
    split = page_split(len(pages), seed)
    if not len(split.train) or not len(split.test):
        raise NotEnoughData(
            f"{len(pages):,} pages with a known {target.name} in round {last} are too few to learn and to test"
        )
    x, y = known.matrix(features, features_of or last)[pages], truth[pages]
    return PredictionTask(
        target=target,
        features=features,
        x_train=x[split.train],
        y_train=y[split.train],
        x_tune=x[split.tune],
        y_tune=y[split.tune],
        x_test=x[split.test],
        y_test=y[split.test],
        test_pages=pages[split.test],
    )


def by_time(known: FeatureInputs, target: Target, features: Features, seed: int = 0) -> PredictionTask:
    """The crawler's task: learn from all rounds before the last, pooled, predict the last for every page.

    Pooling several past rounds keeps a model from memorising the pages of a single one. Settings are chosen on the newest
    of them. Not for the link change rate: the model would learn from the pages' rates up to earlier rounds, which are most of the
    answer.
    """
    last = known.panel.shape[1] - 1
    if last < 2:
        raise NotEnoughData(
            "at least three rounds are needed: one to look back on, one to learn from and one to predict"
        )
    x, y = pooled(known, target, features, range(1, last), seed)
    newest_x, newest_y = pooled(known, target, features, [last - 1], seed)
    truth = target.values(known.panel, last)
    pages = np.flatnonzero(~np.isnan(truth))
    if not len(y) or not len(pages):
        raise NotEnoughData(f"no page with a known {target.name} in round {last}, or none before it")
    return PredictionTask(
        target=target,
        features=features,
        x_train=x,
        y_train=y,
        x_tune=newest_x,
        y_tune=newest_y,
        x_test=known.matrix(features, last)[pages],
        y_test=truth[pages],
        test_pages=pages,
    )


SCORING = {"rate": "r2", "number": "r2", "presence": "balanced_accuracy"}


@dataclass(frozen=True)
class TunedModel:
    """An unfitted model with its settings."""

    model: Any
    settings: dict[str, Any] = field(default_factory=dict)  # those of the learner's grid, as the learner spells them
    is_searched: bool = False  # chosen by cross-validation; else the papers', or the learner's own


def tuned(learner: Learner, task: PredictionTask, settings: OutlinkSettings, *, history: int, seed: int) -> TunedModel:
    """The learner for a task with the papers' tuned settings (`quick`), or with those that cross-validation chooses."""
    kind = task.target.kind
    estimator = settings.with_trees(
        learner.for_columns(
            n_anchors(task.features), kind, task.target.links, history, seed=seed, n_jobs=settings.n_jobs
        )
    )
    grid = settings.grid_with_trees(learner.grid(kind))
    few = len(task.y_tune) < 2 * settings.folds or (
        kind == "presence" and min(np.bincount(task.y_tune.astype(int), minlength=2)) < settings.folds
    )
    is_searched = not (settings.quick or not grid or few)
    if is_searched:
        chosen = best_settings(
            estimator, grid, task.x_tune, task.y_tune, SCORING[kind], settings.folds, settings.n_jobs
        )
        estimator = estimator.set_params(**chosen)
    used = estimator.get_params()
    return TunedModel(estimator, {name.split("__")[-1]: used[name] for name in grid}, is_searched)


@dataclass(frozen=True)
class ModelPredictions:
    """What a fitted model predicts for the test rows."""

    value: Floats32  # rate, class or expected number
    probability: Floats32 | None  # of at least one new link, where the model gives one
    distribution: Any  # of the number, where the model gives one
    model: Any
    settings: dict[str, Any] = field(default_factory=dict)  # as in `TunedModel`
    is_tuned: bool = False


def learn(tuned: TunedModel, task: PredictionTask) -> ModelPredictions:
    """As `fit_predict`; the predictions know the settings of the model."""
    return replace(fit_predict(tuned.model, task), settings=tuned.settings, is_tuned=tuned.is_searched)


def fit_predict(model: Any, task: PredictionTask) -> ModelPredictions:
    """Learn from the training rows, predict the test rows."""
    model.fit(task.x_train, task.y_train)
    return predicted(model, task.target.kind, task.x_test)


def predicted(model: Any, kind: str, x: Floats32) -> ModelPredictions:
    """What a fitted model predicts for some rows."""
    if kind == "presence":
        probability = positive_probability(model, x)
        return ModelPredictions((probability >= 0.5).astype(np.float32), probability, None, model)
    distribution = model.predict_distribution(x) if hasattr(model, "predict_distribution") else None
    value = np.asarray(distribution.mean if distribution is not None else model.predict(x), np.float32)
    chance = positive_probability(model, x) if hasattr(model, "predict_positive") else None
    return ModelPredictions(value, chance, distribution, model)


def positive_probability(model: Any, x: Floats32) -> Floats32:
    """The probability of at least one new link."""
    if hasattr(model, "predict_positive"):
        return np.asarray(model.predict_positive(x), np.float32)
    by_class = np.asarray(model.predict_proba(x), np.float32)
    at = np.flatnonzero(np.asarray(model.classes_) == 1)
    return by_class[:, at[0]] if len(at) else np.zeros(len(x), np.float32)
