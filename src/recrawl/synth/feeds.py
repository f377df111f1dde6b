"""Where new links come from: feeds of numbered items, from which the pages of a group show the latest ones.

A group (the pages of a section, or all pages of a topic for external links) publishes a number of items in every round;
each of its pages takes as many of them as it gains links, so the same item appears on several pages. A page shows the
last `length` items that it took.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.core.arrays import Floats, Ints, Ints32

ENDLESS = np.int64(1) << 62


@dataclass(frozen=True, kw_only=True)
class ItemFeed:
    """Which items each page took in each round; items are numbered group after group."""

    group_start: Ints  # [group + 1] first item
    group: Ints  # [page]
    taken: Ints32  # [page, round] how many items
    first: Ints  # [page, round] first item taken, counted from the group's start
    length: Ints  # [page] items shown
    stock: Ints  # [page] items of the group before the first round; the page shows the last `length` of them
    period: Ints  # [page] after this many items the first ones come back


def make_feed(
    taken: Ints32, group: Ints, length: Ints, *, rotating: Ints, sharing: float, rng: np.random.Generator
) -> ItemFeed:
    """A feed from which every page takes the links that it gains; each page in `rotating` gets a group of its own."""
    group = group.copy()
    group[rotating] = group.max() + 1 + np.arange(len(rotating))
    group = np.unique(group, return_inverse=True)[1]
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(group.max() + 1))
    length = np.maximum(length, taken.max(axis=1))
    most = np.maximum.reduceat(taken[order], starts, axis=0)
    total = np.add.reduceat(taken[order].astype(np.float32), starts, axis=0)
    published = np.maximum(most, np.ceil((1 - sharing) * total)).astype(np.int64)
    stock = np.maximum.reduceat(length[order], starts)
    before = stock[:, None] + np.cumsum(published, axis=1) - published
    slack = published[group] - taken
    first = before[group] + (rng.random(taken.shape) * (slack + 1)).astype(np.int64)
    period = np.full(len(group), ENDLESS)
    # Long enough that an item that comes back is not still shown.
    period[rotating] = 2 * length[rotating] + taken[rotating].max(axis=1) + 1
    sizes = stock + published.sum(axis=1)
    sizes[group[rotating]] = np.minimum(sizes[group[rotating]], period[rotating])
    return ItemFeed(
        group_start=np.r_[0, np.cumsum(sizes)],
        group=group,
        taken=taken,
        first=first,
        length=length,
        stock=stock[group],
        period=period,
    )


def list_lengths(taken: Ints32, rng: np.random.Generator) -> Ints:
    """How many items a page shows: none if it never gains any, else some multiple of what it gains."""
    typical: Floats = taken.sum(axis=1) / np.maximum((taken > 0).sum(axis=1), 1)
    lengths = 3 + typical * rng.lognormal(0.3, 0.5, len(taken))
    return np.where(typical > 0, lengths, 0).astype(np.int64)
