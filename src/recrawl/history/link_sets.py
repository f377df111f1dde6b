"""Content-addressed sets of links, read from the table `link_sets`: all of them, or only those that are needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from recrawl.core.arrays import Flags, Ints
from recrawl.core.hashtable import new_index, slot
from recrawl.core.ids import IdFilter
from recrawl.history.row_groups import RowGroup, n_rows_of, side_by_side
from recrawl.web.link_kinds import LinkKind


@dataclass(frozen=True)
class SetPlaces:
    """Where some sets are stored, which follow each other in a `LinkSets`."""

    group: RowGroup
    row: Ints  # ascending
    first: int  # the number of the first of them

    @property
    def sets(self) -> slice:
        """Their numbers."""
        return slice(self.first, self.first + len(self.row))

    def read(self, some: Flags) -> pa.Table:
        """Of those among some sets (all sets are asked for): their links, and how many are internal."""
        return self.group.read(["n_internal", "links"]).take(pa.array(self.row[some[self.sets]]))


@dataclass(frozen=True)
class LinkSets:
    """Content-addressed link sets: set i is ``links[start[i]:start[i + 1]]``, its first ``n_internal[i]`` ids internal."""

    digest: Ints
    start: Ints
    links: Ints
    n_internal: Ints

    @classmethod
    def from_groups(cls, groups: Sequence[RowGroup]) -> LinkSets:
        """The sets of some row groups, read one by one into one array: nothing takes more memory than links."""
        n_rows, n_values = n_rows_of(groups), sum(group.n_values("links") for group in groups)
        parts = side_by_side(lambda group: group.read(["digest", "n_internal", "links"]), groups, n_rows)
        return cls.from_parts(parts, n_rows, n_values)

    @classmethod
    def from_parts(cls, parts: Iterable[pa.Table], n_sets: int, most_links: int) -> LinkSets:
        """The sets of the parts of a `link_sets` table: `n_sets` of them, with at most `most_links` links in all."""
        digest, n_internal = np.empty(n_sets, np.int64), np.empty(n_sets, np.int64)
        start, links = np.zeros(n_sets + 1, np.int64), np.empty(most_links, np.int64)
        n = 0
        for part in parts:
            here = slice(n, n + part.num_rows)
            digest[here], n_internal[here] = part["digest"].to_numpy(), part["n_internal"].to_numpy()
            for lists in part["links"].chunks:
                lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
                start[n + 1 : n + 1 + len(lists)] = start[n] + np.cumsum(lengths)
                n += len(lists)
                links[start[n] - lengths.sum() : start[n]] = lists.flatten().to_numpy()
        return cls(digest, start, links[: start[n]], n_internal)

    @classmethod
    def located(cls, wanted: Ints, groups: Sequence[RowGroup]) -> tuple[LinkSets, list[SetPlaces]]:
        """The sets with these digests (ascending), as yet without their links, and where to read them.

        Nothing but digests is read. Sets are in the order in which they are stored; those that are not there are left out.
        """
        only, left = IdFilter(wanted), np.ones(len(wanted), np.bool_)
        digests, places, n = [wanted[:0]], [], 0
        n_rows = n_rows_of(groups)
        read = side_by_side(lambda group: only.among(group.read(["digest"])["digest"].to_numpy()), groups, n_rows)
        for group, (row, which) in zip(groups, read, strict=True):
            once = np.zeros(len(row), np.bool_)
            once[np.unique(which, return_index=True)[1]] = True  # a set may be there twice
            once &= left[which]
            row, which = row[once], which[once]
            left[which] = False
            if len(row):
                places.append(SetPlaces(group, row, n))
                digests.append(wanted[which])
                n += len(row)
        digest = np.concatenate(digests)
        return cls(digest, np.zeros(n + 1, np.int64), wanted[:0], np.zeros(n, np.int64)), places

    def with_links_of(self, some: Flags, places: Sequence[SetPlaces]) -> LinkSets:
        """These sets with the links of some of them; the others seem to have none."""
        chosen = [place for place in places if some[place.sets].any()]
        sizes, n_internal = np.zeros((2, len(self.digest)), np.int64)
        links, n = np.empty(sum(place.group.n_values("links") for place in chosen), np.int64), 0
        n_rows = n_rows_of(place.group for place in chosen)
        for place, rows in zip(chosen, side_by_side(lambda place: place.read(some), chosen, n_rows), strict=True):
            sets = place.sets.start + np.flatnonzero(some[place.sets])
            sizes[sets] = pc.list_value_length(rows["links"]).fill_null(0).to_numpy()
            n_internal[sets] = rows["n_internal"].to_numpy()
            values = pc.list_flatten(rows["links"]).to_numpy()
            links[n : n + len(values)] = values
            n += len(values)
        return LinkSets(self.digest, np.append(0, np.cumsum(sizes)), links[:n], n_internal)

    def only(self, kind: LinkKind) -> LinkSets:
        """The same sets with their internal or external links only."""
        if kind == "all":
            return self
        sizes = np.diff(self.start)
        place = np.arange(len(self.links)) - np.repeat(self.start[:-1], sizes)
        is_internal = place < np.repeat(self.n_internal, sizes)
        return self._kept(is_internal if kind == "internal" else ~is_internal)

    def among(self, links: Ints) -> LinkSets:
        """The same sets with only these links (ascending ids).

        >>> sets = LinkSets(np.array([7]), np.array([0, 3]), np.array([2, 5, 3]), np.array([2]))
        >>> sets.among(np.array([3, 5])).links, sets.among(np.array([3, 5])).n_internal
        (array([5, 3]), array([1]))
        """
        kept = np.zeros(len(self.links), np.bool_)
        kept[IdFilter(links).among(self.links)[0]] = True
        return self._kept(kept)

    def _kept(self, kept: Flags) -> LinkSets:
        """Without the links that are not kept."""
        before = np.append(0, np.cumsum(kept))  # links kept before each place
        start = before[self.start]
        n_internal = before[self.start[:-1] + self.n_internal] - start[:-1]
        return LinkSets(self.digest, start, self.links[kept], n_internal)

    def kept(self, which: Flags) -> LinkSets:
        """Some of the sets."""
        sizes = np.diff(self.start)
        start = np.append(0, np.cumsum(sizes[which]))
        return LinkSets(self.digest[which], start, self.links[np.repeat(which, sizes)], self.n_internal[which])

    @classmethod
    def joined(cls, parts: list[LinkSets]) -> LinkSets:
        """The sets of all parts, one after the other; the list is emptied, so that they are never all there twice."""
        sizes = np.concatenate([np.diff(part.start) for part in parts])
        digest, n_internal = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("digest", "n_internal")
        )
        links, n = np.empty(sum(len(part.links) for part in parts), np.int64), 0
        while parts:
            some = parts.pop(0).links
            links[n : n + len(some)] = some
            n += len(some)
        return cls(digest, np.append(0, np.cumsum(sizes)), links, n_internal)

    def find(self, digests: Ints, known: Flags) -> Ints:
        """The set of each digest, -1 where it is not known."""
        positions: Ints = _find(self.digest, new_index(len(self.digest)), digests, known)
        return positions


@njit(cache=True, nogil=True)
def _find(keys, index, wanted, known):  # type: ignore[no-untyped-def]
    """The position of each wanted key, the first one should there be several; -1 where there is none."""
    for i in range(len(keys)):
        at = slot(keys, keys[i], index)
        if index[at] < 0:
            index[at] = i
    positions = np.full(len(wanted), -1, np.int64)
    for i in range(len(wanted)):
        if known[i]:
            positions[i] = index[slot(keys, wanted[i], index)]
    return positions
