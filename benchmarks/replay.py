"""Replays at the size of Pham et al. (2018): 17,892 pages, 741 hourly cycles, 500 fetches each, on one core."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from threadpoolctl import threadpool_limits

from benchmarks.measure import Row, peak_gigabytes
from recrawl.history import History
from recrawl.policies import Budget, named
from recrawl.replay import replay
from recrawl.world.recording import record

PAGES, CYCLES, FETCHES = 17_892, 741, 500
LIMITS = {"round-robin": 30, "windowed-outdegree": 30, "regression": 180, "bandit": 180, "expected-harvest": 120}


def run(n_pages: int = PAGES, n_cycles: int = CYCLES, fetches: int = FETCHES) -> Iterator[Row]:
    """One row a policy: its whole replay, the visits included."""
    folder = tempfile.mkdtemp(prefix="recrawl-bench-")
    is_papers_size = n_pages == PAGES
    try:
        size = ["--pages", str(n_pages), "--rounds", str(n_cycles + 1), "--every", "1h"]
        # In another process: the memory that making up takes is not what is measured.
        command = [sys.executable, "-m", "recrawl.cli", "synth", *size, "--rhythm", "--no-terms", "--history", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        started = time.perf_counter()
        world = record(History.open(folder))
        note = f"{world.n_pages:,} pages, {world.n_cycles} cycles, {world.discoverable:,} links to discover"
        yield Row("replay: history → world", time.perf_counter() - started, "s", "", None, note)
        with threadpool_limits(1):
            for name, limit in LIMITS.items():
                started = time.perf_counter()
                rows = list(replay(world, named(name), Budget(fetches)))
                seconds = time.perf_counter() - started
                coverage = sum(row["found"] for row in rows) / max(world.discoverable, 1)
                yield Row(
                    f"replay: {name}",
                    seconds,
                    "s",
                    f"< {limit}" if is_papers_size else "",
                    seconds < limit if is_papers_size else None,
                    f"{len(rows) / seconds:,.0f} cycles/s, coverage {coverage:.3f}",
                )
        peak = peak_gigabytes()
        yield Row(
            "  peak memory so far", peak, "GB", "< 4" if is_papers_size else "", peak < 4 if is_papers_size else None
        )
    finally:
        shutil.rmtree(folder)
