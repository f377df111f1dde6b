"""How one extremely randomised tree grows, compiled, and how trees predict: the steps behind `recrawl.models.forests`.

The rules are those of scikit-learn's random splitter: a threshold is drawn between the smallest and the largest value in the node
for each of `max_features` features drawn without replacement; more are drawn until one is not constant. Rows with missing values go
to a side drawn by coin. The best split of those that leave enough rows on both sides is taken.

References: Geurts, Ernst and Wehenkel (2006), "Extremely randomized trees", Table 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.core.arrays import Floats, Ints, Ints32
from recrawl.models.tree_passes import (
    Candidates,
    add_missing,
    compiled,
    highest_known,
    look,
    part,
    range_of_all,
    range_of_one,
    sums_of_all,
    sums_of_one,
    weights_of_all,
)

LANES = 8  #: the number of features is rounded up to a multiple of this, so that vector instructions leave no remainder
_CONSTANT = np.float32(1e-7)  # features that vary less count as constant, as in scikit-learn
_FEW = 8  # if at most one feature in this many is a candidate, only candidates are read


class Tree(NamedTuple):
    """A tree as arrays; the left child of a node is the next one."""

    split: Ints32  # 2 × feature, plus 1 if rows with a missing value go to the left; -1 for a leaf
    right: Ints32  # the right child
    value: Floats  # rows up to this threshold go to the left; of a leaf: its mean
    gain: Floats  # by feature: how much its splits reduce the weighted variance


def empty_tree(n_nodes: int, n_features: int) -> Tree:
    """Room for a tree of at most this number of nodes."""
    return Tree(np.empty(n_nodes, np.int32), np.empty(n_nodes, np.int32), np.empty(n_nodes), np.zeros(n_features))


class Growth(NamedTuple):
    """What is wanted of a tree."""

    n_features: int
    max_features: int
    min_leaf: int
    weight_of_0: float  # without weights of rows: that of a row with y = 0 …
    weight_of_1: float  # … and with y = 1; for other y both are 1


class Workspace(NamedTuple):
    """Room for the growing of a tree: the features of one node, branches that wait, and the state of the random numbers."""

    node: Candidates
    starts: Ints
    ends: Ints
    parents: Ints
    state: NDArray[np.uint64]


def workspace(width: int, n_leaves: int) -> Workspace:
    """Room for trees with this number of columns, padding included, and at most this number of leaves."""
    node = Candidates(
        order=np.arange(width),
        low=np.zeros(width, np.float32),
        high=np.zeros(width, np.float32),
        threshold=np.full(width, -np.inf, np.float32),
        n=np.zeros(width, np.int64),
        total=np.zeros(width),
        weight=np.zeros(width),
        missing=np.zeros(width, np.int64),
    )
    starts, ends, parents = (np.zeros(n_leaves + 1, np.int64) for _ in range(3))
    return Workspace(node, starts, ends, parents, np.zeros(1, np.uint64))


@compiled
def _draw(state):  # type: ignore[no-untyped-def]
    """The next 64 random bits (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def _below(state, n):  # type: ignore[no-untyped-def]
    """A random whole number below n."""
    return np.int64(((_draw(state) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@compiled
def _draw_candidates(rows, start, end, growth, read_all, node, state):  # type: ignore[no-untyped-def]
    """Draw features and thresholds; the number of features drawn, constant ones included."""
    if read_all:
        range_of_all(rows.x, start, end, node.low, node.high)
        for f in range(growth.n_features):
            node.threshold[f] = -np.inf
    found = drawn = 0
    while drawn < growth.n_features and (drawn < growth.max_features or not found):
        other = drawn + _below(state, growth.n_features - drawn)
        f = node.order[other]
        node.order[other], node.order[drawn] = node.order[drawn], f
        drawn += 1
        if not read_all:
            range_of_one(rows.x, start, end, f, node.low, node.high)
        found += _draw_threshold(rows.x, start, end, f, node, state)
    return drawn


@compiled
def _draw_threshold(x, start, end, f, node, state):  # type: ignore[no-untyped-def]
    """1 if the feature varies, which then has a threshold; else 0."""
    node.threshold[f], node.missing[f] = -np.inf, 0
    if node.high[f] == np.inf:
        node.high[f] = highest_known(x, start, end, f)
        if node.high[f] < node.low[f]:  # every value is missing
            return 0
        node.missing[f] = 1 + _below(state, 2)
    elif node.high[f] <= node.low[f] + _CONSTANT:
        return 0
    low, high = node.low[f], node.high[f]
    share = np.float64(_draw(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)
    threshold = np.float32(low + share * (np.float64(high) - low))
    node.threshold[f] = low if threshold >= high else threshold
    return 1


@compiled
def _measure(rows, start, end, drawn, growth, read_all, node):  # type: ignore[no-untyped-def]
    """What lies up to the threshold of every candidate."""
    if read_all:
        sums_of_all(rows.x, rows.y, start, end, node.threshold, node.n, node.total)
    if len(rows.weight):
        weights_of_all(rows.x, rows.weight, start, end, node.threshold, node.weight)
    for k in range(drawn):
        f = node.order[k]
        if node.threshold[f] == -np.inf:
            continue
        if not read_all:
            sums_of_one(rows.x, rows.y, start, end, f, node)
        if node.missing[f] == 2:
            add_missing(rows, start, end, f, node)
        if not len(rows.weight):
            node.weight[f] = _weight(node.n[f], node.total[f], growth)
            node.total[f] *= growth.weight_of_1


@compiled
def _weight(n, total, growth):  # type: ignore[no-untyped-def]
    return growth.weight_of_0 * n + (growth.weight_of_1 - growth.weight_of_0) * total


@compiled
def _best(node, drawn, n_rows, total, weight, min_leaf):  # type: ignore[no-untyped-def]
    """The candidate with the largest sum of squares between its sides, or -1; and that sum."""
    best, most = -1, -np.inf
    for k in range(drawn):
        f = node.order[k]
        if node.threshold[f] == -np.inf or node.n[f] < min_leaf or n_rows - node.n[f] < min_leaf:
            continue
        left, right = node.weight[f], weight - node.weight[f]
        rest = total - node.total[f]
        between = (node.total[f] * node.total[f] * right + rest * rest * left) / (left * right)
        if between > most:
            best, most = f, between
    return best, most


@compiled
def _split(rows, start, end, at, tree, growth, room):  # type: ignore[no-untyped-def]
    """Make the node a leaf, or split its rows; the first row of its right side, or -1 for a leaf."""
    total, weight, is_pure = look(rows, start, end)
    if not len(rows.weight):
        weight, total = _weight(end - start, total, growth), total * growth.weight_of_1
    tree.split[at], tree.right[at], tree.value[at] = -1, -1, total / weight
    if is_pure or end - start < 2 * growth.min_leaf:
        return -1
    node, read_all = room.node, growth.max_features * _FEW > growth.n_features
    drawn = _draw_candidates(rows, start, end, growth, read_all, node, room.state)
    _measure(rows, start, end, drawn, growth, read_all, node)
    f, between = _best(node, drawn, end - start, total, weight, growth.min_leaf)
    if f < 0:
        return -1
    missing_left = node.missing[f] == 2
    middle = part(rows, start, end, f, node.threshold[f], missing_left)
    if node.missing[f] == 0:  # a value missing later goes where most rows are
        missing_left = middle - start > end - middle
    tree.split[at], tree.value[at] = 2 * f + missing_left, node.threshold[f]
    tree.gain[f] += between - total * total / weight
    return middle


@compiled
def grow(rows, tree, growth, room, seed):  # type: ignore[no-untyped-def]
    """Grow a tree from rows, which are moved; the number of its nodes."""
    starts, ends, parents = room.starts, room.ends, room.parents
    for f in range(growth.n_features):
        room.node.order[f] = f
    room.state[0] = seed
    starts[0], ends[0], parents[0] = 0, len(rows.y), -1
    waiting, n_nodes = 1, 0
    while waiting:
        waiting -= 1
        start, end, parent = starts[waiting], ends[waiting], parents[waiting]
        if parent >= 0:
            tree.right[parent] = n_nodes
        while True:  # down along left children
            middle = _split(rows, start, end, n_nodes, tree, growth, room)
            n_nodes += 1
            if middle < 0:
                break
            starts[waiting], ends[waiting], parents[waiting] = middle, end, n_nodes - 1
            waiting += 1
            end = middle
    return n_nodes


@compiled
def add_predictions(x, tree, root, sums):  # type: ignore[no-untyped-def]
    """Add the prediction of the tree that begins at `root` for each row."""
    split, right, value = tree.split, tree.right, tree.value
    for i in range(len(x)):
        at = root
        while split[at] >= 0:
            v = x[i, split[at] >> 1]
            on_left = v <= value[at] or (np.isnan(v) and split[at] & 1)
            at = at + 1 if on_left else root + right[at]
        sums[i] += value[at]
