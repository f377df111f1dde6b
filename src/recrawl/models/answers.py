"""What is told of pages: the model's distributions, what is around pages without a past, and what makes the answers agree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.core.arrays import Floats, Floats32, Ints
from recrawl.insight.targets import LinkKind
from recrawl.models.around import Surroundings
from recrawl.models.distributions import CountDistribution, Poisson

INTERVAL = (0.1, 0.9)


@dataclass(frozen=True)
class Estimates:
    """What the next round will show, one entry a page."""

    expected: Floats32  # number of new links
    probability: Floats32  # of at least one
    low: Ints  # the 80% interval
    high: Ints

    def replaced(self, rows: NDArray[Any], other: Estimates) -> Estimates:
        """The same, with other answers for some pages."""
        names = ("expected", "probability", "low", "high")
        parts = {name: getattr(self, name).copy() for name in names}
        for name, values in parts.items():
            values[rows] = getattr(other, name)
        return Estimates(**parts)


def answer(model: Any, x: Floats32, near: Surroundings | None, chance: Floats, saw_past: bool = True) -> Estimates:
    """What a model says of pages with a past of their own, and what is around the others (`near`, if the model is not to be asked).

    `chance` is that of each page to be there at all. A model that was never shown a past (`saw_past`: two rounds have but one
    interval) does not know what it tells: pages that have one by now are taken to go on as they did.
    """
    if near is not None and not saw_past:
        pages, without = np.arange(len(chance)), np.flatnonzero(near.basis)
        found = _of(near.by_own_past(pages), chance)
        return found.replaced(without, _of(near.distribution(without), chance[without])) if len(without) else found
    found = _of(model_distribution(model, x), chance, _probability(model, x))
    if near is None:
        return found
    without = np.flatnonzero(near.basis)
    return found.replaced(without, _of(near.distribution(without), chance[without])) if len(without) else found


def model_distribution(model: Any, x: Floats32) -> CountDistribution:
    """The model's own distribution; a Poisson one where it gives none."""
    if hasattr(model, "predict_distribution"):
        told: CountDistribution = model.predict_distribution(x)
        return told
    return Poisson(np.maximum(np.asarray(model.predict(x), np.float64), 1e-6))


def _probability(model: Any, x: Floats32) -> Floats | None:
    """A baseline's own word on whether there is anything new, which does not follow from its number."""
    if hasattr(model, "predict_positive") and not hasattr(model, "predict_distribution"):
        return np.asarray(model.predict_positive(x), np.float64)
    return None


def _of(told: CountDistribution, chance: Floats, probability: Floats | None = None) -> Estimates:
    """The distribution in numbers, for pages that are there with some chance and else show nothing."""

    def quantile(q: float) -> Ints:
        beyond = np.where(chance < 1, np.maximum(1 - (1 - q) / chance, 0), q)
        return np.where(beyond > 0, told.quantile(beyond), 0)

    p = told.p_positive if probability is None else probability
    return Estimates(
        np.asarray(chance * told.mean, np.float32),
        np.asarray(chance * p, np.float32),
        quantile(INTERVAL[0]),
        quantile(INTERVAL[1]),
    )


def agreed(answers: dict[LinkKind, Estimates]) -> dict[LinkKind, Estimates]:
    """New links of all kinds are never fewer than those of one kind: what was told of all is raised to what was told of a part.

    Raised, not added up from the parts: the model of all links is the one whose ranking is measured, it may be the only one that
    was asked for, and the probability of any does not follow from those of the parts.
    """
    parts = [told for links, told in answers.items() if links != "all"]
    if "all" not in answers or not parts:
        return answers
    whole = answers["all"]
    for part in parts:
        whole = replace(
            whole,
            expected=np.maximum(whole.expected, part.expected),
            probability=np.maximum(whole.probability, part.probability),
            low=np.maximum(whole.low, part.low),
            high=np.maximum(whole.high, part.high),
        )
    return {**answers, "all": whole}
