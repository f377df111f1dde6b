"""The experts of paper 001 by plain loops over pages, times and words: what the fast version must agree with.

Nothing is shared between windows, and every model is a `sklearn.svm.SVC` fitted again. Everywhere `t` is a decision time: what
is known up to t predicts the label change[target, t + interval].

References: Radinsky and Bennett (2013), sections 4.2, 5, 7.1 and 7.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.svm import SVC

Reals = NDArray[np.float64]
Codes = NDArray[np.int8]
Words = Mapping[Any, float]  # word → count

SMALLEST_ERROR = 1e-10  # a model without errors would get an infinite say in boosting


def svm(**changes: Any) -> SVC:
    """The paper's learner (section 7.2): an SVM with a polynomial kernel of degree 3."""
    return SVC(**{"kernel": "poly", "degree": 3, "gamma": 1, "coef0": 1, "C": 1} | changes)


@dataclass(frozen=True)
class Setting:
    """The parameters of the paper; the names in brackets are its symbols."""

    window: int = 1  # [l]: how many times back the features look
    interval: int = 1  # [σ]: how far ahead the label lies
    training_size: int = 50  # [n]
    word_scale: float = 1.0  # the unigram features times this
    learner: Callable[[], Any] = svm  # makes something with `fit(x, y, sample_weight)` and `decision_function(x)`


@dataclass(frozen=True)
class Pages:
    """What the pages said and whether they changed."""

    content: Reals  # [page, time, word]: unigram distributions; zeros before a page was first seen
    change: Codes  # [page, time]: 1 changed, 0 did not, -1 unknown

    @property
    def n_times(self) -> int:
        """How many times there are."""
        return int(self.change.shape[1])

    def content_at(self, page: int, t: int) -> Reals:
        """The distribution shown at a time; before the beginning that of the beginning."""
        shown: Reals = self.content[page, max(t, 0)]
        return shown

    def change_at(self, page: int, t: int) -> int:
        """Whether a page changed (1, 0, -1); before the beginning nothing changed."""
        return int(self.change[page, t]) if t >= 0 else 0


def watched(texts: Sequence[Sequence[Words | None]], seen: ArrayLike, change: ArrayLike) -> Pages:
    """Pages from `texts[page][t]`: where a page was not seen, it shows what it showed when it was last seen."""
    looked = np.asarray(seen, np.bool_)
    vocabulary = sorted({word for of_page in texts for text in of_page if text for word in text})
    content = np.zeros((*looked.shape, len(vocabulary)))
    for page, of_page in enumerate(texts):
        last: Words = {}
        for t, text in enumerate(of_page):
            if looked[page, t] and text is not None:
                last = text
            content[page, t] = distribution(last, vocabulary)
    return Pages(content, np.asarray(change, np.int8))


def distribution(text: Words, vocabulary: Sequence[Any]) -> Reals:
    """The share of every word; zeros for a text without words."""
    total = sum(text.values())
    return np.array([text.get(word, 0) / total if total else 0.0 for word in vocabulary])


# Features (section 4.2)


def features_2d(pages: Pages, page: int, t: int, setting: Setting) -> Reals:
    """What a page itself shows at t (section 4.2.1)."""
    sigma, back = setting.interval, range(1, setting.window + 1)
    now = pages.content_at(page, t)
    known = [c for i in range(setting.window) if (c := pages.change_at(page, t - i)) >= 0]
    frequency = sum(known) / len(known) if known else 0.0
    until_now = [length(now - pages.content_at(page, t - i)) for i in back]
    steps = [length(pages.content_at(page, t - i) - pages.content_at(page, t - i - sigma)) for i in back]
    changes = [max(pages.change_at(page, t - i), 0) for i in back]  # unknown counts as no change
    return np.array([frequency, *(now * setting.word_scale), *until_now, *steps, *changes])


def features_3d(pages: Pages, expert: int, target: int, t: int, setting: Setting) -> Reals:
    """What a related page shows about the target at t (section 4.2.2); the target itself shows its 2D features."""
    own = features_2d(pages, expert, t, setting)
    if expert == target:
        return own
    a = [pages.content_at(target, t - i) for i in range(setting.window + 1)]
    b = [pages.content_at(expert, t - i) for i in range(setting.window + 1)]
    back = range(1, setting.window + 1)
    alike = [cosine(a[i], b[i]) for i in range(setting.window)]
    change_to_content = [cosine(b[0] - b[i], a[0]) for i in back]
    change_to_change = [cosine(b[0] - b[i], a[0] - a[i]) for i in back]
    return np.array([*own, *alike, *change_to_content, *change_to_change])


