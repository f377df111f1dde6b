"""Does recrawl still compute what it computed before? Write its answers with two versions of the source and compare them.

    python -m benchmarks.unchanged write before --source /path/to/old/src
    python -m benchmarks.unchanged write after
    python -m benchmarks.unchanged compare before after

Every answer comes from a command with ``--json`` at a fixed seed and time, on the demo's made-up web and on three real
collections. Only the commands are used, so the modules of the two versions may differ in any way.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
DATA = HERE.parent / "shared" / "data"
#: Values that may differ: run times, and sentences for people.
WORDING = {"seconds", "seconds_per_cycle", "made_at", "reason", "reasons", "why", "cause", "what_would_change", "bytes"}
PLANNED = [
    "round-robin",
    "random",
    "last-observed",
    "previous-count",
    "average-count",
    "content-change-rate",
    "nutch-adaptive",
    "stormcrawler-adaptive",
    "lambda-crawl",
    "freshness-value",
    "history-aware",
    "windowed-outdegree",
    "set-cover",
    "windowed-clique",
    "regression",
    "learning-to-rank",
    "regression-round-robin",
    "bandit",
    "expected-harvest",
    "predicted-count",
    "predicted-probability",
    "predicted-presence",
    "predicted-rate",
    "change-frequency",
]
REPLAYED = (
    "round-robin,random,last-observed,brute-force,previous-count,average-count,content-change-rate,nutch-adaptive,"
    "stormcrawler-adaptive,lambda-crawl,freshness-value,history-aware,windowed-outdegree,set-cover,windowed-clique,regression,"
    "learning-to-rank,regression-round-robin,bandit,expected-harvest,freshness-oracle,oracle"
)
LEARNT = "predicted-count,predicted-probability,predicted-presence,predicted-rate,change-frequency,single-expert,related-experts"
FEW = "round-robin,average-count,history-aware,windowed-outdegree,bandit,expected-harvest,freshness-value,oracle"


class Recrawl:
    """One version of recrawl, asked through its commands; answers go to files in one folder."""

    def __init__(self, source: Path, out: Path) -> None:
        self.out = out
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(source),
            "NUMBA_CACHE_DIR": f"/tmp/numba-{abs(hash(source))}",
        }
        self.seconds: dict[str, float] = {}
        out.mkdir(parents=True, exist_ok=True)

    def run(self, *words: str) -> bytes:
        """What one command prints; its errors are printed and end everything."""
        done = subprocess.run(
            [sys.executable, "-m", "recrawl.cli", *words], capture_output=True, env=self.environment, cwd=self.out
        )
        if done.returncode not in (0, 1):
            sys.exit(f"recrawl {' '.join(words)}: {done.stderr.decode()[-2000:]}")
        return done.stdout

    def answer(self, name: str, *words: str) -> bytes:
        """Keep what one command prints as JSON under a name."""
        began = time.monotonic()
        text = self.run(*words, "--json") if words[0] != "export" else self.run(*words)
        self.seconds[name] = round(time.monotonic() - began, 2)
        with gzip.open(self.out / f"{name}.jsonl.gz", "wb") as stream:
            stream.write(text)
        print(f"{name}: {self.seconds[name]} s", flush=True)
        return text


def write(out: Path, source: Path, data: Path, only: list[str]) -> None:
    """Ask one version everything."""
    recrawl = Recrawl(source, out.resolve())
    collections = {"demo": _demo, "news_hourly": _news, "ota_terms": _terms, "openbsd_www": _openbsd}
    for name, ask in collections.items():
        if not only or name in only:
            ask(recrawl, data)
    (out / "seconds.json").write_text(json.dumps(recrawl.seconds, indent=1))


def _demo(recrawl: Recrawl, data: Path) -> None:
    history = ("--history", "demo")
    if not (recrawl.out / "demo").exists():
        recrawl.run("synth", "--pages", "1000", "--rounds", "14", "--seed", "3", *history)
    moment = ("--as-of", "2020-08-20T00:00:00Z")
    _facts(recrawl, "demo", history)
    _plans(recrawl, "demo", history, moment, PLANNED, ("--budget", "80", "--every", "7d"))
    recrawl.answer("demo.train", "train", "--every", "7d", "--out", "model.recrawl", *history, *moment)
    recrawl.answer("demo.predict", "predict", "--model", "model.recrawl", *history, *moment)
    by_model = ("--model", "model.recrawl", *history, *moment)
    recrawl.answer("demo.plan.model", "plan", "--budget", "80", "--dry-run", *by_model)
    recrawl.answer("demo.replay", "replay", "--policies", REPLAYED, "--budget", "5%,20%", "--every", "7d", *history)
    recrawl.answer("demo.replay.learnt", "replay", "--policies", LEARNT, "--budget", "10%", "--every", "7d", *history)
    recrawl.answer("demo.tune", "tune", "--budget", "10%", "--every", "7d", "--dry-run", *history)


def _news(recrawl: Recrawl, data: Path) -> None:
    history = _imported(recrawl, data, "news_hourly_2025-03", "--to", "2025-03-15")
    moment = ("--as-of", "2025-03-12T09:30:00Z")
    _facts(recrawl, "news", history)
    few = ["round-robin", "bandit", "expected-harvest", "average-count", "freshness-value", "windowed-clique"]
    _plans(recrawl, "news", history, moment, few, ("--budget", "10%"))
    recrawl.answer("news.replay", "replay", "--policies", FEW, "--budget", "5%,10%", *history)


def _terms(recrawl: Recrawl, data: Path) -> None:
    history = _imported(recrawl, data, "ota_terms", "--from", "2023-01-01", "--to", "2025-01-01", "--every", "7d")
    moment = ("--as-of", "2024-10-01T00:00:00Z")
    _facts(recrawl, "terms", history)
    few = ["round-robin", "bandit", "expected-harvest", "history-aware", "change-frequency"]
    _plans(recrawl, "terms", history, moment, few, ("--budget", "10%"))
    recrawl.answer("terms.replay", "replay", "--policies", FEW, "--budget", "10%", "--change", "significant", *history)
    recrawl.answer("terms.train", "train", "--every", "30d", "--out", "terms.recrawl", *history, *moment)
    recrawl.answer("terms.predict", "predict", "--model", "terms.recrawl", *history, *moment)


def _openbsd(recrawl: Recrawl, data: Path) -> None:
    period = ("--from", "2005-01-01", "--to", "2007-01-01", "--every", "7d", "--pages", "800")
    history = _imported(recrawl, data, "openbsd_www", *period)
    moment = ("--as-of", "2006-10-01T00:00:00Z")
    _facts(recrawl, "openbsd", history)
    few = ["round-robin", "bandit", "expected-harvest", "stormcrawler-adaptive"]
    _plans(recrawl, "openbsd", history, moment, few, ("--budget", "5%"))
    recrawl.answer("openbsd.replay", "replay", "--policies", FEW, "--budget", "5%", *history)


def _imported(recrawl: Recrawl, data: Path, name: str, *options: str) -> tuple[str, str]:
    """A history of a real collection."""
    if not (recrawl.out / name).exists():
        visits = recrawl.out / f"{name}.jsonl"
        with visits.open("wb") as stream:
            subprocess.run([sys.executable, str(data / "visits.py"), name, *options], stdout=stream, check=True)
        recrawl.answer(f"{name}.import", "import", str(visits), "--history", name)
        visits.unlink()
    return ("--history", name)


def _facts(recrawl: Recrawl, name: str, history: tuple[str, str]) -> None:
    recrawl.answer(f"{name}.info", "info", *history)
    recrawl.answer(f"{name}.visits", "export", "visits", "--format", "jsonl", *history)


def _plans(
    recrawl: Recrawl,
    name: str,
    history: tuple[str, str],
    moment: tuple[str, str],
    policies: list[str],
    budget: tuple[str, ...],
) -> None:
    """Plans by several policies and goals, why pages are in or out, and how right the plans were."""
    common = (*budget, *history, *moment)
    first = recrawl.answer(f"{name}.plan.default", "plan", *common)
    goals = (("content", "--goal", "content"), ("both", "--goal", "both"), ("freshness", "--favour", "freshness"))
    for label, *options in goals:
        recrawl.answer(f"{name}.plan.{label}", "plan", *options, *common, "--dry-run")
    capped = ("--per-host", "3", "--per-site", "4", "--min-gap", "1d", "--threshold", "0.05", "--exclude", "*archive*")
    recrawl.answer(f"{name}.plan.capped", "plan", *capped, *common, "--dry-run")
    for policy in policies:
        recrawl.answer(f"{name}.plan.{policy}", "plan", "--policy", policy, *common, "--dry-run")
    urls = [json.loads(line)["url"] for line in first.splitlines()]
    known = json.loads(recrawl.run("export", "visits", "--format", "jsonl", *history).splitlines()[-1])["url"]
    for i, url in enumerate([urls[0], urls[-1], known]):
        for policy in ("expected-harvest", "windowed-clique", "bandit"):
            words = ("explain", url, "--policy", policy, *common)
            recrawl.answer(f"{name}.explain.{policy}.{i}", *words)
    recrawl.answer(f"{name}.score", "score", *history)


# -- comparing -------------------------------------------------------------------------------------------------------


def compare(before: Path, after: Path) -> int:
    """Print every difference but those of wording; the number of answers that differ."""
    names = sorted({path.name for folder in (before, after) for path in folder.glob("*.jsonl.gz")})
    n_differ = n_values = 0
    for name in names:
        if not (before / name).exists() or not (after / name).exists():
            print(f"{name}: only in {before if (before / name).exists() else after}")
            n_differ += 1
            continue
        old, new = (_lines(folder / name) for folder in (before, after))
        found = list(_differences(old, new, ""))
        n_values += _count(old)
        if found:
            n_differ += 1
            print(f"{name}: {len(found)} differences")
            for line in found[:5]:
                print(f"   {line}")
    print(f"{len(names)} answers, {n_values:,} values compared: {n_differ} answers differ")
    return n_differ


def _lines(path: Path) -> list[Any]:
    with gzip.open(path) as stream:
        return [json.loads(line) for line in stream if line.strip()]


def _count(value: Any) -> int:
    if isinstance(value, dict):
        return sum(_count(part) for key, part in value.items() if key not in WORDING)
    if isinstance(value, list):
        return sum(_count(part) for part in value)
    return 1


def _differences(old: Any, new: Any, path: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() | new.keys():
            if key in WORDING:
                continue
            if key not in new:
                yield f"{path}.{key}: missing now"
            elif key not in old:
                yield f"{path}.{key}: added"
            else:
                yield from _differences(old[key], new[key], f"{path}.{key}")
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{path}: {len(old)} entries before, {len(new)} now"
        for i, (one, two) in enumerate(zip(old, new, strict=False)):
            yield from _differences(one, two, f"{path}[{i}]")
    elif isinstance(old, float) or isinstance(new, float):
        same = isinstance(old, int | float) and isinstance(new, int | float)
        if not (same and math.isclose(old, new, rel_tol=1e-9, abs_tol=1e-12)):
            yield f"{path}: {old!r} before, {new!r} now"
    elif old != new:
        yield f"{path}: {old!r} before, {new!r} now"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    writer = parts.add_parser("write", help="ask one version everything")
    writer.add_argument("out", type=Path)
    writer.add_argument("--source", type=Path, default=HERE / "src")
    writer.add_argument("--data", type=Path, default=DATA)
    writer.add_argument("--only", nargs="*", default=[], help="collections: demo, news_hourly, ota_terms, openbsd_www")
    comparer = parts.add_parser("compare", help="print what differs between two versions' answers")
    comparer.add_argument("before", type=Path)
    comparer.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.part == "write":
        write(given.out, given.source, given.data, given.only)
    else:
        sys.exit(1 if compare(given.before, given.after) else 0)


if __name__ == "__main__":
    main()
