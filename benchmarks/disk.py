"""What an unchanged re-visit of every page costs on disk after compaction, and what waiting for the disk costs an import."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa

from benchmarks.measure import Row
from recrawl.history import History
from recrawl.history.ingest import import_files
from recrawl.synth import SynthSettings, batches

TURNS, PAGES = 3, 20_000


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


def waiting(n_visits: int = 100_000) -> Iterator[Row]:
    """An import that waits until everything is on disk, against one that does not, in turns."""
    with tempfile.TemporaryDirectory(prefix="recrawl-bench-") as folder:
        source = Path(folder) / "visits.jsonl"
        source.write_text("".join(map(_record, range(n_visits))))
        seconds: dict[bool, list[float]] = {True: [], False: []}
        for turn in range(2 * TURNS):
            is_waiting = turn % 2 == 0
            with mock.patch.object(os, "fsync", os.fsync if is_waiting else lambda descriptor: None):
                began = time.perf_counter()
                import_files(History.create(f"{folder}/{turn}"), [source], workers=1)
                seconds[is_waiting].append(time.perf_counter() - began)
            shutil.rmtree(f"{folder}/{turn}")
    ratio, note = min(seconds[True]) / min(seconds[False]), f"{min(seconds[True]):.1f} s"
    yield Row(
        f"import of {n_visits:,} visits, waiting for the disk / not waiting", ratio, "×", "< 1.1", ratio < 1.1, note
    )


def _record(i: int) -> str:
    page = i % PAGES
    links = [f"https://h{page % 200}.org/p/{(page * 7 + k + i // PAGES) % 50_000}" for k in range(20)]
    return (
        json.dumps({"url": f"https://h{page % 200}.org/p/{page}", "at": 1_767_312_000 + 60 * i, "links": links}) + "\n"
    )


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