def features_union(pages: Pages, experts: Sequence[int], target: int, t: int, setting: Setting) -> Reals:
    """The page's 2D features and the 3D features of all its experts, in one row (section 5.3.2)."""
    of_experts = [features_3d(pages, expert, target, t, setting) for expert in experts]
    return np.concatenate([features_2d(pages, target, t, setting), *of_experts])


def length(vector: Reals) -> float:
    """The Euclidean norm."""
    return math.sqrt(float(vector @ vector))


def cosine(a: Reals, b: Reals) -> float:
    """The cosine of two vectors; 0 with a vector of zeros."""
    lengths = length(a) * length(b)
    return float(a @ b) / lengths if lengths else 0.0


# Which examples (section 7.2)


def labels(pages: Pages, target: int, setting: Setting) -> Codes:
    """The label of an example at every time; -1 where it is unknown or lies beyond the end."""
    coming = np.full(pages.n_times, -1, np.int8)
    for s in range(pages.n_times - setting.interval):
        coming[s] = pages.change[target, s + setting.interval]
    return coming


def decision_times(pages: Pages, setting: Setting) -> range:
    """When a prediction is made: from the first full training window to the last time whose label lies in the history."""
    return range(setting.training_size - 1, pages.n_times - setting.interval)


def training_times(pages: Pages, target: int, t: int, setting: Setting) -> list[int]:
    """The examples a decision at t learns from: those in its window whose label is known by then."""
    label = labels(pages, target, setting)
    return [s for s in range(t - setting.training_size + 1, t - setting.interval + 1) if label[s] >= 0]


def at_each_decision(
    pages: Pages, target: int, setting: Setting, decide: Callable[[list[int], int], int | bool]
) -> Codes:
    """Predictions by time, made by `decide(training times, t)`; -1 at times without a decision."""
    predictions = np.full(pages.n_times, -1, np.int8)
    for t in decision_times(pages, setting):
        predictions[t] = decide(training_times(pages, target, t, setting), t)
    return predictions


# Algorithms (section 5)


def foregone(y: Codes) -> int | None:
    """What to predict where there is nothing to learn: the only class; no change without examples; None if there is more."""
    if len(y) == 0:
        return 0
    return int(y[0]) if len(set(y.tolist())) == 1 else None


def learned(x: Reals, y: Codes, asked: Reals, setting: Setting) -> int:
    """The class of one row after learning from these examples; a decision of exactly 0 is "no change"."""
    known = foregone(y)
    if known is not None:
        return known
    model = setting.learner().fit(x, y)
    return int(model.decision_function(asked[None])[0] > 0)


def by_one_model(pages: Pages, target: int, x: Reals, setting: Setting) -> Codes:
    """Predictions of one model a window, learned from a row of features a time."""
    y = labels(pages, target, setting)
    return at_each_decision(pages, target, setting, lambda train, t: learned(x[train], y[train], x[t], setting))


def single_expert(pages: Pages, target: int, setting: Setting) -> Codes:
    """The page predicts itself from its 2D features (section 5.2)."""
    return expert_opinion(pages, target, target, setting)


def expert_opinion(pages: Pages, target: int, expert: int, setting: Setting) -> Codes:
    """One expert's predictions: its own features, the target's label."""
    x = np.array([features_3d(pages, expert, target, s, setting) for s in range(pages.n_times)])
    return by_one_model(pages, target, x, setting)


def multiple_experts(
    pages: Pages, target: int, experts: Sequence[int], weights: Sequence[float], own_weight: float, setting: Setting
) -> Codes:
    """Experts and the page itself vote with weights R(target, expert) (section 5.3.1, Fig. 3); a tie is "no change"."""
    voters = [(target, own_weight), *zip(experts, weights, strict=True)]
    opinions = [(expert_opinion(pages, target, expert, setting), weight) for expert, weight in voters]

    def vote(_: list[int], t: int) -> bool:
        votes = [0.0, 0.0]
        for opinion, weight in opinions:
            votes[int(opinion[t])] += weight
        return votes[1] > votes[0]

    return at_each_decision(pages, target, setting, vote)


def union_table(pages: Pages, target: int, experts: Sequence[int], setting: Setting) -> Reals:
    """The union's features at every time."""
    return np.array([features_union(pages, experts, target, s, setting) for s in range(pages.n_times)])


def union(pages: Pages, target: int, experts: Sequence[int], setting: Setting) -> Codes:
    """One model on the features of the page and of all its experts (section 5.3.2)."""
    return by_one_model(pages, target, union_table(pages, target, experts, setting), setting)


