"""What an unchanged re-visit of every page costs on disk after compaction."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.measure import Row
from recrawl.history import History
from recrawl.synth import SynthSettings, batches


def run(n_pages: int) -> Iterator[Row]:
    folder = tempfile.mkdtemp(prefix="recrawl-bench-")
    try:
        history = History.create(folder)
        settings = SynthSettings(pages=n_pages, rounds=3, failure_rate=0, death_rate=0, not_modified_rate=0)
        for batch in batches(settings):
            history.append(batch)
        history.compact()
        before = on_disk(folder)
        history.append({"visits": again(history)})
        history.compact()
        each = (on_disk(folder) - before) / n_pages
        yield Row(
            f"an unchanged re-visit of each of {n_pages:,} pages, on disk after compaction",
            each,
            "bytes",
            "< 40",
            each < 40,
        )
    finally:
        shutil.rmtree(folder)


def again(history: History) -> pa.Table:
    """The last visit of every page once more, a week later, each at its own moment."""
    timeline = history.timeline
    last = timeline.page_start[1:] - 1
    rows = timeline.rows.take(pa.array(last))
    jitter = np.random.default_rng(0).integers(0, 3_600_000_000, len(last))
    at = timeline.at[last] + timedelta(days=7) // timedelta(microseconds=1) + jitter
    column = pa.array(at).cast(rows.schema.field("at").type)
    return rows.set_column(rows.schema.get_field_index("at"), "at", column)


def on_disk(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
