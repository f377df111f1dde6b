"""Which features correlate, which matter, and how two of them shape the link change rate.

References: LBLA Figs. 8, 11 and 13; its preprint's Fig. 13.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from recrawl.core.arrays import Flags, Floats, Floats32
from recrawl.insight.features import Feature, FeatureInputs, everything, static_network, static_page
from recrawl.insight.targets import HasNewLinks, LinkChangeRate
from recrawl.models import metrics
from recrawl.models.learners import named
from recrawl.papers.outlinks.importance import Array, correlated_groups, permutation_importance
from recrawl.papers.outlinks.ladders import FEATURE_SETS, Row, learnt, settings_task
from recrawl.papers.outlinks.protocol import PredictionTask, by_pages, positive_probability
from recrawl.papers.outlinks.settings import OutlinkSettings

MAX_PAGES = 50_000  #: rows that a correlation or an importance is measured on, at most
WHOLE_VECTOR = "semantic vector as a whole"  #: the name of its columns together
GRID = 24  #: cells of a regression map in each direction
PAIRS = ("content_bytes", "text_bytes", "n_internal", "text_quality")  #: the four in Fig. 13 of the preprint


def correlation_map(known: FeatureInputs) -> Row:
    """Spearman's ρ between all static features, PageRank included, in the last round but one (Fig. 8): the lower triangle.

    Two features are compared on the pages for which both are known.
    """
    features = static_page() + static_network(page_rank=True)
    rho = metrics.spearman_matrix(_some(known.matrix(features, known.panel.shape[1] - 1)))
    triangle = [[*map(float, line[:i]), 1.0, *[None] * (len(line) - i - 1)] for i, line in enumerate(rho)]
    return {"names": [feature.words for feature in features], "spearman": triangle}


def _some(x: Floats32) -> Floats32:
    return x if len(x) <= MAX_PAGES else x[np.random.default_rng(0).choice(len(x), MAX_PAGES, replace=False)]


def importances(first: FeatureInputs, known: FeatureInputs, settings: OutlinkSettings) -> Iterator[Row]:
    """Permutation importance on unseen pages, of single features and of groups that correlate (Figs. 11 and 13).

    For the link change rate from what the first round shows, as in `ladders.feature_ladder`, without and with the semantic vector.
    """
    for links in settings.links:
        seed = settings.seeds[0]
        rate = LinkChangeRate(links)
        for name in ("SP+SN", "SPsem+SN"):
            task = by_pages(first, rate, FEATURE_SETS[name], seed, features_of=1)
            model = learnt(task, named("hist-gradient-boosting"), settings, seed, 0).model
            yield from _importance(task, model.predict, _r2, name, seed)
        presence = HasNewLinks(links)
        features = everything(settings.history, **settings.leaks)
        task = settings_task(known, presence, features, settings, seed)
        model = learnt(task, named(settings.presence_learner), settings, seed, settings.history).model
        name = f"all, history {settings.history}"
        yield from _importance(task, partial(_has_new_links, model), _balanced, name, seed)


def _has_new_links(model: Any, x: Floats32) -> Flags:
    return positive_probability(model, x) >= 0.5


def _r2(truth: Array, predicted: Array) -> float:
    return metrics.regression_scores(truth, predicted)["r2"]


def _balanced(truth: Array, predicted: Array) -> float:
    return metrics.classification_scores(truth, predicted)["balanced_accuracy"]


def _importance(
    task: PredictionTask,
    predict: Callable[[Array], Array],
    score: Callable[[Array, Array], float],
    features: str,
    seed: int,
) -> Iterator[Row]:
    x, truth = task.x_test, task.y_test
    for grouped, groups in _shuffled_groups(task):
        for importance in permutation_importance(predict, x, truth, score, groups, seed=seed, max_rows=20_000):
            yield {
                "target": task.target.name,
                "links": task.target.links,
                "features": features,
                "grouped": grouped,
                "name": importance.name,
                "importance": importance.mean,
                "spread": importance.spread,
                "drops": list(importance.drops),
            }


def _shuffled_groups(task: PredictionTask) -> Iterator[tuple[bool, dict[str, list[int]]]]:
    """The columns that are shuffled: each alone; then those that correlate, and the semantic vector, together."""
    names = [feature.words for feature in task.features]
    yield False, {name: [i] for i, name in enumerate(names)}
    together = correlated_groups(task.x_test, names)
    vector = [i for i, feature in enumerate(task.features) if feature.quantity == "vector"]
    if vector:
        together |= {WHOLE_VECTOR: vector}
    if len(together) != len(names):  # else no features correlate
        yield True, together


def regression_maps(first: FeatureInputs, settings: OutlinkSettings) -> Iterator[Row]:
    """The link change rate as a model of only two features of the first round sees it, over their range (preprint Fig. 13)."""
    seed = settings.seeds[0]
    for links in settings.links:
        for pair in combinations(PAIRS, 2):
            features = tuple(Feature(name) for name in pair)
            task = by_pages(first, LinkChangeRate(links), features, seed, features_of=1)
            if any(len(np.unique(column[~np.isnan(column)])) < 2 for column in task.x_train.T):
                continue  # a feature that is the same everywhere makes no map
            predictions = learnt(task, named("hist-gradient-boosting"), settings, seed, 0)
            axes = [_axis(column) for column in task.x_train.T]
            grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2).astype(np.float32)
            shown = np.random.default_rng(seed).permutation(len(task.x_test))[:800]
            yield {
                "links": links,
                "features": [feature.words for feature in features],
                "mae": metrics.regression_scores(task.y_test, predictions.value)["mae"],
                "x": axes[0].tolist(),
                "y": axes[1].tolist(),
                "rate": predictions.model.predict(grid).reshape(len(axes[0]), len(axes[1])).tolist(),
                "pages": np.column_stack([task.x_test, task.y_test])[shown].tolist(),
            }


def _axis(column: Floats32) -> Floats:
    """From the 1% to the 99% quantile, in equal steps of log(1 + x) where the values are spread over orders of magnitude."""
    low, high = np.nanquantile(column, [0.01, 0.99])
    if high > 50 * max(abs(low), 1e-9) or high > 1000:
        return np.expm1(np.linspace(np.log1p(max(low, 0)), np.log1p(max(high, low + 1e-6)), GRID))
    return np.linspace(low, high if high > low else low + 1e-6, GRID)
