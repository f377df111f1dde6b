"""Which ranking of the pages is closest to the truth: LBLA Fig. 14, Table 4 and Fig. 15, on either split."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.core.arrays import Flags, Floats32
from recrawl.insight.choices import LinkKind
from recrawl.insight.features import (
    Feature,
    FeatureInputs,
    Features,
    all_but_own_past,
    default,
    everything,
    look_back_look_around,
)
from recrawl.insight.targets import HasNewLinks, LinkChangeRate, NewLinkCount, Target
from recrawl.models import metrics
from recrawl.models.around import around
from recrawl.models.estimates import estimate
from recrawl.models.learners import LEARNERS, baseline_features, named
from recrawl.papers.outlinks.ladders import Row, given_settings, learnt, scores, settings_task, split_of
from recrawl.papers.outlinks.protocol import ModelPredictions, PredictionTask
from recrawl.papers.outlinks.settings import OutlinkSettings


@dataclass(frozen=True)
class PageRanking:
    """One way to rank pages: by what a learner predicts of a target from some features."""

    name: str
    paper: str | None
    target: type[Target]
    learner: str
    features: str  # a name below
    by_probability: bool = False  # by the probability of new links instead of the value
    as_predicted: bool = False  # pages without a past are predicted as by `recrawl predict`
    quiet_tied: bool = False  # pages that were never seen to gain links are equal, as for average-count


RANKINGS = (
    PageRanking("link-change-rate trees, look-around only", "LCR-ET_LBLA", LinkChangeRate, "extra-trees", "lbla"),
    PageRanking("link-change-rate trees", "LCR-ET", LinkChangeRate, "extra-trees", "all"),
    PageRanking("has-new-links trees, LBLA", "NL-ET_LBLA", HasNewLinks, "extra-trees", "lbla"),
    PageRanking("has-new-links trees", "NL-ET", HasNewLinks, "extra-trees", "all"),
    PageRanking("probability of new links, trees", "PNL-ET", HasNewLinks, "extra-trees", "all", by_probability=True),
    PageRanking("new-link-count trees, LBLA", "NNL-ET_LBLA", NewLinkCount, "extra-trees", "lbla"),
    PageRanking("new-link-count trees", "NNL-ET", NewLinkCount, "extra-trees", "all"),
    PageRanking("new-link-count, NGBoost Poisson", "NNL-NGB", NewLinkCount, "ngboost", "all"),
    PageRanking("forecast", None, NewLinkCount, "forecast", "default", as_predicted=True),
    PageRanking("forecast, quiet tied", None, NewLinkCount, "forecast", "default", as_predicted=True, quiet_tied=True),
    PageRanking("average-count", "NNL-Av", NewLinkCount, "average-count", "baseline"),
    PageRanking("previous-count", "NNL-Pr", NewLinkCount, "previous-count", "baseline"),
    PageRanking("content-change-rate", "CCR", NewLinkCount, "content-change-rate", "baseline"),
)
TRUTHS: tuple[type[Target], ...] = (LinkChangeRate, HasNewLinks, NewLinkCount)
#: Learners that give the number of new links a distribution.
COUNT_LEARNERS = tuple(
    learner
    for learner in LEARNERS
    if "number" in learner.kinds and hasattr(learner.make("number"), "predict_distribution")
)


def features_of(ranking: PageRanking, links: LinkKind, settings: OutlinkSettings) -> Features:
    """The columns of a ranking; without the page's own past for the link change rate, which it would give away."""
    target = ranking.target(links)
    if ranking.features == "lbla":
        return look_back_look_around(target, settings.history, **settings.leaks)
    if ranking.features == "default":
        return default(target, settings.history)
    if ranking.features == "baseline":
        return baseline_features(named(ranking.learner), links)
    if ranking.target is LinkChangeRate:
        return all_but_own_past(settings.history, **settings.leaks)
    return everything(settings.history, **settings.leaks)


def all_features(settings: OutlinkSettings) -> Features:
    """The features that any of the rankings needs."""
    return tuple({f for links in settings.links for ranking in RANKINGS for f in features_of(ranking, links, settings)})


