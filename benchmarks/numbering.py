"""Links numbered in parts that fit the cache, beside one hash table for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import njit

from benchmarks.measure import Row, best_of
from recrawl.world.kernels import numbered

LINKS = 40_000_000


def run(n_links: int = LINKS) -> Iterator[Row]:
    """Forty links a list, a third of them seen for the first time, a few very often."""
    chance = np.random.default_rng(0)
    start = np.arange(0, n_links + 1, 40)
    ids = chance.integers(-(2**62), 2**62, n_links // 3)
    links = ids[(chance.random(int(start[-1])) ** 1.5 * len(ids)).astype(np.int64)]
    used = np.arange(len(start) - 1)
    lists = start, links, np.zeros(len(used), np.int64), used, np.full(len(used), -1)
    ours, plain = numbered(*lists), _one_table(start, links)
    assert all(np.array_equal(one, other) for one, other in zip(ours[1:], plain, strict=True))
    ratio = best_of(2, lambda: _one_table(start, links)) / best_of(2, lambda: numbered(*lists))
    yield Row(f"{n_links / 1e6:.0f} million links numbered, against one hash table", ratio, "×", "> 1", ratio > 1)


@njit(cache=True)
def _one_table(start, links):  # type: ignore[no-untyped-def]
    size = 1024
    while size < 2 * len(links):
        size *= 2
    key, number = np.empty(size, np.int64), np.full(size, -1, np.int32)
    small, stands_for, n = np.empty(len(links), np.int32), np.empty(len(links), np.int64), 0
    for i in range(len(links)):
        at = (np.uint64(links[i]) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)) & np.uint64(size - 1)
        while number[at] >= 0 and key[at] != links[i]:
            at = (at + np.uint64(1)) & np.uint64(size - 1)
        if number[at] < 0:
            key[at], number[at], stands_for[n] = links[i], n, links[i]
            n += 1
        small[i] = number[at]
    for i in range(len(start) - 1):
        small[start[i] : start[i + 1]].sort()
    return small, stands_for[:n].copy()
