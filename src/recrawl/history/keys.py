"""Which rows a history already holds: sorted runs of keys, read once per file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recrawl.core.array_hashing import hash64_strings
from recrawl.core.arrays import Flags, Ints, Ints8
from recrawl.history.schema import KEY
from recrawl.web.visit import Outcome

Keys = tuple[Ints, Ints, Ints]  # of visits: page, time and precedence
Run = TypeVar("Run")


def settle(runs: list[Run], size: Callable[[Run], int], merge: Callable[[list[Run]], Run]) -> None:
    """Merge the last runs until each has twice the size of the next: few runs, and every key is merged a few times only."""
    while len(runs) > 1 and size(runs[-2]) < 2 * size(runs[-1]):
        runs[-2:] = [merge(runs[-2:])]


class KnownIds:
    """A growing set of 64-bit ids, looked up many at a time.

    >>> known = KnownIds()
    >>> known.add(np.array([3, 1]))
    >>> known.holds(np.array([1, 2, 3]))
    array([ True, False,  True])
    """

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._runs: list[Ints] = []

    def read_new(self, files: Iterable[str], read: Callable[[str], Ints]) -> None:
        """Take in the ids of files not read before."""
        for file in files:
            if file not in self._files:
                self.add(read(file))
                self._files.add(file)

    def add(self, ids: Ints) -> None:
        """Take in ids, in any order."""
        self._runs.append(np.sort(ids))
        settle(self._runs, len, lambda runs: distinct(np.concatenate(runs)))

    def holds(self, ids: Ints) -> Flags:
        """For each id, whether it is known."""
        order = np.argsort(ids)  # in random order every step of every search would miss the cache
        ids, found, held = ids[order], np.zeros(len(ids), np.bool_), np.empty(len(ids), np.bool_)
        for run in self._runs:
            if len(run):
                at = np.minimum(np.searchsorted(run, ids), len(run) - 1)
                found |= run[at] == ids
        held[order] = found
        return held


def distinct(ids: Ints) -> Ints:
    """Every id once, ascending. For millions of them many times as fast as `np.unique`, which hashes.

    >>> distinct(np.array([5, 3, 5]))
    array([3, 5])
    """
    ascending: Ints = np.sort(ids)
    is_first: Flags = np.append(True, ascending[1:] != ascending[:-1])[: len(ids)]
    return ascending[is_first]


_OUTCOMES: Ints8 = np.array([Outcome.of(code) for code in range(1000)], np.int8)


def outcomes(status: NDArray[np.int16]) -> Ints8:
    """`Outcome.of` for many."""
    return _OUTCOMES[status]


def precedence(visits: pa.Table) -> Ints:
    """Which of several rows for one page and moment counts: the highest. It depends on the rows only, never on their order.

    A copy beats "unchanged" beats "gone" beats a failure; then known links beat unknown ones, and a known text an unknown one; then
    a baseline, and more known columns. Between rows that hold equally much, a hash of their content decides.
    """
    status = visits["status"].to_numpy()
    rank = len(Outcome) - outcomes(status).astype(np.int64)
    for name in ("links", "text"):
        rank = rank * 2 + np.asarray(visits[name].is_valid())
    rank = rank * 2 + np.asarray(visits["baseline"].fill_null(False))
    n_known = np.zeros(len(status), np.int64)
    mixed = status.astype(np.uint64)
    for name in visits.schema.names:
        if name not in ("page", "at", "status"):
            n_known += np.asarray(visits[name].is_valid())
            mixed = (mixed ^ _numbers(visits[name])) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
    combined: Ints = ((rank * 32 + n_known) << 48) | (mixed >> np.uint64(16)).astype(np.int64)
    return combined


def _numbers(column: pa.ChunkedArray) -> NDArray[np.uint64]:
    """A number for every value, 0 for null; equal values have equal numbers."""
    numbers: NDArray[np.uint64]
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        known = np.asarray(column.is_valid())
        numbers = np.where(known, hash64_strings(column.fill_null("")), 0).view(np.uint64)
    elif pa.types.is_floating(column.type):
        numbers = column.fill_null(0).to_numpy().astype(np.float64).view(np.uint64) + np.asarray(column.is_valid())
    elif pa.types.is_boolean(column.type):
        numbers = column.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint64)
    else:
        numbers = column.fill_null(0).to_numpy().view(np.uint64)
    return numbers


def best_rows(page: Ints, at: Ints, rank: Callable[[], Ints]) -> Ints:
    """The rows to keep, ordered by page and time: one for each (page, at), the one of highest precedence.

    `rank` is called only if any key is there twice.

    >>> best_rows(np.array([7, 5, 7]), np.array([1, 1, 1]), lambda: np.array([0, 0, 9]))
    array([1, 2])
    """
    order: Ints = np.argsort(page, kind="stable")  # visits are mostly appended as they were made
    if ((page[order[1:]] == page[order[:-1]]) & (at[order[1:]] < at[order[:-1]])).any():
        order = np.lexsort((at, page))
    page, at = page[order], at[order]
    repeated = (page[1:] == page[:-1]) & (at[1:] == at[:-1])
    if repeated.any():
        order = order[np.lexsort((rank()[order], at, page))]
        order = order[np.append(~repeated, True)]  # ascending by precedence: the last of equal keys is the best
    return order


def visit_keys(rows: pa.Table) -> Keys:
    """The page, the time and the precedence of each of some visits."""
    return (rows["page"].to_numpy(), rows["at"].cast(pa.int64()).to_numpy(), precedence(rows))


def unique_rows(name: str, rows: pa.Table) -> pa.Array:
    """The rows of a table to keep, in the order of its key: one for each key."""
    if name == "visits":
        page, at, rank = visit_keys(rows)
        return pa.array(best_rows(page, at, lambda: rank))
    return pa.array(np.unique(rows[KEY[name]].to_numpy(), return_index=True)[1])


def ranges_of(key: str, n: int) -> list[pc.Expression | None]:
    """Conditions that part rows by a key, which is a hash, into `n` parts of about equal size; None: all rows.

    >>> len(ranges_of("page", 3)), ranges_of("page", 1), ranges_of("page", 0)
    (3, [None], [])
    """
    if n < 2:
        return [None] * n
    bounds, value = np.linspace(-(2.0**63), 2.0**63, n + 1)[1:-1].astype(np.int64).tolist(), pc.field(key)
    between = [(value >= low) & (value < high) for low, high in pairwise(bounds)]
    return [value < bounds[0], *between, value >= bounds[-1]]
