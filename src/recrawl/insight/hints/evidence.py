"""What the sitemaps and feeds of a history said of its pages, and their track record: now, or as of any time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recrawl.core.arrays import Ints
from recrawl.history import History
from recrawl.history.hints import HINTS
from recrawl.insight.hints.track_record import Claims, HintOutcomes, Reads, TrackRecord, judge, learn
from recrawl.web.urls import host as host_of
from recrawl.web.visit import Outcome

KINDS = ("sitemap", "feed")
NO_CLAIM = np.iinfo(np.int64).min  #: the time of a change that no source stated
_FOREVER = np.iinfo(np.int64).max


@dataclass(frozen=True, kw_only=True)
class HintEvidence:
    """What the sources of one kind said of some pages, and the visits by which they can be judged. Times: microseconds, UTC."""

    kind: str
    row: Ints  # of the pages: one entry per claim
    read_at: Ints
    changed_at: Ints
    outcomes: HintOutcomes
    outcome_host: Ints  # one entry per judged visit
    outcome_at: Ints
    n_pages: int
    n_hosts: int

    def record(self, until: int = _FOREVER) -> TrackRecord:
        """The track record on every host, by visits up to a time."""
        past = self.outcome_at <= until
        return learn(
            self.kind,
            self.outcome_host[past],
            self.outcomes.hinted[past],
            self.outcomes.changed[past],
            n_hosts=self.n_hosts,
        )

    def newest(self, until: int = _FOREVER) -> Ints:
        """When each page last changed, according to what was read up to a time; `NO_CLAIM` where no source states it."""
        newest = np.full(self.n_pages, NO_CLAIM)
        past = self.read_at <= until
        np.maximum.at(newest, self.row[past], self.changed_at[past])
        return newest


def hint_evidence(history: History, page: Ints, host: Ints) -> Iterator[HintEvidence]:
    """The evidence of each kind of source on these pages; none for a kind that was never read.

    `host` numbers the hosts of the pages. A history as of some time ignores what was read later.
    """
    until = None if history.until is None else pa.scalar(history.until, pa.timestamp("us", "UTC"))
    rows = HINTS.read(history.beside, None if until is None else pc.field("read_at") <= until)
    order = np.argsort(page) if rows.num_rows else page
    for kind in KINDS:
        of_kind = rows.filter(pc.equal(rows["kind"], kind))
        if not of_kind.num_rows:
            continue
        claimed = of_kind.filter(pc.and_(pc.is_valid(of_kind["page"]), pc.is_valid(of_kind["changed_at"])))
        ids = claimed["page"].to_numpy()
        at = np.minimum(np.searchsorted(page[order], ids), len(page) - 1)
        known = page[order][at] == ids
        read_at, changed_at = (microseconds_of(claimed[name])[known] for name in ("read_at", "changed_at"))
        claims = Claims(ids[known], read_at, changed_at)
        outcomes, outcome_host, outcome_at = _outcomes(of_kind, history, page[order], host[order], claims)
        yield HintEvidence(
            kind=kind,
            row=order[at][known],
            read_at=read_at,
            changed_at=changed_at,
            outcomes=outcomes,
            outcome_host=outcome_host,
            outcome_at=outcome_at,
            n_pages=len(page),
            n_hosts=int(host.max(initial=-1)) + 1,
        )


def _outcomes(
    rows: pa.Table, history: History, page: Ints, host: Ints, claims: Claims
) -> tuple[HintOutcomes, Ints, Ints]:
    """Visits to these pages (ascending) with what was hinted before them, their hosts and their times."""
    timeline = history.timeline_after(None, read_links="none")  # whether pages changed is known without their links
    seen = np.flatnonzero((timeline.outcome <= Outcome.UNCHANGED) & np.isin(timeline.page, page))
    of_visit = host[np.searchsorted(page, timeline.page[seen])]
    changed = np.where(timeline.outcome[seen] == Outcome.UNCHANGED, 0, timeline.changed[seen]).astype(np.int8)
    readings = rows.filter(pc.is_null(rows["page"]))
    hosts = host_numbers(history, page, host, readings["host"].combine_chunks())
    reads = Reads(hosts[hosts >= 0], microseconds_of(readings["read_at"])[hosts >= 0])
    outcomes = judge(timeline.page[seen], of_visit, timeline.at[seen], changed, reads=reads, claims=claims)
    return outcomes, of_visit[outcomes.visit], timeline.at[seen][outcomes.visit]


def host_numbers(history: History, page: Ints, host: Ints, names: pa.Array) -> Ints:
    """The numbers of hosts by their names; -1 where no page is on them."""
    _, first = np.unique(host, return_index=True)
    known = [host_of(url) for url in history.page_urls(page[first]).to_pylist()]
    place = pc.index_in(names, pa.array(known, pa.string())).fill_null(-1).to_numpy()
    numbers: Ints = np.where(place >= 0, host[first][np.maximum(place, 0)], -1)
    return numbers


def microseconds_of(column: Any) -> Ints:
    """Times of a table as numbers."""
    values: Ints = column.cast(pa.int64()).to_numpy()
    return values