def rank(
    known: FeatureInputs, settings: OutlinkSettings, rankings: tuple[PageRanking, ...] = RANKINGS
) -> Iterator[Row]:
    """One row for every ranking, kind of links, truth and repetition; with the curve of Precision@k%.

    In the split by time, only rankings by the link change rate are tested on a quarter of the pages (`split_of`).
    """
    last = known.panel.shape[1] - 1
    for links in settings.links:
        for seed in settings.seeds:
            for ranking, task, predictions in _ranked(known, settings, rankings, links, seed):
                pages, value = task.test_pages, _value(known, ranking, task, predictions)
                for truth in TRUTHS:
                    true = truth(links).values(known.panel, last)[pages]
                    usable = ~np.isnan(true)
                    curve = metrics.precision_at(true[usable], value[usable], seed=seed)
                    yield {
                        "ranking": ranking.name,
                        "paper": ranking.paper,
                        "truth": truth.name,
                        "links": links,
                        "split": split_of(ranking.target(links), settings),
                        "seed": seed,
                        "n_test": int(usable.sum()),
                        "spearman": metrics.spearman(true[usable], value[usable]),
                        "spearman_whole": metrics.spearman(true[usable], _as_papers(ranking, value)[usable]),
                        "area": curve.area,
                        "curve": [round(float(p), 4) for p in curve.precision],
                        **given_settings(predictions),
                    }


def _as_papers(ranking: PageRanking, value: Floats32) -> Floats32:
    """Numbers of links rounded to whole ones, as in the papers: ties of pages without new links then lift Spearman's ρ."""
    return np.asarray(np.rint(value)) if ranking.target is NewLinkCount and ranking.paper != "CCR" else value


def _ranked(
    known: FeatureInputs, settings: OutlinkSettings, rankings: tuple[PageRanking, ...], links: LinkKind, seed: int
) -> Iterator[tuple[PageRanking, PredictionTask, ModelPredictions]]:
    trained: dict[tuple[Any, ...], tuple[PredictionTask, ModelPredictions]] = {}
    for ranking in rankings:
        key = (ranking.target, ranking.learner, ranking.features)
        if key not in trained:
            task = settings_task(known, ranking.target(links), features_of(ranking, links, settings), settings, seed)
            trained[key] = task, learnt(task, named(ranking.learner), settings, seed, settings.history)
        yield ranking, *trained[key]


def _value(known: FeatureInputs, ranking: PageRanking, task: PredictionTask, predictions: ModelPredictions) -> Floats32:
    """What pages are ranked by."""
    if ranking.as_predicted:
        expected = _as_predicted(known, task, predictions)
        return np.where(_has_gained(known, task), expected, 0).astype(np.float32) if ranking.quiet_tied else expected
    if ranking.by_probability:
        assert predictions.probability is not None
        return predictions.probability
    return predictions.value


def _has_gained(known: FeatureInputs, task: PredictionTask) -> Flags:
    """Whether each tested page was ever seen to gain links before the predicted round; true also where that is not known."""
    mean = known.matrix((Feature(f"mean_{task.target.links}", lag=1),), known.panel.shape[1] - 1)[task.test_pages, 0]
    has_gained: Flags = mean != 0
    return has_gained


def _as_predicted(known: FeatureInputs, task: PredictionTask, predictions: ModelPredictions) -> Floats32:
    """The expected number of links as `recrawl predict` gives it: by what is around a page, where it has no past."""
    last = known.panel.shape[1] - 1
    near = around(known, task.target.links, last, (float(task.y_train.mean()), float((task.y_train > 0).mean())))
    there = np.ones(known.panel.shape[0])  # all tested pages exist: their links were seen in the last round
    answered = estimate(predictions.model, known.matrix(task.features, last), near, there)
    return answered.expected[task.test_pages]


def count_models(known: FeatureInputs, settings: OutlinkSettings) -> Iterator[Row]:
    """Models that give the number of new links a distribution, compared by likelihood and calibration on unseen rows."""
    for links in settings.links:
        target = NewLinkCount(links)
        for seed in settings.seeds:
            task = settings_task(known, target, default(target, settings.history), settings, seed)
            for learner in COUNT_LEARNERS:
                predictions = learnt(task, learner, settings, seed, settings.history)
                assert predictions.probability is not None
                bins = metrics.calibration((task.y_test > 0).astype(np.float32), predictions.probability)
                yield {
                    "target": target.name,
                    "links": links,
                    "features": "default",
                    "learner": learner.name,
                    "split": settings.split,
                    "seed": seed,
                    "n_test": len(task.y_test),
                    **given_settings(predictions),
                    **scores("number", task.y_test, predictions),
                    "covered_80": _covered(predictions.distribution, task.y_test),
                    "calibration": [(b.predicted, b.observed, b.count) for b in bins],
                }


def _covered(distribution: Any, truth: Floats32) -> float:
    """The share of rows whose number is between the 10% and the 90% quantile."""
    return float(np.mean((truth >= distribution.quantile(0.1)) & (truth <= distribution.quantile(0.9))))
