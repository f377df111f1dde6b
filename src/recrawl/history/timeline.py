"""All visits of a history as arrays, ordered by page and time, with what each one shows worked out.

A 304 without a digest carries the last known links forward; a digest equal to that of an earlier copy, those of that copy.
A failed visit, and one that finds the page gone, show nothing and change nothing: should the page come back, it is compared
with its last known copy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from recrawl.core.arrays import Flags, Ints, Ints8
from recrawl.history.keys import best_rows, outcomes, precedence
from recrawl.history.link_sets import LinkSets
from recrawl.history.schema import VISITS
from recrawl.web.link_kinds import LinkKind
from recrawl.web.visit import Outcome

LOOK_BACK = 64  #: how many earlier copies a digest without links is compared with


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
