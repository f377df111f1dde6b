"""Replays at the size of Pham et al. (2018): 17,892 pages, 741 hourly cycles, 500 fetches each, on one core."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from threadpoolctl import threadpool_limits

from benchmarks.measure import Row, peak_gigabytes
from recrawl.history import History
from recrawl.policies import Budget, named
from recrawl.replay import replay
from recrawl.world.recording import record

PAGES, CYCLES, FETCHES = 17_892, 741, 500
LIMITS = {"round-robin": 30, "windowed-outdegree": 30, "regression": 180, "bandit": 180, "expected-harvest": 120}


def sparse(n_pages: int = PAGES, n_cycles: int = CYCLES, fetches: int = FETCHES) -> Iterator[Row]:
    """Memory of worlds: every page in every cycle, and as many visits per cycle as a crawler makes."""
    with tempfile.TemporaryDirectory(prefix="recrawl-bench-") as folder:
        size = ["--pages", str(n_pages), "--rounds", str(n_cycles + 1), "--every", "1h", "--rhythm", "--no-terms"]
        command = [sys.executable, "-m", "recrawl.cli", "synth", *size, "--history", f"{folder}/dense"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        _thin(Path(folder) / "dense", Path(folder) / "sparse", max(1, n_pages // fetches))
        sizes = [_world_memory(Path(folder) / name) for name in ("dense", "sparse")]
    note = f"{sizes[1]:.0f} MB against {sizes[0]:.0f} MB"
    is_met = sizes[1] < 0.1 * sizes[0]
    yield Row(
        f"replay: memory with {fetches} visits per cycle / every page", sizes[1] / sizes[0], "×", "< 0.1", is_met, note
    )


def _thin(source: Path, target: Path, every: int) -> None:
    """Visits to one of `every` pages in each cycle, in turns, and all of the first cycle."""
    dense, history = History.open(source), History.create(target)
    visits = dense.store.read("visits")
    hour = pc.divide(visits["at"].cast(pa.int64()), 3_600_000_000).to_numpy()
    page = np.unique(visits["page"].to_numpy(), return_inverse=True)[1]
    kept = ((page + hour) % every == 0) | (hour == hour.min())
    rest = {name: dense.store.read(name) for name in ("link_sets", "urls")}
    history.append(rest | {"visits": visits.filter(pa.array(kept))})


def _world_memory(folder: Path) -> float:
    """Megabytes that a recorded world takes: what a process has in use after recording it."""
    code = (
        "import sys, gc; from recrawl.history import History; from recrawl.world.recording import record; "
        "world = record(History.open(sys.argv[1])); gc.collect(); "
        "print(sum(values.nbytes for _, axis, values in world._arrays() if axis == 'visit') / 1e6)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], check=True, capture_output=True, text=True)
    return float(done.stdout)


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
