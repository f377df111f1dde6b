"""When a trained model is due to be trained again: when it has lost what it was better by than a baseline that never ages.

A model is trained once, but its features are up to date in every round; so it ages slowly (docs/results/ageing.md). Scores differ
from round to round far more than a model loses, so its score alone says little. Its advantage over average-count, which needs no
training, is measured in the same rounds and hardly depends on them. A model is due if that advantage, in the rounds since it was
trained, is below what it was in the last rounds before by more than `ERRORS` standard errors and by more than `LEAST`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from recrawl.core.words import count
from recrawl.history import History
from recrawl.models.learners import named
from recrawl.models.pages import ended_rounds
from recrawl.models.predictor import Predictor, Step, for_target, ignore, since_round
from recrawl.world.panel import Panel

ERRORS = 2.0  #: standard errors that a loss must exceed
LEAST = 0.01  #: of Spearman's ρ: a smaller loss is not worth a training
MIN_ROUNDS = 3  #: on either side, to know how much scores differ by chance
CHECKED = (
    5  #: the last rounds that are looked at: with more, rounds in which the model was still young would hide its age
)
WORTH_CHECKING = 10  #: rounds after which `recrawl predict` names the check


@dataclass(frozen=True)
class Ageing:
    """What a model has lost since it was trained: by how much it ranked pages better than average-count, round by round.

    >>> steady = Ageing(5, before=(0.05, 0.04, 0.06), since=(0.05, 0.03, 0.05, 0.06, 0.04))
    >>> steady.is_due, steady.sentence
    (False, 'not due: ranks pages by 0.046 better than average-count in the last 5 rounds, 0.050 when it was trained')
    >>> Ageing(3, before=(0.05, 0.04, 0.06), since=(-0.02, -0.01, 0.0)).is_due
    True
    """

    n_rounds: int  # since it was trained
    before: tuple[float, ...]  # in the last rounds before it was trained, by a model that had not seen them
    since: tuple[float, ...]  # of the model itself, in the last rounds
    is_baseline: bool = False

    @property
    def loss(self) -> float:
        """How much smaller the advantage has become."""
        return float(np.mean(self.before) - np.mean(self.since))

    @property
    def error(self) -> float:
        """The standard error of the loss, with one variance for both sides: either has few rounds."""
        n, m = len(self.before), len(self.since)
        squares = n * np.var(self.before) + m * np.var(self.since)
        return float(np.sqrt(squares / (n + m - 2) * (1 / n + 1 / m)))

    @property
    def unknown(self) -> str:
        """Why nothing can be said; empty where something can."""
        if self.is_baseline:
            return "a baseline has learnt nothing that could become wrong"
        if len(self.since) < MIN_ROUNDS:
            return f"{count(len(self.since), 'round')} since it was trained, at least {MIN_ROUNDS} are needed"
        if len(self.before) < MIN_ROUNDS:
            return "it was trained on too few rounds, or by an older recrawl, to know how good it was"
        return ""

    @property
    def is_due(self) -> bool:
        """Whether the model should be trained again."""
        return not self.unknown and self.loss > max(ERRORS * self.error, LEAST)

    @property
    def sentence(self) -> str:
        """The verdict in one line."""
        if self.unknown:
            return f"not due: {self.unknown}"
        since, before = float(np.mean(self.since)), float(np.mean(self.before))
        verdict = "due" if self.is_due else "not due"
        better = f"by {since:.3f} better" if since >= 0 else f"by {-since:.3f} worse"
        rounds = count(len(self.since), "round")
        return (
            f"{verdict}: ranks pages {better} than average-count in the last {rounds}, {before:.3f} when it was trained"
        )


def check_age(predictor: Predictor, history: History, on_note: Step = ignore) -> Ageing:
    """How a model did in the rounds since it was trained, each predicted from what was known before it."""
    recipe, links = predictor.recipe, predictor.main_kind
    panel = for_target(ended_rounds(history, recipe.every, recipe.rounds + CHECKED, on_note), recipe)
    n_rounds = rounds_since(panel, predictor.window[1])
    ageing = partial(Ageing, n_rounds, predictor.advantage, is_baseline=named(recipe.learner).baseline)
    n_checked = min(n_rounds, CHECKED, panel.shape[1] - 2)
    if n_checked < 1 or named(recipe.learner).baseline:
        return ageing(())
    model, first = predictor.trained[links], panel.shape[1] - n_checked
    return ageing(since_round(history, panel, first, links, model.columns, recipe, model))


def rounds_since(panel: Panel, last_visit: str) -> int:
    """How many rounds have begun after the last visit that a model was trained on."""
    begun = np.where(np.isnat(panel.at), np.datetime64("9999-12-31", "us"), panel.at).min(axis=0)
    return int(
        (begun > np.datetime64(last_visit) + np.timedelta64(1, "s")).sum()
    )  # its fraction of a second was cut off


def is_due(before: Sequence[float], since: Sequence[float]) -> bool:
    """The rule alone, for the evaluation."""
    return Ageing(len(since), tuple(before), tuple(since)).is_due
