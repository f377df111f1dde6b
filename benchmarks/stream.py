"""A plan costs what is new: time and memory of the first plan, and of the next one after some more visits.

    python -m benchmarks.stream million              # a million pages, 100 million links, 50,000 new visits
    python -m benchmarks.stream endless              # 200,000 pages, 8,760 hourly batches of 200 visits
    python -m benchmarks.stream ten-million          # ten million pages × 3 visits, 300 million links
    python -m benchmarks.stream costs                # the next plan against the number of pages and of new visits
    python -m benchmarks.stream scores               # a hundred stored plans

`--pages` makes any of them smaller. Every plan is a process of its own, as a user runs it.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.measure import Row
from recrawl.history import BatchBuilder, History
from recrawl.history.schema import Batch
from recrawl.synth import SynthSettings, batches
from recrawl.web.visit import Visit

ROUNDS = 3
LATER = "later.parquet"


@dataclass(frozen=True)
class Timed:
    seconds: float
    gigabytes: float


def timed(*words: str) -> Timed:
    """One command as a process of its own."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "recrawl.cli", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"recrawl {' '.join(words)} failed")
    return Timed(time.perf_counter() - began, used.ru_maxrss / 1e6)


def plan(history: Path, *more: str) -> Timed:
    options = ("--budget", "5000", "--policy", "expected-harvest", "--format", "urls", "--out", "/dev/null")
    return timed("plan", *options, "--history", str(history), *more)


