"""What sets of features contribute to the link change rate (LBLA Figs. 9, 10), and rounds of history to presence (Fig. 12)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from recrawl.insight.features import FeatureInputs, Features, everything, static_network, static_page, vector
from recrawl.insight.targets import HasNewLinks, LinkChangeRate, Target
from recrawl.models import metrics
from recrawl.models.learners import Learner, baseline_features, named
from recrawl.papers.outlinks.protocol import ModelPredictions, PredictionTask, by_pages, by_time, learn, tuned
from recrawl.papers.outlinks.settings import OutlinkSettings

Row = dict[str, Any]

#: The papers' names of the sets (section 6.1) → what is in them.
FEATURE_SETS = {
    "SP": static_page(),
    "SPsem": static_page() + vector(),
    "SP+SN": static_page() + static_network(),
    "SPsem+SN": static_page() + vector() + static_network(),
}


def feature_ladder(first: FeatureInputs, settings: OutlinkSettings) -> Iterator[Row]:
    """The link change rate from what the first round shows, set by set, beside a baseline that always predicts 0.

    `first` is what was known before the second round, so that neither features nor related pages are from the time in which
    the rate is counted.
    """
    for links in settings.links:
        target = LinkChangeRate(links)
        for seed in settings.seeds:
            for learner in ("hist-gradient-boosting", "extra-trees"):
                for name, features in FEATURE_SETS.items():
                    task = by_pages(first, target, features, seed, features_of=1)
                    yield scored(task, named(learner), settings, seed=seed, features=name, history=0)
            task = by_pages(first, target, FEATURE_SETS["SP"], seed, features_of=1)
            yield scored(task, named("always-zero"), settings, seed=seed, features="none", history=0)


def history_ladder(known: FeatureInputs, settings: OutlinkSettings) -> Iterator[Row]:
    """Whether a page will have new links, with 0 to 8 rounds of history, beside the previous count."""
    for links in settings.links:
        target = HasNewLinks(links)
        for seed in settings.seeds:
            for history in settings.histories(known.panel.shape[1]):
                features = everything(history, **settings.leaks)
                task = settings_task(known, target, features, settings, seed)
                row = scored(
                    task, named(settings.presence_learner), settings, seed=seed, features="all", history=history
                )
                yield row | {"history": history, "n_columns": len(features)}
            baseline = named("previous-count")
            task = settings_task(known, target, baseline_features(baseline, links), settings, seed)
            yield scored(task, baseline, settings, seed=seed, features="previous-count", history=1)


def settings_task(
    known: FeatureInputs, target: Target, features: Features, settings: OutlinkSettings, seed: int
) -> PredictionTask:
    """The rows to learn from and to predict, by the chosen split; see `split_of`."""
    if split_of(target, settings) == "time":
        return by_time(known, target, features, seed)
    return by_pages(known, target, features, seed)


def split_of(target: Target, settings: OutlinkSettings) -> str:
    """The chosen split; for the link change rate always unseen pages.

    Up to the round before the last, a page's rate is nearly what it is up to the last: a model that learns from a page's own
    earlier rates has been given the answer.
    """
    return "pages" if target.kind == "rate" else settings.split


def learnt(
    task: PredictionTask, learner: Learner, settings: OutlinkSettings, seed: int, history: int
) -> ModelPredictions:
    """The predictions of the learner, tuned and trained."""
    return learn(tuned(learner, task, settings, history=history, seed=seed), task)


def given_settings(predictions: ModelPredictions) -> Row:
    """The settings of a model as part of a row, and whether cross-validation chose them."""
    return {"settings": predictions.settings, "tuned": predictions.is_tuned}


def scored(
    task: PredictionTask, learner: Learner, settings: OutlinkSettings, *, seed: int, features: str, history: int
) -> Row:
    """One row: what was predicted, from which features, by which learner, and how well."""
    predictions = learnt(task, learner, settings, seed, history)
    return {
        "target": task.target.name,
        "links": task.target.links,
        "features": features,
        "learner": learner.name,
        "split": split_of(task.target, settings),
        "seed": seed,
        "n_train": len(task.y_train),
        "n_test": len(task.y_test),
        **given_settings(predictions),
        **scores(task.target.kind, task.y_test, predictions),
    }


def scores(kind: str, truth: Any, predictions: ModelPredictions) -> dict[str, float]:
    """The scores that fit a kind of target."""
    if kind == "presence":
        known = metrics.classification_scores(truth, predictions.value)
        if predictions.probability is not None:
            known["log_loss"] = metrics.log_loss(truth, predictions.probability)
            known["calibration_error"] = metrics.expected_calibration_error(truth, predictions.probability)
        return known
    known = metrics.regression_scores(truth, predictions.value)
    known["spearman"] = metrics.spearman(truth, predictions.value)
    if predictions.distribution is not None:
        known["log_likelihood"] = metrics.mean_log_likelihood(predictions.distribution, truth)
    if kind == "number" and predictions.probability is not None:
        known["log_loss"] = metrics.log_loss(truth > 0, predictions.probability)
        known["calibration_error"] = metrics.expected_calibration_error(
            (truth > 0).astype(np.float32), predictions.probability
        )
    return known
