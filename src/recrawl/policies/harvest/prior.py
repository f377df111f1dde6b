"""Look around: what is expected of a page before its own past says much, from pages like it in size, site, folder, name or text.

How much each of these counts is not set but learnt: by the likelihood of what all other pages brought (empirical Bayes).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recrawl.core.arrays import Floats, Ints
from recrawl.policies.harvest.mixture import Mixture

if TYPE_CHECKING:
    from recrawl.world.related import Related

POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)  #: of a page's size, to which its rate may be proportional
#: Links of others that weigh as much as the level above; infinite: unused.
WEIGHTS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, np.inf)
CYCLES_A_LINK = 10.0  #: in which a page gains one link, as long as nothing else is known
MAX_FITTED = 20_000  #: pages that the weights are learnt from; more tell no more


class Prior:
    """The expected rate of every page (links a clock hour), and how far pages differ from it.

    What is expected of page p is mean_p = level · size_p^power · site_p · folder_p · name_p · related_p. The factors of the groups
    that a page belongs to, and of its related pages, are ratios of what came to what was expected there, without the page itself,
    each given those before it (`_Known`), shrunk towards 1 by `group_weights` and `related_weight` links. Around that rates differ
    as `Mixture` says, by which the past of a page is weighed against what is expected of it. Counts are over-dispersed by φ: links
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
        told = _Known.nothing(arrivals, mean * exposure)
        weights = []
        for group in groups if around else ():
            factor = _GroupFactor(group, told)
            weight, looked = _looked(factor, mean, dispersion, fit)
            told, mean = factor.known(weight * dispersion), looked
            weights.append(weight)
        self.group_weights = tuple(weights)
        if around and related is not None:
            self.related_weight, mean = _looked(_RelatedFactor(related, told), mean, dispersion, fit)
        self.mean = mean
        if levels:
            self.mixture.learn(*batches(mean))


def _looked(
    factor: _GroupFactor | _RelatedFactor, mean: Floats, dispersion: float, fit: Callable[[Floats], float]
) -> tuple[float, Floats]:
    """The weight that explains best what the pages brought, and the means with it; unused unless it explains more."""
    best = max(WEIGHTS[::-1], key=lambda weight: fit(mean * factor(weight * dispersion)))
    return best, mean * factor(best * dispersion)


@dataclass(frozen=True)
class _Known:
    """What the groups so far tell. A page must not tell anything about its own prior, nor twice about that of another.

    What is expected of another page q, when p is looked at, rests on everything but p. If q is in all groups of p so far, that is
    what is known of p itself. If not, it is what is known of q with its own past: p has no part in that, or a small one.
    """

    came: Floats
    expected: Floats  # of pages of this size
    within: Ints  # a number for each set of groups so far
    without_it: Floats  # the factor of each page by the groups so far, but for its own past
    with_it: Floats  # the same with its own past

    @classmethod
    def nothing(cls, came: Floats, expected: Floats) -> _Known:
        """Before anything was looked at."""
        one = np.ones(len(came))
        return cls(came, expected, np.zeros(len(came), np.int64), one, one)


class _GroupFactor:
    """What came on the other pages of the group, by what was expected there."""

    def __init__(self, group: Ints, known: _Known) -> None:
        self.before = known
        _, self.within = np.unique(known.within * (group.max(initial=0) + 1) + group, return_inverse=True)
        with_it = known.expected * known.with_it
        self.all_came, self.all_expected = _summed(group, known.came), _summed(group, with_it)
        same, same_with_it = _summed(self.within, known.expected), _summed(self.within, with_it)
        self.came = self.all_came - known.came
        self.expected = self.all_expected - same_with_it + (same - known.expected) * known.without_it

    def __call__(self, weight: float) -> Floats:
        return _ratio(self.came, self.expected, weight)

    def known(self, weight: float) -> _Known:
        """What is known with this group."""
        whole = self.before.with_it * _ratio(self.all_came, self.all_expected, weight)
        without_it = self.before.without_it * self(weight)
        return _Known(self.before.came, self.before.expected, self.within, without_it, whole)


class _RelatedFactor:
    """What came on related pages, by what was expected there; each counts by its weight."""

    def __init__(self, related: Related, known: _Known) -> None:
        near, is_there = related.neighbour, related.neighbour >= 0
        weight = np.where(is_there, related.weight, 0.0) * is_there.sum(axis=1, keepdims=True)
        is_same = known.within[near] == known.within[:, None]
        factor = np.where(is_same, known.without_it[:, None], known.with_it[near])
        self.came = (weight * known.came[near]).sum(axis=1)
        self.expected = (weight * factor * known.expected[near]).sum(axis=1)

    def __call__(self, weight: float) -> Floats:
        return _ratio(self.came, self.expected, weight)


def _summed(group: Ints, values: Floats) -> Floats:
    """Of each page's group."""
    whole: Floats = np.bincount(group, values)[group].astype(np.float64, copy=False)
    return whole


def _ratio(came: Floats, expected: Floats, weight: float) -> Floats:
    return np.ones(len(came)) if np.isinf(weight) else (came + weight) / (expected + weight)
