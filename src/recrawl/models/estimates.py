"""Expected new links in numbers: from the model, or from what is around a page without a past; and made consistent.

A model predicts the pages that have a past of their own. All others follow what is around them (`recrawl.models.around`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.core.arrays import Floats, Floats32, Ints
from recrawl.insight.choices import LinkKind
from recrawl.models.around import Surroundings
from recrawl.models.distributions import CountDistribution, Poisson

INTERVAL = (0.1, 0.9)  #: quantiles at the ends of the 80% interval


@dataclass(frozen=True)
class Estimates:
    """What the next round will show: one entry per page."""

    expected: Floats32  # number of new links
    probability: Floats32  # of at least one
    low: Ints  # the 80% interval
    high: Ints

    def replaced(self, rows: NDArray[Any], other: Estimates) -> Estimates:
        """The same, with other estimates for some pages."""
        names = ("expected", "probability", "low", "high")
        parts = {name: getattr(self, name).copy() for name in names}
        for name, values in parts.items():
            values[rows] = getattr(other, name)
        return Estimates(**parts)


def estimate(model: Any, x: Floats32, near: Surroundings | None, chance: Floats, saw_past: bool = True) -> Estimates:
    """The model's estimates for pages with a past of their own, and for the others those by what is around them.

    Without `near` the model is used for all pages. `chance` is the probability of each page to be there at all. A model that was
    never shown a past (not `saw_past`: two rounds have only one interval) cannot use one: pages that have a past by now are
    expected to go on as they did.
    """
    if near is not None and not saw_past:
        estimates = _in_numbers(near.by_own_past(np.arange(len(chance))), chance)
    else:
        estimates = _in_numbers(model_distribution(model, x), chance, _probability(model, x))
    if near is None or not near.basis.any():
        return estimates
    without = np.flatnonzero(near.basis)
    return estimates.replaced(without, _in_numbers(near.distribution(without), chance[without]))


def model_distribution(model: Any, x: Floats32) -> CountDistribution:
    """The model's own distribution; a Poisson distribution where it gives none."""
    if hasattr(model, "predict_distribution"):
        distribution: CountDistribution = model.predict_distribution(x)
        return distribution
    return Poisson(np.maximum(np.asarray(model.predict(x), np.float64), 1e-6))


def _probability(model: Any, x: Floats32) -> Floats | None:
    """A baseline's own probability of anything new, which does not follow from its number."""
    if hasattr(model, "predict_positive") and not hasattr(model, "predict_distribution"):
        return np.asarray(model.predict_positive(x), np.float64)
    return None


def _in_numbers(counts: CountDistribution, chance: Floats, probability: Floats | None = None) -> Estimates:
    """A distribution in numbers, for pages that exist with probability `chance` and otherwise show nothing."""

    def quantile(q: float) -> Ints:
        beyond = np.where(chance < 1, np.maximum(1 - (1 - q) / chance, 0), q)
        return np.where(beyond > 0, counts.quantile(beyond), 0)

    p = counts.p_positive if probability is None else probability
    return Estimates(
        np.asarray(chance * counts.mean, np.float32),
        np.asarray(chance * p, np.float32),
        quantile(INTERVAL[0]),
        quantile(INTERVAL[1]),
    )


def reconciled(estimates: dict[LinkKind, Estimates]) -> dict[LinkKind, Estimates]:
    """All new links are never fewer than those of one kind: the estimates for all are raised to those for a part.

    Raised, not added up from the parts: the model of all links is the one whose ranking is measured, it may be the only one that
    was trained, and the probability of any link does not follow from those of the parts.
    """
    parts = [of_kind for links, of_kind in estimates.items() if links != "all"]
    if "all" not in estimates or not parts:
        return estimates
    whole = estimates["all"]
    for part in parts:
        whole = replace(
            whole,
            expected=np.maximum(whole.expected, part.expected),
            probability=np.maximum(whole.probability, part.probability),
            low=np.maximum(whole.low, part.low),
            high=np.maximum(whole.high, part.high),
        )
    return {**estimates, "all": whole}
