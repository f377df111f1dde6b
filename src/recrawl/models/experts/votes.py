"""Votes that know who was right: experts whose past opinions came true count more, without a look at the future.

In the paper's vote an expert counts as much as it resembles the page, right or wrong: one that knows is drowned by twenty that do
not. Here the weights are those of an exponentially weighted forecaster. They begin with the paper's, and every opinion that turned
out wrong makes its expert count less. How fast follows from the losses themselves (AdaHedge), so there is nothing to tune.

References: de Rooij, van Erven, Grünwald and Koolen (2014), "Follow the leader if you can, hedge if you must", Fig. 1; Freund,
Schapire, Singer and Warmuth (1997), "Using and combining predictors that specialize", for experts without an opinion.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from recrawl.core.arrays import Floats, Ints8

VOTES = (
    "similarity",
    "accuracy",
)  #: what the vote of an expert counts by: the paper's weight, or how often it was right


def vote_by_accuracy(opinions: Floats, weight: Floats, label: Ints8, sigma: int) -> Floats:
    """The weighted majority at every time, between -1 and 1; NaN where no expert with a weight has an opinion.

    `opinions` [expert, time] expect a change above 0; NaN is no opinion. `weight` is that of the paper's vote, for each expert or
    [expert, time]; 0 silences an expert. `label[s]` is 1 or 0 if the page did or did not change at s + σ, which is known from then
    on; -1: never known.

    >>> says, never = [1.0, -1.0, 1.0, 1.0], [-1.0, -1.0, -1.0, -1.0]
    >>> vote_by_accuracy(np.array([says, never, never]), np.ones(3), np.array([1, 0, 1, -1], np.int8), 1).round(2)
    array([-0.33, -1.  ,  0.44,  0.78])
    """
    opinions = np.asarray(opinions, np.float64)
    weights = np.broadcast_to(weight if weight.ndim == 2 else weight[:, None], opinions.shape).astype(np.float64)
    signs = np.where(np.isnan(opinions), 0, np.where(opinions > 0, 1, -1)).astype(np.int8)
    result: Floats = compiled_votes(signs, weights, label, sigma)
    return result


@njit(cache=True, nogil=True)
def _weights(prior, loss, gap, out):  # type: ignore[no-untyped-def]
    """Shares by prior and past loss; without a gap so far, all goes to those with the least loss."""
    least, total = np.inf, 0.0
    for i in range(len(prior)):
        if prior[i] > 0:
            least = min(least, loss[i])
    rate = np.log(max(len(prior), 2)) / gap if gap > 0 else np.inf
    for i in range(len(prior)):
        behind = loss[i] - least
        if prior[i] <= 0:
            out[i] = 0.0
        elif behind <= 1e-12:
            out[i] = prior[i]
        else:
            out[i] = prior[i] * np.exp(-rate * behind)
        total += out[i]
    if total > 0:
        out /= total
    return rate


@njit(cache=True, nogil=True)
def _learn(signs, came_true, weight, rate, loss):  # type: ignore[no-untyped-def]
    """Add the losses of one outcome, and return how much the mixture lost to the best use of it (the mixability gap)."""
    awake = hedged = 0.0
    for i in range(len(signs)):
        if signs[i] != 0:
            awake += weight[i]
            hedged += weight[i] * (signs[i] != came_true)
    if awake <= 0:
        return 0.0
    hedged /= awake
    mixed, least = 0.0, np.inf
    for i in range(len(signs)):
        if signs[i] != 0 and weight[i] > 0:
            lost = 1.0 if signs[i] != came_true else 0.0
            least = min(least, lost)
            mixed += weight[i] / awake * (np.exp(-rate * lost) if lost > 0 else 1.0)
    for i in range(len(signs)):
        # One without an opinion loses what the others lose on average.
        loss[i] += hedged if signs[i] == 0 else 1.0 * (signs[i] != came_true)
    best = least if rate == np.inf else -np.log(mixed) / rate
    return max(hedged - best, 0.0)


@njit(cache=True, nogil=True)
def compiled_votes(signs, weights, label, sigma):  # type: ignore[no-untyped-def]
    """See `vote_by_accuracy`; opinions as 1, -1 and, none, 0."""
    n_experts, n = signs.shape
    result = np.full(n, np.nan)
    loss, weight, gap = np.zeros(n_experts), np.zeros(n_experts), 0.0
    for t in range(n):
        known = t - sigma
        if known >= 0 and label[known] >= 0:
            rate = _weights(weights[:, known], loss, gap, weight)
            gap += _learn(signs[:, known], 1 if label[known] == 1 else -1, weight, rate, loss)
        _weights(weights[:, t], loss, gap, weight)
        total = heard = 0.0
        for i in range(n_experts):
            total += weight[i] * signs[i, t]
            heard += weight[i] * (signs[i, t] != 0)
        if heard > 0:
            result[t] = total / heard
    return result