def usual(history: Path, *more: str, times: int = 3) -> Timed:
    """The median of some plans of a history, each of a copy (by links to its files, which never change): plans leave a state."""
    timings = []
    for _ in range(times):
        with tempfile.TemporaryDirectory(prefix="copy-", dir=history.parent) as folder:
            timings.append(plan(shutil.copytree(history, Path(folder) / "h", copy_function=os.link), *more))
    return sorted(timings, key=lambda each: each.seconds)[times // 2]


def made_up(folder: Path, n_pages: int, n_new: int, links_per_page: float) -> tuple[History, pa.Table]:
    """A history of three visits to every page, and the fourth visits of some pages, still to be added.

    It is made in a process of its own, which takes its memory with it when it ends.
    """
    if not (folder / LATER).exists():
        maker = get_context("spawn").Process(target=_make, args=(folder, n_pages, n_new, links_per_page))
        maker.start()
        maker.join()
    return History.open(folder), pq.read_table(folder / LATER)


def _make(folder: Path, n_pages: int, n_new: int, links_per_page: float) -> None:
    history, later, left = History.create(folder), [], n_new
    settings = SynthSettings(pages=n_pages, rounds=ROUNDS + 1, terms=False, links_per_page=links_per_page)
    last = pa.scalar(settings.start + (ROUNDS - 0.05) * settings.every, pa.timestamp("us", "UTC"))
    for batch in merged(batches(settings)):
        is_late = pc.greater(batch["visits"]["at"], last)
        rows = batch["visits"].filter(is_late).slice(0, left)
        left -= rows.num_rows
        later.append(rows)
        history.append({**batch, "visits": batch["visits"].filter(pc.invert(is_late))})
    pq.write_table(pa.concat_tables(later), folder / LATER)


def merged(parts: Iterable[Batch], n: int = 10) -> Iterator[Batch]:
    """Several batches as one: every append looks at what is there already."""
    for some in batched(parts, n):
        yield {name: pa.concat_tables([part[name] for part in some]) for name in some[0]}


def batched(parts: Iterable[Batch], n: int) -> Iterator[list[Batch]]:
    rest = iter(parts)
    while some := list(islice(rest, n)):
        yield some


def going_on(name: str, n_pages: int, n_new: int, limits: dict[str, float], links_per_page: float) -> Iterator[Row]:
    """The first plan, one with nothing new, and the next ones after more and more visits."""
    with tempfile.TemporaryDirectory(prefix="recrawl-bench-") as folder:
        history, later = made_up(Path(folder) / "h", n_pages, n_new, links_per_page)
        million = history.store.scan("link_sets", lambda groups: sum(group.n_values("links") for group in groups)) / 1e6
        starting = timed("--help")
        first = plan(history.folder)
        yield Row(
            f"{name}: first plan, {n_pages:,} pages, {million:.0f} million links",
            first.seconds,
            "s",
            *_limit(limits, "first", first.seconds),
        )
        yield Row("… memory", first.gigabytes, "GB", *_limit(limits, "first memory", first.gigabytes))
        again = plan(history.folder)
        yield Row("… again, nothing new but the last crawl", again.seconds, "s")
        history.append({"visits": later})
        fresh = usual(history.folder)
        yield Row(
            f"… next plan, {later.num_rows:,} new visits",
            fresh.seconds - starting.seconds,
            "s",
            *_limit(limits, "next", fresh.seconds - starting.seconds),
        )
        yield Row("… memory", fresh.gigabytes, "GB", *_limit(limits, "next memory", fresh.gigabytes))
        if "ratio" in limits:
            whole = usual(history.folder, "--relearn")
            yield Row("… the same learnt from the beginning", whole.seconds, "s")
            ratio = fresh.seconds / whole.seconds
            yield Row("… next plan / from the beginning", ratio, "×", *_limit(limits, "ratio", ratio))


def _limit(limits: dict[str, float], name: str, value: float) -> tuple[str, bool | None]:
    return (f"< {limits[name]}", value < limits[name]) if name in limits else ("", None)


def million(n_pages: int = 1_000_000) -> Iterator[Row]:
    is_whole = n_pages == 1_000_000
    limits = {"next": 5.0, "next memory": 4.0, "ratio": 0.25} if is_whole else {}
    yield from going_on("a million", n_pages, n_pages // 20, limits, 57.5)


def ten_million(n_pages: int = 10_000_000) -> Iterator[Row]:
    is_whole = n_pages == 10_000_000
    limits = {"first": 900.0, "first memory": 16.0, "next": 60.0} if is_whole else {}
    yield from going_on("ten million", n_pages, n_pages // 20, limits, 17.0)


def costs(n_pages: int = 800_000) -> Iterator[Row]:
    """What the next plan costs against the number of pages, and against the number of new visits; both should be lines."""
    starting = timed("--help").seconds
    by_pages, by_visits = [], []
    for n in (n_pages // 8, n_pages // 4, n_pages // 2, n_pages):
        with tempfile.TemporaryDirectory(prefix="recrawl-bench-") as folder:
            history, later = made_up(Path(folder) / "h", n, n_pages // 4 if n == n_pages else n_pages // 80, 57.5)
            done = 0
            plan(history.folder)
            for n_new in (n_pages // 80, n_pages // 40, n_pages // 20, n_pages // 10):
                history.append({"visits": later.slice(done, n_new)})
                seconds, done = plan(history.folder).seconds - starting, done + n_new
                yield Row(f"costs: next plan, {n:,} pages, {n_new:,} new visits", seconds, "s")
                if n_new == n_pages // 80:
                    by_pages.append((n, seconds))
                if n < n_pages:
                    break
                by_visits.append((n_new, seconds))
    for what, points in (("pages", by_pages), ("new visits", by_visits)):
        x, y = np.array(points).T
        slope, begin = np.polyfit(x, y, 1)
        apart = float(np.abs(begin + slope * x - y).max() / y.max())
        note = f"{1e6 * slope:.1f} µs for each, {begin:.1f} s for none"
        yield Row(f"costs: farthest from a line in the number of {what}", 100 * apart, "%", note=note)


def endless(n_pages: int = 200_000, n_hours: int = 8_760, per_hour: int = 200) -> Iterator[Row]:
    """A crawl that never pauses: every hour some pages, round after round."""
    with tempfile.TemporaryDirectory(prefix="recrawl-bench-") as folder:
        history, chance = History.create(Path(folder) / "h"), np.random.default_rng(0)
        rate = chance.gamma(0.3, 0.02, n_pages)  # links per hour
        order, start, builder = chance.permutation(n_pages), datetime(2025, 1, 6, tzinfo=UTC), BatchBuilder()
        for hour in range(n_hours):
            _visit_hour(builder, order, rate, start, hour, per_hour)
            if hour % 500 == 499 or hour == n_hours - 3:  # the last two hours are added later
                history.append(builder.take())
        first = plan(history.folder, "--every", "1h")
        yield Row(
            f"endless: first plan, {n_pages:,} pages, {n_hours:,} hourly batches",
            first.seconds,
            "s",
            "< 60",
            first.seconds < 60,
        )
        yield Row("… memory", first.gigabytes, "GB")
        history.append(builder.take())
        fresh = plan(history.folder, "--every", "1h")
        yield Row(f"… next plan, {2 * per_hour} new visits", fresh.seconds, "s", "< 5", fresh.seconds < 5)
        default = plan(history.folder)
        yield Row("… first plan by default, without --every", default.seconds, "s")


def _visit_hour(
    builder: BatchBuilder, order: np.ndarray, rate: np.ndarray, start: datetime, hour: int, per_hour: int
) -> None:
    for i in range(per_hour):
        page = int(order[(hour * per_hour + i) % len(order)])
        newest = int(rate[page] * hour)
        links = [f"https://s{page // 10}.example/{page}/{n}" for n in range(max(0, newest - 10), newest + 1)]
        at = start + timedelta(hours=hour, seconds=i * 3600 / per_hour)
        builder.add(Visit(url=f"https://s{page // 10}.example/p{page}", at=at, links=links))


def scores(n_plans: int = 100, n_pages: int = 20_000) -> Iterator[Row]:
    """`recrawl score` of one stored plan and of a hundred."""
    from recrawl.plan.options import PlanOptions
    from recrawl.plan.planner import Planner
    from recrawl.plan.score import store

    with tempfile.TemporaryDirectory(prefix="recrawl-bench-") as folder:
        history = History.create(Path(folder) / "h")
        settings = SynthSettings(pages=n_pages, rounds=12, terms=False)
        for batch in batches(settings):
            history.append(batch)
        made = Planner(
            history, PlanOptions(budget="5%", policy="round-robin"), settings.start + 5 * settings.every
        ).plan()
        from dataclasses import replace

        one = timed("score", "--history", str(history.folder)) if store(history, made) is None else None
        assert one is not None
        for i in range(1, n_plans):
            at = made.made_at + timedelta(hours=8 * i)
            store(history, replace(made, id=f"{made.id}-{i}", made_at=at))
        many = timed("score", "--history", str(history.folder))
        yield Row(
            f"score: {n_plans} plans / one plan", many.seconds / one.seconds, "×", "< 2", many.seconds < 2 * one.seconds
        )


KINDS = {"million": million, "ten-million": ten_million, "costs": costs, "endless": endless, "scores": scores}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--pages", type=int)
    given = parser.parse_args()
    for row in KINDS[given.kind](**({"n_pages": given.pages} if given.pages else {})):
        print(row, flush=True)
    print(f"peak of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB")


if __name__ == "__main__":
    main()
