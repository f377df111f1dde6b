"""Look around: what is expected of a page before its own past says much, from pages like it in size, site, folder, name or text.

How much each of these counts is not set but learnt: by the likelihood of what all other pages brought (empirical Bayes).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from recrawl.policies.base import Floats, Ints
from recrawl.policies.stock.mixture import Mixture

if TYPE_CHECKING:
    from recrawl.related import Related

POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)  #: of a page's size, to which its rate may be proportional
#: Links of others that weigh as much as the level above; infinite: unused.
WEIGHTS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, np.inf)
CYCLES_A_LINK = 10.0  #: in which a page gains one link, as long as nothing else is known
MAX_FITTED = 20_000  #: pages that the weights are learnt from; more tell no more


class Prior:
    """The expected rate of every page (links a clock hour), and how far pages differ from it.

    What is expected of page p is mean_p = level · size_p^power · site_p · folder_p · name_p · related_p. The factors of the groups
    that a page belongs to, and of its related pages, are ratios of what came to what was expected there, without the page itself,
    each given those before it, shrunk towards 1 by `group_weights` and `related_weight` links. Around that rates differ as
    `Mixture` says, by which the past of a page is weighed against what is expected of it. Counts are over-dispersed by φ: links
    come in batches.
    """

    def __init__(self, n_pages: int) -> None:
        self.mean: Floats = np.ones(n_pages)
        self.power, self.mixture = 1.0, Mixture()
        self.group_weights: tuple[float, ...] = ()
        self.related_weight = np.inf

    def posterior(
        self, arrivals: Floats, exposure: Floats, page: Ints | slice, dispersion: float
    ) -> tuple[Floats, Floats]:
        """Links an hour, by the page's own past and what is expected of it, and the shape of a gamma distribution around that."""
        mean = self.mean[page]
        factor, shape = self.mixture.posterior(arrivals / dispersion, mean * exposure / dispersion)
        return mean * factor, shape

    def refit(
        self,
        arrivals: Floats,
        exposure: Floats,
        size: Floats,
        groups: Sequence[Ints],
        related: Related | None,
        dispersion: float,
        cycle_hours: float,
        around: bool = True,
        levels: bool = True,
    ) -> None:
        """Learn all weights anew. `size`: links on each page, NaN where nobody knows; `groups`: numbers that pages alike share.

        No `around`: all pages begin alike. No `levels`: how far pages differ stays as it is taken to be at the beginning.
        """
        known = size[~np.isnan(size)]
        size = np.maximum(np.where(np.isnan(size), known.mean() if len(known) else 1.0, size), 1.0)
        fitted = np.flatnonzero(exposure > 0)
        fitted = fitted[:: len(fitted) // MAX_FITTED + 1]

        def batches(mean: Floats) -> tuple[Floats, Floats]:
            return arrivals[fitted] / dispersion, mean[fitted] * exposure[fitted] / dispersion

        def fit(mean: Floats) -> float:
            return self.mixture.log_likelihood(*batches(mean))

        def level(power: float) -> Floats:
            base = size**power
            before = base.mean() * cycle_hours * CYCLES_A_LINK
            mean: Floats = base * ((arrivals.sum() + 1.0) / ((base * exposure).sum() + before))
            return mean

        if len(fitted) < 3:
            self.mean = level(self.power)
            return
        self.power = max(POWERS if around else POWERS[:1], key=lambda power: fit(level(power)))
        mean = level(self.power)
        weights = []
        for group in groups if around else ():
            weight, mean = _looked(_GroupFactor(group, arrivals, mean * exposure), mean, dispersion, fit)
            weights.append(weight)
        self.group_weights = tuple(weights)
        if around and related is not None:
            near = _RelatedFactor(related, arrivals, mean * exposure)
            self.related_weight, mean = _looked(near, mean, dispersion, fit)
        self.mean = mean
        if levels:
            self.mixture.learn(*batches(mean))


def _looked(
    factor: _GroupFactor, mean: Floats, dispersion: float, fit: Callable[[Floats], float]
) -> tuple[float, Floats]:
    """The weight that explains best what the pages brought, and the means with it; unused unless it explains more."""
    best = max(WEIGHTS[::-1], key=lambda weight: fit(mean * factor(weight * dispersion)))
    return best, mean * factor(best * dispersion)


class _GroupFactor:
    """What came on the other pages of the group, by what was expected there."""

    def __init__(self, group: Ints, came: Floats, expected: Floats) -> None:
        self.came = np.bincount(group, came)[group] - came
        self.expected = np.bincount(group, expected)[group] - expected

    def __call__(self, weight: float) -> Floats:
        return np.ones(len(self.came)) if np.isinf(weight) else (self.came + weight) / (self.expected + weight)


class _RelatedFactor(_GroupFactor):
    """What came on related pages, by what was expected there; each counts by its weight."""

    def __init__(self, related: Related, came: Floats, expected: Floats) -> None:
        is_there = related.neighbour >= 0
        weight = np.where(is_there, related.weight, 0.0) * is_there.sum(axis=1, keepdims=True)
        self.came = (weight * came[related.neighbour]).sum(axis=1)
        self.expected = (weight * expected[related.neighbour]).sum(axis=1)
