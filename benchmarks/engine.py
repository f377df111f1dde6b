"""The same plan on an engine and on one machine: time, memory, and whether they are equal.

    python -m benchmarks.engine                          # a million pages in 16 buckets, on Sail
    python -m benchmarks.engine --pages 100000 --buckets 2,4,8

Every plan is a process of its own, as a user runs it. The history is made and laid out first, which is not timed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.stream import timed

POLICIES = ("round-robin", "average-count", "history-aware", "lambda-crawl", "expected-harvest")
NOW = "2021-01-01T00:00Z"  # after the last visits


def recrawl(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "recrawl.cli", *words], check=True, stdout=subprocess.DEVNULL)


def plan(folder: Path, policy: str, out: Path, *more: str) -> tuple[float, float]:
    """Seconds, and gigabytes of the process that ran the command."""
    words = ("--history", str(folder), "--policy", policy, "--budget", "1%", "--as-of", NOW, "--dry-run")
    used = timed("plan", *words, "--out", str(out), *more)
    return used.seconds, used.gigabytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--buckets", default="16")
    parser.add_argument("--engine", default="sail")
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--history", type=Path, help="one that is there already, instead of a made-up one")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.history or Path(scratch) / "history"
        if given.history is None:
            recrawl("synth", "--pages", str(given.pages), "--rounds", "3", "--no-terms", "--history", str(folder))
        for n in given.buckets.split(","):
            recrawl("compact", "--buckets", n, "--history", str(folder))
            for policy in given.policies.split(","):
                here, there = Path(scratch) / "one.jsonl", Path(scratch) / "engine.jsonl"
                seconds, gigabytes = plan(folder, policy, here)
                on_engine, _ = plan(folder, policy, there, "--engine", given.engine)
                same = "equal" if here.read_bytes() == there.read_bytes() else "DIFFERENT"
                print(
                    f"{n} buckets, {policy}: {seconds:.1f} s and {gigabytes:.1f} GB on one machine, {on_engine:.1f} s on "
                    f"{given.engine}, {on_engine / seconds:.2f} ×, plans {same}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
