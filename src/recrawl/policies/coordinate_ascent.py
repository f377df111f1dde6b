"""Coordinate ascent: the linear combination of features that ranks lists best, one weight at a time.

The parameters and the search along a weight are those of RankLib, which Pham, Santos and Freire (2018) used. The package fastrank
has the same method, but its restarts race each other, so that equal seeds give different weights, and it took 1.6 s where this
takes a tenth of that.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from recrawl.core.arrays import Floats, Ints

FIRST_STEP, RELATIVE_STEP, GROWTH = 0.001, 0.05, 2.0  #: RankLib's step along a weight; it doubles while it is tried
MAX_PASSES = 25  #: over all weights; tolerance ends most searches long before


def best_weights(
    x: Floats,
    gain: Floats,
    start: Ints,
    *,
    depth: int = 10,
    restarts: int = 5,
    steps: int = 25,
    tolerance: float = 0.001,
    seed: int = 0,
) -> tuple[Floats, float]:
    """The weights of the columns of `x` whose sum ranks the lists best, and the mean NDCG at `depth` that they reach.

    List i has the rows from ``start[i]`` up to ``start[i + 1]``, and `gain` is the value of each row. The first restart begins
    with equal weights, the others with random ones. A pass that improves NDCG by less than `tolerance` is the last one.

    >>> x = np.array([[0.1, 5.0], [0.9, 1.0], [0.4, 3.0], [0.6, 2.0]])
    >>> weight, reached = best_weights(x, gain=np.array([0.0, 2.0, 0.0, 1.0]), start=np.array([0, 2, 4]))
    >>> reached, bool(weight[0] > weight[1])
    (1.0, True)

    References: Metzler and Croft (2007), Linear feature-based models for information retrieval.
    """
    chance = np.random.default_rng(seed)
    n = x.shape[1]
    columns = np.ascontiguousarray(x.T)
    ideal = _ideal(gain, start, depth)
    best, reached = np.full(n, 1.0 / n), -1.0
    for restart in range(restarts):
        weight = np.full(n, 1.0) if restart == 0 else chance.standard_normal(n)
        weight /= np.abs(weight).sum()
        orders = np.array([chance.permutation(n) for _ in range(MAX_PASSES)])
        value = _ascend(columns, gain, start, ideal, _discount(depth), weight, orders, steps, tolerance)
        if value > reached:
            best, reached = weight, float(value)
    return best, reached


def ndcg(score: Floats, gain: Floats, start: Ints, depth: int = 10) -> Floats:
    """Normalised discounted cumulative gain of each list at a depth; 1 where no row of it has a gain.

    >>> ndcg(np.array([3.0, 2.0, 1.0]), gain=np.array([0.0, 0.0, 1.0]), start=np.array([0, 3]))
    array([0.5])

    References: Järvelin and Kekäläinen (2002).
    """
    ideal = _ideal(gain, start, depth)
    reached: Floats = _dcg_of_lists(score, gain, start, _discount(depth))
    normalised: Floats = np.where(ideal > 0, reached / np.where(ideal > 0, ideal, 1.0), 1.0)
    return normalised


def _ideal(gain: Floats, start: Ints, depth: int) -> Floats:
    ideal: Floats = _dcg_of_lists(gain, gain, start, _discount(depth))
    return ideal


def _discount(depth: int) -> Floats:
    discount: Floats = 1.0 / np.log2(np.arange(depth) + 2.0)
    return discount


@njit(cache=True)
def _dcg_of_lists(score, gain, start, discount):  # type: ignore[no-untyped-def]
    top_score, top_gain = np.empty(len(discount)), np.empty(len(discount))
    dcg = np.zeros(len(start) - 1)
    for i in range(len(start) - 1):
        dcg[i] = _dcg(score, score, 0.0, gain, start[i], start[i + 1], discount, top_score, top_gain)
    return dcg


@njit(cache=True)
def _dcg(score, column, step, gain, first, end, discount, top_score, top_gain):  # type: ignore[no-untyped-def]
    """DCG of one list by ``score + step · column``; of equal scores the earlier row comes first."""
    n, depth = 0, len(discount)
    for i in range(first, end):
        value = score[i] + step * column[i]
        if n == depth and value <= top_score[n - 1]:
            continue
        at = n if n < depth else n - 1
        while at > 0 and top_score[at - 1] < value:
            top_score[at], top_gain[at] = top_score[at - 1], top_gain[at - 1]
            at -= 1
        top_score[at], top_gain[at] = value, gain[i]
        n = min(n + 1, depth)
    total = 0.0
    for i in range(n):
        total += top_gain[i] * discount[i]
    return total


@njit(cache=True)
def _mean_ndcg(score, column, step, gain, start, ideal, discount, top_score, top_gain):  # type: ignore[no-untyped-def]
    total, n = 0.0, 0
    for i in range(len(ideal)):
        if ideal[i] > 0:
            dcg = _dcg(score, column, step, gain, start[i], start[i + 1], discount, top_score, top_gain)
            total += dcg / ideal[i]
            n += 1
    return total / max(n, 1)


@njit(cache=True)
def _ascend(columns, gain, start, ideal, discount, weight, orders, steps, tolerance):  # type: ignore[no-untyped-def]
    """Improve the weights in place; the NDCG reached."""
    top_score, top_gain = np.empty(len(discount)), np.empty(len(discount))
    score = _weighted(columns, weight)
    best = _mean_ndcg(score, columns[0], 0.0, gain, start, ideal, discount, top_score, top_gain)
    for order in orders:
        before = best
        for f in order:
            move = 0.0
            for sign in (1.0, -1.0, 0.0):  # 0: do without the feature
                step = sign * FIRST_STEP
                if weight[f] != 0 and 0.5 * abs(weight[f]) < FIRST_STEP:
                    step = sign * RELATIVE_STEP * abs(weight[f])
                total = step if sign != 0 else -weight[f]
                for _ in range(steps if sign != 0 else 1):
                    value = _mean_ndcg(score, columns[f], total, gain, start, ideal, discount, top_score, top_gain)
                    if value > best:
                        best, move = value, total
                    step *= GROWTH
                    total += step
            if move != 0.0:
                weight[f] += move
                size = np.abs(weight).sum()
                if size > 0:
                    weight /= size
                score = _weighted(columns, weight)
        if best - before < tolerance:
            break
    return best


@njit(cache=True)
def _weighted(columns, weight):  # type: ignore[no-untyped-def]
    score = np.zeros(columns.shape[1])
    for f in range(len(weight)):
        score += weight[f] * columns[f]
    return score
