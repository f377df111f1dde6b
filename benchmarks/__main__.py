"""Run all benchmarks; a table for people, ``benchmarks.json`` for machines."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import (
    crawl,
    disk,
    experts,
    features,
    novelty,
    numbering,
    outlinks,
    plan,
    rates,
    related,
    replay,
    start,
    svm,
    temporal,
    warc_import,
)
from benchmarks.measure import Row


def rows(quick: bool) -> Iterator[Row]:
    yield from start.run()
    yield from warc_import.run(500 if quick else 8_000, 64 << 10)
    yield from warc_import.run(500 if quick else 6_000, 0)
    yield from disk.run(5_000 if quick else 50_000)
    yield from disk.waiting(10_000 if quick else 100_000)
    yield from crawl.run(*((200, 1) if quick else ()))
    yield from svm.run(*((2, 50) if quick else ()))
    yield from temporal.run(*((200, 60) if quick else (temporal.PAGES, temporal.DAYS)))
    yield from experts.run(40 if quick else experts.PAGES)
    pages = 20_000 if quick else novelty.PAPERS_PAGES
    yield from novelty.run(pages)
    yield from related.run(pages)
    yield from features.run(pages)
    yield from outlinks.run(pages)
    yield from rates.run(50_000 if quick else rates.A_MILLION)
    yield from replay.run(*((500, 60, 20) if quick else (replay.PAGES, replay.CYCLES, replay.FETCHES)))
    yield from replay.sparse(*((500, 60, 20) if quick else (replay.PAGES, replay.CYCLES, replay.FETCHES)))
    yield from numbering.run(400_000 if quick else numbering.LINKS)
    yield from plan.run(20_000 if quick else plan.A_MILLION)
    yield from plan.with_many_links(20_000 if quick else plan.A_MILLION)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--out", default="build/benchmarks.json")
    options = parser.parse_args()
    table = Table("what", "measured", "target", "met", "note")
    found = []
    for row in rows(options.quick):
        found.append(asdict(row))
        met = {True: "yes", False: "NO", None: ""}[row.met]
        print(f"{row.what}: {row.value:,.3g} {row.unit}", flush=True)
        table.add_row(row.what, f"{row.value:,.2f} {row.unit}", row.target, met, row.note)
    Console(width=160).print(table)
    print(json.dumps(found))
    Path(options.out).parent.mkdir(parents=True, exist_ok=True)
    Path(options.out).write_text(json.dumps(found, indent=1))
