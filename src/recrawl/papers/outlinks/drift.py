"""Drift: how fast a trained model ages, and how often it should be trained again.

Dang et al. (2022) expect models to decline over time and leave it to longer histories. A model is trained at the end of every few
rounds of the later half, always on equally many rounds, and predicts all later ones of these: with features that are up to date, as
`recrawl predict` does, but without learning anything new. In the same round a model that was just trained, and average-count, which
needs no training, are the references. What is around a page (related pages) is known before the first of these rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from recrawl.core.arrays import Floats32
from recrawl.insight.choices import LinkKind
from recrawl.insight.features import FeatureInputs, Features, default
from recrawl.insight.features.sets import n_anchors
from recrawl.insight.targets import NewLinkCount
from recrawl.models import metrics
from recrawl.models.ageing import CHECKED, MIN_ROUNDS, is_due
from recrawl.models.around import around, needed
from recrawl.models.estimates import Estimates, estimate
from recrawl.models.learners import baseline_features, named
from recrawl.models.predictor import HELD_OUT
from recrawl.models.rows import pooled
from recrawl.papers.outlinks.ladders import Row
from recrawl.papers.outlinks.settings import OutlinkSettings

MAX_MODELS = 16  #: models that are trained for each kind of links and repetition
AVERAGE = "average-count"
SCORES = ("spearman", "area", "log_loss")
Scores = dict[tuple[int, int], Row]  # (origin, round) → the scores of the model


def first_predicted(n_rounds: int) -> int:
    """The first round that is predicted: the rounds before are as many as every model learns from."""
    return max(n_rounds // 2, 2)


def drift_features(settings: OutlinkSettings) -> Features:
    """The features that the part needs."""
    return tuple({f for k in settings.links for f in default(NewLinkCount(k), settings.history) + needed(k)})


def predicted_rounds(n_rounds: int) -> list[int]:
    """The rounds at which models are trained and tested: all of the later half, or every second, third, …

    >>> predicted_rounds(10), predicted_rounds(70)
    ([5, 6, 7, 8, 9], [35, 38, 41, 44, 47, 50, 53, 56, 59, 62, 65, 68])
    """
    first = first_predicted(n_rounds)
    return list(range(first, n_rounds, -(-(n_rounds - first) // MAX_MODELS)))


def drift(known: FeatureInputs, settings: OutlinkSettings) -> Iterator[Row]:
    """One row for every model and every round that it predicts, for average-count in every round, and for every way to retrain.

    `age` is the number of rounds since the model was trained: 1 for the round that follows. `known` is what was known before the
    first predicted round.
    """
    for links in settings.links:
        for seed in settings.seeds:
            common = {"links": links, "seed": seed}
            average = {row["round"]: row for row in _average_rows(known, links, seed)}
            models: Scores = {}
            for row in _model_rows(known, links, settings, seed):
                models[row["origin"], row["round"]] = row
                yield common | row
            for row in average.values():
                yield common | row
            for row in retraining(models, average):
                yield common | row


def _model_rows(known: FeatureInputs, links: LinkKind, settings: OutlinkSettings, seed: int) -> Iterator[Row]:
    rounds = predicted_rounds(known.panel.shape[1])
    target, features = NewLinkCount(links), default(NewLinkCount(links), settings.history)
    for origin in rounds:
        x, y = pooled(known, target, features, range(origin - rounds[0] + 1, origin), seed)
        if not len(y):
            continue
        learner = named("forecast").for_columns(
            n_anchors(features), "number", links, settings.history, seed=seed, n_jobs=settings.n_jobs
        )
        model, overall = settings.with_trees(learner).fit(x, y), (float(y.mean()), float((y > 0).mean()))
        for of_round in rounds[rounds.index(origin) :]:
            near = around(known, links, of_round, overall)
            there = np.ones(known.panel.shape[0])
            said = estimate(model, known.matrix(features, of_round), near, there)
            yield {"model": "forecast", "origin": origin, "age": of_round - origin + 1} | _scored(
                known, links, of_round, said, seed
            )


def _average_rows(known: FeatureInputs, links: LinkKind, seed: int) -> Iterator[Row]:
    columns = baseline_features(named(AVERAGE), links)
    rounds = predicted_rounds(known.panel.shape[1])
    for of_round in rounds:
        x, y = pooled(known, NewLinkCount(links), columns, range(of_round - rounds[0] + 1, of_round), seed)
        if len(y):
            model = named(AVERAGE).for_columns(0, "number", links, 0, seed=seed, n_jobs=1).fit(x, y)
            said = estimate(model, known.matrix(columns, of_round), None, np.ones(known.panel.shape[0]))
            yield {"model": AVERAGE} | _scored(known, links, of_round, said, seed)


def _scored(known: FeatureInputs, links: LinkKind, of_round: int, said: Estimates, seed: int) -> Row:
    truth = NewLinkCount(links).values(known.panel, of_round)
    pages = np.flatnonzero(~np.isnan(truth))
    true: Floats32 = truth[pages]
    return {
        "round": of_round,
        "n_test": len(pages),
        "spearman": metrics.spearman(true, said.expected[pages]),
        "area": metrics.precision_at(true, said.expected[pages], seed=seed).area,
        "log_loss": metrics.log_loss(true > 0, said.probability[pages]),
        "expected": float(said.expected[pages].sum()),
        "found": float(true.sum()),
    }


# -- when to retrain --------------------------------------------------------------------------------------------------

Decide = Callable[[int, int, Sequence[float], Sequence[float]], bool]

#: Way to retrain → whether to, given the model and the current round, counted in tested rounds, and the advantages over
#: average-count before it was trained and since.
WAYS: dict[str, Decide] = {
    "never": lambda model, now, before, since: False,
    "every round": lambda model, now, before, since: True,
    "every 5 rounds": lambda model, now, before, since: now + 1 - model >= 5,
    "when due": lambda model, now, before, since: is_due(before, since),
}


def retraining(models: Scores, average: Mapping[int, Row]) -> Iterator[Row]:
    """What each way to retrain would have scored on average, and how many trainings it would have taken.

    The rule is given what a crawler would have known: a model's advantage over average-count since it was trained, and that of a
    model of `HELD_OUT` rounds before in these rounds. Rounds are the tested ones; the first few serve as such a reference only.
    """
    rounds = sorted({of_round for _, of_round in models} & set(average))
    rounds = [r for r in rounds if (r, r) in models]
    if len(rounds) <= MIN_ROUNDS:
        return

    def advantage(origin: int, first: int, end: int) -> list[float]:
        gains = [models[rounds[origin], r]["spearman"] - average[r]["spearman"] for r in rounds[first:end]]
        return [gain for gain in gains if np.isfinite(gain)]

    for way, decide in WAYS.items():
        model, trainings, chosen = MIN_ROUNDS, 1, []
        for now in range(MIN_ROUNDS, len(rounds)):
            chosen.append(models[rounds[model], rounds[now]])
            held_out = max(model - HELD_OUT, 0)
            since = advantage(model, max(model, now + 1 - CHECKED), now + 1)
            if now + 1 < len(rounds) and decide(model, now, advantage(held_out, held_out, model), since):
                model, trainings = now + 1, trainings + 1
        means: dict[str, Any] = {score: _mean([row[score] for row in chosen]) for score in SCORES}
        yield {"way": way, "trainings": trainings, "rounds": len(chosen), **means}


def _mean(values: Sequence[float]) -> float | None:
    known = [value for value in values if np.isfinite(value)]
    return float(np.mean(known)) if known else None