def bagging(
    pages: Pages,
    target: int,
    experts: Sequence[int],
    draws: Mapping[int, Sequence[Sequence[int]]],
    setting: Setting,
) -> Codes:
    """Equal votes of models learned from bootstrap samples (section 5.3.3); a tie is "no change".

    `draws[t]` holds one sample a model: positions in `training_times(…, t)`.
    """
    x, y = union_table(pages, target, experts, setting), labels(pages, target, setting)

    def decide(train: list[int], t: int) -> bool:
        if not train:
            return False
        samples = [[train[position] for position in draw] for draw in draws[t]]
        votes = [learned(x[sample], y[sample], x[t], setting) for sample in samples]
        return 2 * sum(votes) > len(votes)

    return at_each_decision(pages, target, setting, decide)


def boosting(pages: Pages, target: int, experts: Sequence[int], n_models: int, setting: Setting) -> Codes:
    """AdaBoost over models with weighted examples (section 5.3.3)."""
    x, y = union_table(pages, target, experts, setting), labels(pages, target, setting)
    return at_each_decision(
        pages, target, setting, lambda train, t: boosted(x[train], y[train], x[t], n_models, setting)
    )


def boosted(x: Reals, y: Codes, asked: Reals, n_models: int, setting: Setting) -> int:
    """The class of one row by AdaBoost; an ensemble without models, or a tie, is "no change"."""
    known = foregone(y)
    if known is not None:
        return known
    total = 0.0
    for alpha, model in boosted_models(x, y, n_models, setting):
        total += alpha * (1 if model.decision_function(asked[None])[0] > 0 else -1)
    return int(total > 0)


def boosted_models(x: Reals, y: Codes, n_models: int, setting: Setting) -> list[tuple[float, Any]]:
    """Models with their say α, each learned with more weight on what the one before got wrong.

    A model without errors is the last; one that is no better than a coin is left out, and none follows.
    """
    sign = np.where(y == 1, 1.0, -1.0)
    weight = np.full(len(y), 1 / len(y))
    models: list[tuple[float, Any]] = []
    for _ in range(n_models):
        model = setting.learner().fit(x, y, sample_weight=weight * len(y))
        said = np.where(model.decision_function(x) > 0, 1.0, -1.0)
        error = float(weight[said != sign].sum())
        if error >= 0.5:
            break
        alpha = 0.5 * math.log((1 - max(error, SMALLEST_ERROR)) / max(error, SMALLEST_ERROR))
        models.append((alpha, model))
        if error == 0:
            break
        weight = weight * np.exp(-alpha * sign * said)
        weight = weight / weight.sum()
    return models


# The 1D baseline (section 5.1)


def change_frequency(pages: Pages, target: int, setting: Setting) -> Reals:
    """The share of changes among the training labels, by time; 0 without labels, nan at times without a decision."""
    y = labels(pages, target, setting)
    frequency = np.full(pages.n_times, np.nan)
    for t in decision_times(pages, setting):
        known = [int(y[s]) for s in training_times(pages, target, t, setting)]
        frequency[t] = sum(known) / len(known) if known else 0.0
    return frequency


def baseline(pages: Pages, target: int, setting: Setting) -> Codes:
    """The baseline as a threshold: it predicts a change where more than half of the training labels are changes."""
    frequency = change_frequency(pages, target, setting)
    return at_each_decision(pages, target, setting, lambda _, t: bool(frequency[t] > 0.5))


def coin_accuracy(pages: Pages, target: int, setting: Setting) -> float:
    """What the baseline as the paper's biased coin gets right on average, without tossing it."""
    y, frequency = labels(pages, target, setting), change_frequency(pages, target, setting)
    right = [frequency[t] if y[t] == 1 else 1 - frequency[t] for t in judged_times(pages, target, setting)]
    return float(np.mean(right)) if right else math.nan


# Evaluation (section 7)


def judged_times(pages: Pages, target: int, setting: Setting) -> list[int]:
    """The decision times whose label is known."""
    y = labels(pages, target, setting)
    return [t for t in decision_times(pages, setting) if y[t] >= 0]


def accuracy(pages: Pages, target: int, predictions: Codes, setting: Setting) -> float:
    """The share of windows in which a page's prediction was right; nan if it cannot be judged in any."""
    y = labels(pages, target, setting)
    right = [bool(predictions[t] == y[t]) for t in judged_times(pages, target, setting)]
    return float(np.mean(right)) if right else math.nan


def overall(accuracies: Sequence[float]) -> float:
    """The mean over the pages that could be judged."""
    known = [value for value in accuracies if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


def passes_filter(change: Sequence[int] | Codes, alpha: float = 0.3) -> bool:
    """Whether a page changes its behaviour often enough (section 7.1): the share of known pairs (t, t + 1) that differ."""
    pairs = [(a, b) for a, b in pairwise(change) if a >= 0 and b >= 0]
    return bool(pairs) and sum(a != b for a, b in pairs) / len(pairs) >= alpha
