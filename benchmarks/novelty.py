"""What was new, all three meanings, at the papers' size and at a tenth of it."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator

from benchmarks.measure import Row, peak_gigabytes
from recrawl.history import History
from recrawl.synth import SynthSettings, batches

PAPERS_PAGES = 384_323


def run(n_pages: int) -> Iterator[Row]:
    tenth, _ = measured(n_pages // 10)
    whole, n_sightings = measured(n_pages)
    full = n_pages == PAPERS_PAGES
    what = f"what was new, three meanings, {n_pages:,} pages × 10 rounds ({n_sightings / 1e6:.0f} M link sightings)"
    yield Row(what, whole, "s", "< 90" if full else "", whole < 90 if full else None, "reading from disk included")
    yield Row("  peak memory (making up the web included)", peak_gigabytes(), "GB", "< 8", peak_gigabytes() < 8)
    growth = whole / tenth
    yield Row("  time against that for a tenth of the pages", growth, "×", "about 10 (linear)", growth < 14)


def measured(n_pages: int) -> tuple[float, int]:
    """Seconds from the files on disk to the counts, and the number of links seen at all visits."""
    folder = tempfile.mkdtemp(prefix="recrawl-bench-")
    try:
        history = History.create(folder)
        for batch in batches(SynthSettings(pages=n_pages, terms=False)):
            history.append(batch)
        start = time.perf_counter()
        fresh = History.open(folder)
        assert fresh.novelty.n_distinct_anywhere > 0
        seconds = time.perf_counter() - start
        internal, external = fresh.timeline.n_links()
        seen = internal >= 0
        return seconds, int((internal + external)[seen].sum())
    finally:
        shutil.rmtree(folder)
