"""Which buckets use a link set or a text: those of all pages that ever showed it."""

from __future__ import annotations

import numpy as np

from recrawl.core.arrays import Ints
from recrawl.history.keys import settle

Pairs = tuple[Ints, Ints]  # digests and buckets, by both, no pair twice


class Uses:
    """A growing set of pairs: a digest, and a bucket of which a page points at it."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._runs: list[Pairs] = []

    def __len__(self) -> int:
        return sum(len(digest) for digest, _ in self._runs)

    def add(self, digest: Ints, bucket: Ints) -> None:
        """Take in pairs, in any order."""
        self._runs.append(_distinct([(digest, bucket)]))
        settle(self._runs, lambda run: len(run[0]), _distinct)

    def pairs(self) -> Pairs:
        """All of them."""
        if len(self._runs) != 1:
            self._runs = [_distinct([*self._runs, (np.zeros(0, np.int64), np.zeros(0, np.int64))])]
        return self._runs[0]


class Copies:
    """Spreads the rows of one table over the buckets that use them, part by part; a row may be there many times already.

    What is in the files of a bucket stays there: visits are never lost, so neither is a use.

    >>> uses = Uses(8)
    >>> uses.add(np.array([7, 5, 7, 7]), np.array([3, 1, 2, 3]))
    >>> copies = Copies(uses)
    >>> [part.tolist() for part in copies.of(np.array([7, 9, 5, 7]), None)]
    [[0, 0, 2, 1], [2, 3, 1, 1]]
    >>> [part.tolist() for part in copies.of(np.array([7, 5, 11]), 6)]
    [[0, 1, 2], [6, 6, 6]]
    """

    def __init__(self, uses: Uses) -> None:
        self.n = uses.n
        self._digest, self._bucket = uses.pairs()
        self._is_done = np.zeros(len(self._digest), np.bool_)  # at the first pair of each digest: it was spread

    def of(self, digest: Ints, own: int | None) -> tuple[Ints, Ints]:
        """For each copy of some rows that is needed: the place of the row, and the bucket. `own`: the bucket that they come from.

        A row that no visit points at, as a killed import leaves it, is in some bucket, too.
        """
        low, high = np.searchsorted(self._digest, digest), np.searchsorted(self._digest, digest, "right")
        row = np.flatnonzero(low < high)
        row = row[~self._is_done[low[row]]]
        row = np.sort(row[np.unique(low[row], return_index=True)[1]])
        self._is_done[low[row]] = True
        n_uses = (high - low)[row]
        pair = np.arange(n_uses.sum()) + np.repeat(low[row] - np.cumsum(n_uses) + n_uses, n_uses)
        if own is None:
            kept = np.flatnonzero(low == high)
            bucket = (digest[kept].view(np.uint64) % np.uint64(self.n)).astype(np.int64)
        else:
            kept, bucket = np.arange(len(digest)), np.full(len(digest), own, np.int64)
        return np.append(np.repeat(row, n_uses), kept), np.append(self._bucket[pair], bucket)


def _distinct(runs: list[Pairs]) -> Pairs:
    digest, bucket = (np.concatenate(column) for column in zip(*runs, strict=True))
    order = np.lexsort((bucket, digest))
    digest, bucket = digest[order], bucket[order]
    is_first = np.append(True, (digest[1:] != digest[:-1]) | (bucket[1:] != bucket[:-1]))[: len(digest)]
    return digest[is_first], bucket[is_first]
