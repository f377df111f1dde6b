"""Passes over the rows of one node of a tree, compiled: ranges, sums up to thresholds, and the parting of a node.

The rows of a node lie together in memory, each with all its features, so one pass serves all features at once with vector
instructions. A missing value is stored as infinity, which is on the right of every threshold. Places of rows are unsigned, because
the compiler does not vectorise loops in which a place might be negative. Nothing is checked here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from recrawl.core.arrays import Floats, Floats32, Ints

_FLAGS: Any = {"nnan", "nsz", "reassoc", "contract"}  # sums in any order; but infinity is a value
#: Without counting references to arrays, which took more than half of the time; so nothing may be allocated in here.
_njit: Any = njit  # its types do not know `_nrt`
compiled = _njit(cache=True, nogil=True, _nrt=False)
compiled_sums = _njit(cache=True, nogil=True, _nrt=False, fastmath=_FLAGS)


class Rows(NamedTuple):
    """The rows of a tree in the order of its leaves so far."""

    x: Floats32  # [row, feature], padded with zeros
    y: Floats  # times the weight, if there are weights
    weight: Floats  # empty if all rows count the same


class Candidates(NamedTuple):
    """What is known of the features in one node."""

    order: Ints  # a permutation of the features; those that were drawn first
    low: Floats32
    high: Floats32  # of values that are not missing
    threshold: Floats32  # minus infinity: no candidate
    n: Ints  # rows up to the threshold
    total: Floats  # of their y
    weight: Floats
    missing: Ints  # 0: none; 1: on the right; 2: on the left


@compiled_sums
def range_of_all(x, start, end, low, high):  # type: ignore[no-untyped-def]
    """The smallest and the largest value of every feature, two rows at a time."""
    width, one, two = np.uint64(len(low)), np.uint64(1), np.uint64(2)
    i = np.uint64(start)
    for f in range(width):
        low[f] = high[f] = x[i, f]
    i += np.uint64((end - start) % 2)
    for _ in range((end - start) // 2):
        j = i + one
        for f in range(width):
            a, b, least, most = x[i, f], x[j, f], low[f], high[f]
            smaller, larger = (a if a < b else b), (b if a < b else a)
            low[f] = smaller if smaller < least else least
            high[f] = larger if larger > most else most
        i += two


@compiled_sums
def range_of_one(x, start, end, f, low, high):  # type: ignore[no-untyped-def]
    """The smallest and the largest value of one feature."""
    f = np.uint64(f)
    least = most = x[np.uint64(start), f]
    for i in range(np.uint64(start + 1), np.uint64(end)):
        value = x[i, f]
        least = value if value < least else least
        most = value if value > most else most
    low[f], high[f] = least, most


@compiled
def highest_known(x, start, end, f):  # type: ignore[no-untyped-def]
    """The largest value of a feature that is not missing; minus infinity if all are."""
    most = -np.float32(np.inf)
    for i in range(start, end):
        if most < x[i, f] < np.inf:
            most = x[i, f]
    return most


@compiled_sums
def sums_of_all(x, y, start, end, threshold, n, total):  # type: ignore[no-untyped-def]
    """Rows up to the threshold of every feature, and the sum of their y, four rows at a time."""
    width, one = np.uint64(len(threshold)), np.uint64(1)
    for f in range(width):
        n[f], total[f] = 0, 0.0
    i = np.uint64(start)
    for _ in range((end - start) // 4):
        j, k, m = i + one, i + one + one, i + one + one + one
        yi, yj, yk, ym = y[i], y[j], y[k], y[m]
        for f in range(width):
            t = threshold[f]
            a, b, c, d = x[i, f] <= t, x[j, f] <= t, x[k, f] <= t, x[m, f] <= t
            total[f] += ((yi if a else 0.0) + (yj if b else 0.0)) + ((yk if c else 0.0) + (ym if d else 0.0))
            n[f] += ((1 if a else 0) + (1 if b else 0)) + ((1 if c else 0) + (1 if d else 0))
        i = m + one
    for last in range(i, np.uint64(end)):
        yi = y[last]
        for f in range(width):
            a = x[last, f] <= threshold[f]
            total[f] += yi if a else 0.0
            n[f] += 1 if a else 0


@compiled_sums
def sums_of_one(x, y, start, end, f, node):  # type: ignore[no-untyped-def]
    """Rows up to the threshold of one feature, and the sum of their y."""
    n, total, threshold, f = 0, 0.0, node.threshold[f], np.uint64(f)
    for i in range(np.uint64(start), np.uint64(end)):
        on_left = x[i, f] <= threshold
        n += 1 if on_left else 0
        total += y[i] if on_left else 0.0
    node.n[f], node.total[f] = n, total


@compiled_sums
def weights_of_all(x, weight, start, end, threshold, total):  # type: ignore[no-untyped-def]
    """The sum of the weights of the rows up to the threshold of every feature."""
    width = np.uint64(len(threshold))
    for f in range(width):
        total[f] = 0.0
    for i in range(np.uint64(start), np.uint64(end)):
        w = weight[i]
        for f in range(width):
            total[f] += w if x[i, f] <= threshold[f] else 0.0


@compiled
def add_missing(rows, start, end, f, node):  # type: ignore[no-untyped-def]
    """Count rows without a value to the left side as well."""
    for i in range(start, end):
        if rows.x[i, f] == np.inf:
            node.n[f] += 1
            node.total[f] += rows.y[i]
            if len(rows.weight):
                node.weight[f] += rows.weight[i]


@compiled
def part(rows, start, end, f, threshold, missing_left):  # type: ignore[no-untyped-def]
    """Move the rows of the left side to the front by swapping; the first row of the right side."""
    x, f = rows.x, np.uint64(f)
    left, right, one = np.uint64(start), np.uint64(end), np.uint64(1)  # right: one behind
    while True:
        while left < right and (x[left, f] <= threshold or (missing_left and x[left, f] == np.inf)):
            left += one
        while left < right and not (x[right - one, f] <= threshold or (missing_left and x[right - one, f] == np.inf)):
            right -= one
        if left >= right:
            return np.int64(left)
        right -= one
        _swap(rows, left, right)
        left += one


@compiled
def _swap(rows, i, j):  # type: ignore[no-untyped-def]
    x, y, weight = rows.x, rows.y, rows.weight
    for f in range(np.uint64(x.shape[1])):
        x[i, f], x[j, f] = x[j, f], x[i, f]
    y[i], y[j] = y[j], y[i]
    if len(weight):
        weight[i], weight[j] = weight[j], weight[i]


@compiled
def look(rows, start, end):  # type: ignore[no-untyped-def]
    """The sum of y, the sum of the weights (0 without), and whether all y are equal."""
    y, weights = rows.y, rows.weight
    total, weight, is_pure, first = 0.0, 0.0, True, y[np.uint64(start)]
    if len(weights):
        first_weight = weights[np.uint64(start)]
        for i in range(np.uint64(start), np.uint64(end)):
            total += y[i]
            weight += weights[i]
            is_pure &= y[i] * first_weight == first * weights[i]
    else:
        for i in range(np.uint64(start), np.uint64(end)):
            total += y[i]
            is_pure &= y[i] == first
    return total, weight, is_pure
