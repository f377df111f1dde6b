"""What the sitemaps and feeds of a history said of its pages, and the record that tells what that is worth: now, or at any time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recrawl.hints import Claims, Judged, Reads, Worths, judge, learn
from recrawl.history import History
from recrawl.history.hints import HINTS
from recrawl.urls import host as host_of
from recrawl.visits import Outcome

Ints = NDArray[np.int64]
KINDS = ("sitemap", "feed")
NOT_TOLD = np.iinfo(np.int64).min
_EVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Told:
    """What the sources of one kind said of some pages, and the visits that they can be judged by. Times are microseconds, UTC."""

    kind: str
    row: Ints  # of the pages: one entry a claim
    read_at: Ints
    changed_at: Ints
    judged: Judged
    judged_host: Ints  # of each judged visit
    judged_at: Ints
    n_pages: int
    n_hosts: int

    def worths(self, until: int = _EVER) -> Worths:
        """The record on every host, by visits up to a time."""
        past = self.judged_at <= until
        return learn(
            self.kind, self.judged_host[past], self.judged.hinted[past], self.judged.changed[past], self.n_hosts
        )

    def newest(self, until: int = _EVER) -> Ints:
        """When each page last changed, as was read up to a time; `NOT_TOLD` where nothing was said."""
        newest = np.full(self.n_pages, NOT_TOLD)
        past = self.read_at <= until
        np.maximum.at(newest, self.row[past], self.changed_at[past])
        return newest


def told(history: History, page: Ints, host: Ints) -> Iterator[Told]:
    """What each kind of source said of these pages; nothing where none was ever read.

    `host` numbers the hosts of the pages. Of a history as of some time nothing read later counts.
    """
    until = None if history.until is None else pa.scalar(history.until, pa.timestamp("us", "UTC"))
    rows = HINTS.read(history.store.folder, None if until is None else pc.field("read_at") <= until)
    order = np.argsort(page) if rows.num_rows else page
    for kind in KINDS:
        of_kind = rows.filter(pc.equal(rows["kind"], kind))
        if not of_kind.num_rows:
            continue
        claimed = of_kind.filter(pc.and_(pc.is_valid(of_kind["page"]), pc.is_valid(of_kind["changed_at"])))
        ids = claimed["page"].to_numpy()
        at = np.minimum(np.searchsorted(page[order], ids), len(page) - 1)
        known = page[order][at] == ids
        read_at, changed_at = (_us(claimed[name])[known] for name in ("read_at", "changed_at"))
        claims = Claims(ids[known], read_at, changed_at)
        judged = _judged(of_kind, history, page[order], host[order], claims)
        yield Told(
            kind, order[at][known], read_at, changed_at, *judged, len(page), int(host.max(initial=-1)) + 1
        )  # fmt: skip


def _judged(rows: pa.Table, history: History, page: Ints, host: Ints, claims: Claims) -> tuple[Judged, Ints, Ints]:
    """Visits of these pages (ascending) with what was hinted before them, their hosts and times."""
    timeline = history.slim_timeline
    seen = np.flatnonzero((timeline.outcome <= Outcome.UNCHANGED) & np.isin(timeline.page, page))
    of_visit = host[np.searchsorted(page, timeline.page[seen])]
    changed = np.where(timeline.outcome[seen] == Outcome.UNCHANGED, 0, timeline.changed[seen]).astype(np.int8)
    readings = rows.filter(pc.is_null(rows["page"]))
    hosts = _numbered(history, page, host, readings["host"].combine_chunks())
    reads = Reads(hosts[hosts >= 0], _us(readings["read_at"])[hosts >= 0])
    judged = judge(timeline.page[seen], of_visit, timeline.at[seen], changed, reads, claims)
    return judged, of_visit[judged.visit], timeline.at[seen][judged.visit]


def _numbered(history: History, page: Ints, host: Ints, names: pa.Array) -> Ints:
    """The numbers of hosts by their names; -1 where no page is on them."""
    _, first = np.unique(host, return_index=True)
    known = [host_of(url) for url in history.urls_of(page[first]).to_pylist()]
    found = pc.index_in(names, pa.array(known, pa.string())).fill_null(-1).to_numpy()
    numbers: Ints = np.where(found >= 0, host[first][np.maximum(found, 0)], -1)
    return numbers


def _us(column: Any) -> Ints:
    values: Ints = column.cast(pa.int64()).to_numpy()
    return values
