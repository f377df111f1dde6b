"""``recrawl export visits|links --engine``: the same rows as on one machine, in the same order.

Workers write the rows of their buckets by ranges of page ids; whoever exports reads one range of all buckets after the other, and
sorts it by page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from recrawl.core.arrays import Ints
from recrawl.engine.collection import Collection, bucket_in_task
from recrawl.engine.new_links import find_earliest, novelty_of, sight
from recrawl.engine.packing import packed, unpacked
from recrawl.engine.scratch import Scratch
from recrawl.history import History
from recrawl.history.visit_table import VISITS_AT_ONCE
from recrawl.report.export import LINKS_AT_ONCE, link_table, visits_with_links

EngineTable = Literal["visits", "links"]
#: Visits of a range, about: a range of all buckets is in memory at once.
RANGE_VISITS = {"visits": VISITS_AT_ONCE, "links": 20_000}
ROWS_AT_ONCE = {"visits": VISITS_AT_ONCE, "links": LINKS_AT_ONCE}
PAGE = "page"  #: the column by which rows are ordered; it is not exported


def exported(collection: Collection, what: EngineTable) -> Iterator[pa.Table]:
    """The rows of a table, some at a time, ordered by page and time as on one machine."""
    n_ranges = max(1, -(-collection.history.n_rows() // RANGE_VISITS[what]))
    about: dict[str, Any] = {"what": what, "n_ranges": n_ranges}
    if what == "visits":
        about["digests"] = collection.each_bucket(sight)
        collection.each_part(find_earliest)
    collection.each_bucket(write_rows, **about)
    yield from in_parts(_by_range(collection, n_ranges), ROWS_AT_ONCE[what])


def write_rows(task: bytes) -> bytes:
    """On a worker: write the rows of a bucket, one batch for each range of pages."""
    about = unpacked(task)
    history = bucket_in_task(about)
    rows_of = _visit_rows(about, history) if about["what"] == "visits" else _link_rows(history)
    ends = _ends(history.timeline.page, about["n_ranges"])
    with ExitStack() as stack:
        writer = None
        for low, high in zip([0, *ends[:-1]], ends, strict=True):
            batch = _as_batch(rows_of(low, high))
            writer = writer or stack.enter_context(
                Scratch(about["scratch"]).table_writer(f"rows-{about['bucket']}", batch.schema)
            )
            writer.write_batch(batch)
    return packed(None)


def _visit_rows(about: dict[str, Any], history: History) -> Callable[[int, int], pa.Table]:
    timeline = history.timeline
    history.__dict__["novelty"] = novelty_of(about, timeline)
    table = history.visits().between()

    def rows(low: int, high: int) -> pa.Table:
        return table(low, high).add_column(0, PAGE, pa.array(timeline.page[low:high]))

    return rows


def _link_rows(history: History) -> Callable[[int, int], pa.Table]:
    timeline = history.timeline
    shown = visits_with_links(timeline)

    def rows(low: int, high: int) -> pa.Table:
        visits = shown[(shown >= low) & (shown < high)]
        table, of_row = link_table(history, visits)
        return table.add_column(0, PAGE, pa.array(timeline.page[of_row]))

    return rows


def _ends(page: Ints, n_ranges: int) -> list[int]:
    """Where the visits of each range of pages end; pages are ascending hashes."""
    bounds = np.linspace(-(2.0**63), 2.0**63, n_ranges + 1)[1:-1].astype(np.int64)
    return [*np.searchsorted(page, bounds).tolist(), len(page)]


def _as_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _by_range(collection: Collection, n_ranges: int) -> Iterator[pa.Table]:
    with ExitStack() as stack:
        files = [
            stack.enter_context(collection.scratch.table_reader(f"rows-{bucket}"))
            for bucket in range(collection.n_buckets)
        ]
        for i in range(n_ranges):
            rows = pa.Table.from_batches([file.get_batch(i) for file in files])
            # Rows of one page are in order already, and all of one bucket.
            order = np.argsort(rows[PAGE].to_numpy(), kind="stable")
            yield rows.drop_columns([PAGE]).take(pa.array(order))


def in_parts(tables: Iterator[pa.Table], n_rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of so many rows each, but the last; at least one.

    >>> [len(part) for part in in_parts(iter([pa.table({"x": [1, 2, 3]}), pa.table({"x": [4]})]), 2)]
    [2, 2]
    """
    waiting: list[pa.Table] = []
    is_first = True
    for table in tables:
        waiting.append(table)
        while sum(map(len, waiting)) >= n_rows:
            rows = pa.concat_tables(waiting)
            yield rows.slice(0, n_rows)
            is_first, waiting = False, [rows.slice(n_rows)]
    rest = pa.concat_tables(waiting)
    if len(rest) or is_first:
        yield rest
