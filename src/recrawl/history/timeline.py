"""All visits of a history as arrays, ordered by page and time, with what each one shows worked out.

A 304 without a digest carries the last known links forward; a digest equal to that of an earlier copy, those of that copy.
A failed visit, and one that finds the page gone, show nothing and change nothing: should the page come back, it is compared
with its last known copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit
from numpy.typing import NDArray

from recrawl.core.arrays import Flags, Ints, Ints8
from recrawl.core.hashtable import new_index, slot
from recrawl.history.keys import best_rows, outcomes, precedence
from recrawl.history.row_groups import RowGroup, side_by_side
from recrawl.history.schema import VISITS
from recrawl.history.url_lookup import IdFilter
from recrawl.web.link_kinds import LinkKind
from recrawl.web.visit import Outcome

LOOK_BACK = 64  #: how many earlier copies a digest without links is compared with


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
        parts = side_by_side(lambda group: group.read(["digest", "n_internal", "links"]), groups)
        n_rows, n_values = (group.n_rows for group in groups), (group.n_values("links") for group in groups)
        return cls.from_parts(parts, sum(n_rows), sum(n_values))

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
        read = side_by_side(lambda group: only.among(group.read(["digest"])["digest"].to_numpy()), groups)
        for group, (row, which) in zip(groups, read, strict=True):
            in_order = np.argsort(row)
            row, which = row[in_order], which[in_order]
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
        for place, rows in zip(chosen, side_by_side(lambda place: place.read(some), chosen), strict=True):
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


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """Visits ordered by page and time. All arrays have one entry per visit unless stated otherwise."""

    page: Ints
    at: Ints  # microseconds since 1970, UTC
    status: NDArray[np.int16]
    outcome: Ints8  # visits.Outcome
    baseline: Flags
    links: Ints  # the link set shown, carried forward where unchanged; -1: not known
    compared_with: Ints  # the earlier visit that "new" refers to; -1: first visit, baseline, failed, links not known
    text_changed: Ints8  # 1 or 0 against the last known text; -1 where undefined
    latest: Ints  # the visit whose content this one shows: itself, or the copy that it equals; -1: not known
    page_start: Ints  # one entry per page: where its visits begin; and the number of visits at the end
    sets: LinkSets
    rows: pa.Table  # the visits as stored, in the same order
    files: tuple[str, ...] = ()  # the names of those that they were read from

    @property
    def n_visits(self) -> int:
        """How many visits there are."""
        return len(self.page)

    @property
    def pages(self) -> Ints:
        """The ids of the pages, ascending."""
        return self.page[self.page_start[:-1]]

    @property
    def changed(self) -> Ints8:
        """Whether each visit showed another text or other links than the one before: 1 or 0, -1 where that is not known."""
        before = self.compared_with
        other_links = np.where(before >= 0, self.links != self.links[before], -1).astype(np.int8)
        return np.maximum(other_links, self.text_changed)

    def n_links(self) -> tuple[Ints, Ints]:
        """Internal and external links shown at each visit, -1 where not known."""
        known = self.links >= 0
        at = np.where(known, self.links, 0)
        internal = self.sets.n_internal[at] if len(self.sets.digest) else np.zeros(len(at), np.int64)
        all_links = np.diff(self.sets.start)[at] if len(self.sets.digest) else internal
        return np.where(known, internal, -1), np.where(known, all_links - internal, -1)

    def compared(self, visits: Flags) -> Ints:
        """The link sets that some visits show, and those that they are compared with."""
        shown, before = self.links[visits], self.compared_with[visits]
        sets = np.append(shown, self.links[before[before >= 0]])
        return sets[sets >= 0]

    def with_links(self, kind: LinkKind) -> Timeline:
        """The same visits with their internal or external links only."""
        return self if kind == "all" else replace(self, sets=self.sets.only(kind))

    def select(self, visits: Ints) -> Timeline:
        """The same timeline reduced to some successful visits (indices, ascending), compared with each other again."""
        page = self.page[visits]
        page_start = _starts(page)
        # A baseline between two chosen visits parts them, too.
        n_baselines = np.cumsum(self.baseline)[visits]
        baseline = np.diff(n_baselines, prepend=0) > 0
        copy = self.latest[visits]
        seen = copy >= 0
        text, payload = (_at(_known(self.rows, name), copy, seen) for name in ("text", "payload"))
        outcome = np.full(len(visits), Outcome.OK, np.int8)
        links, compared_with, text_changed, _ = _carry_forward(
            page_start, outcome, baseline, self.links[visits], *text, *payload
        )
        status, rows = self.status[visits], self.rows.take(pa.array(np.where(seen, copy, visits)))
        latest = np.where(seen, np.arange(len(visits)), -1)
        return Timeline(
            page=page,
            at=self.at[visits],
            status=status,
            outcome=outcome,
            baseline=baseline,
            links=links,
            compared_with=compared_with,
            text_changed=text_changed,
            latest=latest,
            page_start=page_start,
            sets=self.sets,
            rows=rows,
        )


class TooSlim(Exception):
    """Some page and moment is there twice, and which row counts depends on columns that were not read."""


def _refuse(rows: pa.Table) -> Ints:
    raise TooSlim


def ordered(rows: pa.Table) -> pa.Table:
    """Rows by page and time, one for each page and moment.

    Rows without all columns are fine as long as no page and moment is there twice; else `TooSlim` is raised.
    """
    rank = precedence if rows.num_columns == len(VISITS) else _refuse
    moments = rows["at"].cast(pa.int64()).to_numpy()
    return rows.take(pa.array(best_rows(rows["page"].to_numpy(), moments, partial(rank, rows))))


def build(rows: pa.Table, sets: LinkSets, files: tuple[str, ...] = ()) -> Timeline:
    """Work out what each visit shows; the rows are `ordered`."""
    page, at = rows["page"].to_numpy(), rows["at"].cast(pa.int64()).to_numpy()
    status = rows["status"].to_numpy()
    outcome = outcomes(status)
    page_start = _starts(page)
    baseline = rows["baseline"].fill_null(False).to_numpy(zero_copy_only=False)
    links, compared_with, text_changed, latest = _carry_forward(
        page_start,
        outcome,
        baseline,
        sets.find(*_known(rows, "links")),
        *_known(rows, "text"),
        *_known(rows, "payload"),
    )
    return Timeline(
        page=page,
        at=at,
        status=status,
        outcome=outcome,
        baseline=baseline,
        links=links,
        compared_with=compared_with,
        text_changed=text_changed,
        latest=latest,
        page_start=page_start,
        sets=sets,
        rows=rows,
        files=files,
    )


def _starts(page: Ints) -> Ints:
    return np.append(np.flatnonzero(np.diff(page, prepend=~page[:1])), len(page))


def _known(rows: pa.Table, name: str) -> tuple[Ints, Flags]:
    column = rows[name]
    return column.fill_null(0).to_numpy(), np.asarray(column.is_valid())


def _at(column: tuple[Ints, Flags], rows: Ints, seen: Flags) -> tuple[Ints, Flags]:
    values, known = column
    return values[np.where(seen, rows, 0)], known[np.where(seen, rows, 0)] & seen


_OK, _UNCHANGED = int(Outcome.OK), int(Outcome.UNCHANGED)


@njit(cache=True)
def _carry_forward(  # type: ignore[no-untyped-def]
    page_start, outcome, baseline, own_links, text, text_known, payload, payload_known
):
    n = len(outcome)
    links = np.full(n, -1, np.int64)
    compared_with = np.full(n, -1, np.int64)
    text_changed = np.full(n, -1, np.int8)
    latest = np.full(n, -1, np.int64)
    copy_before = np.full(n, -1, np.int64)  # of a copy: the one before it
    for p in range(len(page_start) - 1):
        copy = -1  # the last copy seen
        known = -1  # the last visit that shows known links
        shown = last_text = last_payload = -1  # what the next visit is compared with: nothing from before a baseline
        for v in range(page_start[p], page_start[p + 1]):
            if baseline[v]:
                shown = last_text = last_payload = -1
            if outcome[v] != _OK and outcome[v] != _UNCHANGED:
                continue
            match = v if outcome[v] == _OK else -1
            links[v] = own_links[v]
            if match < 0 or links[v] < 0:
                same = _same_copy(v, copy, copy_before, text, text_known, payload, payload_known)
                if same >= 0:
                    match = same if match < 0 else match
                    links[v] = links[same] if links[v] < 0 else links[v]
                elif same == _NOT_COMPARABLE and outcome[v] == _UNCHANGED:
                    # A server's 304 needs no digest to be believed.
                    match = copy
                    links[v] = links[known] if links[v] < 0 and known >= 0 else links[v]
            latest[v] = match
            if match >= 0:
                if text_known[match]:
                    text_changed[v] = text[match] != text[last_text] if last_text >= 0 else -1
                    last_text = match
                elif payload_known[match]:
                    text_changed[v] = payload[match] != payload[last_payload] if last_payload >= 0 else -1
                elif match != v and not baseline[v]:
                    text_changed[v] = 0
                last_payload = match if payload_known[match] else last_payload
            if outcome[v] == _OK:
                copy_before[v], copy = copy, v
            if links[v] >= 0:
                compared_with[v] = shown
                shown = known = v
    return links, compared_with, text_changed, latest


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


_DIFFERENT, _NOT_COMPARABLE = -1, -2


@njit(cache=True)
def _same_copy(  # type: ignore[no-untyped-def]
    v, copy, copy_before, text, text_known, payload, payload_known
):
    """The newest earlier copy with a digest of this visit; or whether all differ, or none has a digest to compare."""
    comparable = False
    for _ in range(LOOK_BACK):
        if copy < 0:
            break
        if text_known[v] and text_known[copy]:
            comparable = True
            if text[v] == text[copy]:
                return copy
        if payload_known[v] and payload_known[copy]:
            comparable = True
            if payload[v] == payload[copy]:
                return copy
        copy = copy_before[copy]
    return _DIFFERENT if comparable else _NOT_COMPARABLE
