"""The hints that were read while a world was recorded."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recrawl.core.ids import places_of
from recrawl.history import History
from recrawl.history.hints import HINTS
from recrawl.insight.hints.evidence import KINDS, host_numbers, microseconds_of
from recrawl.world.recorded import World
from recrawl.world.recorded_hints import RecordedHints, SourceHints


def with_hints(world: World, history: History, since: datetime | None = None) -> World:
    """The same world with what sitemaps and feeds said of its pages, and when that was read; as it is where none was read.

    `since`: as if nothing had been read before. A history as of some time ignores what was read later.
    """
    at = pa.timestamp("us", "UTC")
    bounds = [] if history.until is None else [pc.field("read_at") <= pa.scalar(history.until, at)]
    bounds += [] if since is None else [pc.field("read_at") >= pa.scalar(since, at)]
    where = None if not bounds else bounds[0] if len(bounds) == 1 else bounds[0] & bounds[1]
    rows = HINTS.read(history.beside, where)
    sources = {kind: _source(rows.filter(pc.equal(rows["kind"], kind)), world, history) for kind in KINDS}
    known = {kind: hints for kind, hints in sources.items() if len(hints.host_read_at)}
    return replace(world, hints=RecordedHints(known)) if known else world


def _source(rows: pa.Table, world: World, history: History) -> SourceHints:
    rows = rows.sort_by("read_at")
    claimed = rows.filter(pc.and_(pc.is_valid(rows["page"]), pc.is_valid(rows["changed_at"])))
    row = places_of(world.page, claimed["page"].to_numpy()).astype(np.int64)
    readings = rows.filter(pc.is_null(rows["page"]))
    by_id = np.argsort(world.page)
    host = host_numbers(history, world.page[by_id], world.host[by_id], readings["host"].combine_chunks())
    return SourceHints(
        row=row[row >= 0],
        read_at=microseconds_of(claimed["read_at"])[row >= 0],
        changed_at=microseconds_of(claimed["changed_at"])[row >= 0],
        read_host=host[host >= 0],
        host_read_at=microseconds_of(readings["read_at"])[host >= 0],
    )
