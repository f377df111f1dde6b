"""Is this version as fast as another one? Import, replay and plan, turn by turn in one run, as ratios.

    python -m benchmarks.side_by_side --source /path/to/old/src [--turns 5]

Only the commands are used, so the modules of the two versions may differ in any way. Processor time counts, not the clock, so that
other work on the machine matters less; of several turns the least counts.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
JOBS = {
    "import": ("import", "visits.jsonl", "--workers", "1", "--history", "{fresh}"),
    "replay": (
        "replay",
        "--policies",
        "bandit,expected-harvest,average-count",
        "--budget",
        "10%",
        "--workers",
        "1",
        "--every",
        "1d",
    ),
    "plan": ("plan", "--budget", "10%", "--every", "1d", "--dry-run", "--format", "urls"),
    "plan by the default of a small history": (
        "plan",
        "--budget",
        "10",
        "--every",
        "7d",
        "--dry-run",
        "--format",
        "urls",
    ),
    "help": ("--help",),
}


def seconds(source: Path, words: tuple[str, ...], folder: Path) -> float:
    """Processor time of one command."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(source),
        "NUMBA_CACHE_DIR": f"/tmp/numba-side-{abs(hash(str(source)))}",
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "recrawl.cli", *words], env=environment, cwd=folder, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run(source: Path, job: str, folder: Path) -> float:
    """One turn of a job."""
    fresh = folder / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    words = tuple(word.format(fresh=fresh) for word in JOBS[job])
    if job not in ("import", "help"):
        words = (*words, "--history", "small" if "small" in job else "history")
    return seconds(source, words, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True, help="the other version's src folder")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--pages", type=int, default=3000, help="size of the synthetic web")
    given = parser.parse_args()
    ours = HERE / "src"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = ("synth", "--pages", str(given.pages), "--rounds", "40", "--every", "1d")
        seconds(ours, (*made, "--out", "visits.jsonl"), folder)
        seconds(ours, (*made, "--history", "history"), folder)
        seconds(ours, ("synth", "--pages", "300", "--history", "small"), folder)
        print(f"{'job':42} {'before':>8} {'now':>8} {'ratio':>6}")
        for job in JOBS:
            for source in (given.source, ours):
                run(source, job, folder)  # numba compiles once
            times = [(run(given.source, job, folder), run(ours, job, folder)) for _ in range(given.turns)]
            before, now = (min(turn[i] for turn in times) for i in (0, 1))
            print(f"{job:42} {before:7.2f}s {now:7.2f}s {now / before:6.2f}", flush=True)


if __name__ == "__main__":
    main()
