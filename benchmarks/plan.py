"""A plan for a million known pages, from a cold start: a new process, nothing in memory."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from benchmarks.measure import Row
from recrawl.history import History
from recrawl.synth import SynthSettings, batches

A_MILLION = 1_000_000
ROUNDS = 3
LIMITS = {"a stored model": 20, "expected-harvest": 30}
MEMORY = 6  # GB


def run(n_pages: int = A_MILLION) -> Iterator[Row]:
    """`recrawl plan` by policies that learn from all visits, and by a model that learnt before."""
    folder = tempfile.mkdtemp(prefix="recrawl-bench-")
    try:
        history = History.create(f"{folder}/history")
        for batch in batches(SynthSettings(pages=n_pages, rounds=ROUNDS, terms=False)):
            history.append(batch)
        at = ["--history", f"{folder}/history"]
        _timed(["train", *at, "--learner", "average-count", "--out", f"{folder}/model"])  # its size is what matters
        is_whole = n_pages == A_MILLION
        by = {
            name: ["--policy", name]
            for name in ("average-count", "windowed-clique", "regression-round-robin", "expected-harvest")
        }
        by |= {name: ["--model", f"{folder}/model"] for name in ("a model, predicting first", "a stored model")}
        for name, options in by.items():
            seconds = _timed(["plan", "--budget", "5000", *options, "--format", "urls", "--dry-run", *at])
            yield Row(
                f"plan: {name}, {n_pages:,} pages × {ROUNDS} visits, cold",
                seconds,
                "s",
                f"< {LIMITS[name]}" if is_whole and name in LIMITS else "",
                seconds < LIMITS[name] if is_whole and name in LIMITS else None,
            )
    finally:
        shutil.rmtree(folder)


def with_many_links(n_pages: int = A_MILLION) -> Iterator[Row]:
    """`recrawl plan` by expected-harvest where a hundred million links are known."""
    with tempfile.TemporaryDirectory(prefix="recrawl-bench-") as folder:
        history = History.create(f"{folder}/history")
        for batch in batches(SynthSettings(pages=n_pages, rounds=ROUNDS, terms=False, links_per_page=57.5)):
            history.append(batch)
        million = len(history.slim_timeline.sets.links) / 1e6
        at = ["--history", f"{folder}/history"]
        del history
        plan = ["plan", "--budget", "5000", "--policy", "expected-harvest", "--format", "urls", "--dry-run", *at]
        seconds = min(_timed(plan), _timed(plan))  # the first one may have to wait for the disk
    gigabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    what = f"plan: expected-harvest, {n_pages:,} pages × {ROUNDS} visits, {million:.1f} million links"
    is_whole, limit = n_pages == A_MILLION, LIMITS["expected-harvest"]
    yield Row(what, seconds, "s", f"< {limit}" if is_whole else "", seconds < limit if is_whole else None)
    yield Row("… memory", gigabytes, "GB", f"< {MEMORY}" if is_whole else "", gigabytes < MEMORY if is_whole else None)


def _timed(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "recrawl.cli", *command], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started
