"""The tables of docs/results/readings.md: the same policies in both readings of the past, and on thinned captures.

    python -m benchmarks.results.readings ../shared/data [NAME …]

Old reading: every page is known from the start, and shows something only where it was recorded (`--candidates all --between
nothing`). New reading: a page is a candidate from its first record on, and stays as recorded until the next record. Thinned: a
share of the visits at random, each kept or not with a seed that is given, planned and replayed at the defaults.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.results.harvest import CORPORA, RIVALS, SHARES
from benchmarks.results.papers import markdown
from benchmarks.results.results import imported
from recrawl.history import History
from recrawl.history.ingest import import_files
from recrawl.policies import Budget, named
from recrawl.replay import replay_many, summarise
from recrawl.report.tables import Table
from recrawl.world.recorded import World
from recrawl.world.recording import record

READINGS = {"old": {"candidates": "all", "between": "nothing"}, "new": {"candidates": "known", "between": "carry"}}
THINNED = ((0.2, 1), (0.05, 1))
OURS = "expected-harvest"


def coverages(
    world: World, names: list[str], window: int, n_orders: int, begin: str = "sweep"
) -> dict[tuple[str, float], float]:
    """Coverage by policy and share, averaged over orders of the pages, which decide ties."""
    found: dict[tuple[str, float], list[float]] = {}
    for order in range(n_orders):
        chance = np.random.default_rng(order)
        here = world if order == 0 else world.reordered(chance.permutation(world.n_pages))
        budgets = {share: max(1, round(share * world.n_pages)) for share in SHARES}
        policies = [named(name, window=window, begin=begin) for name in names]
        for run in replay_many(here, policies, [Budget(n) for n in dict.fromkeys(budgets.values())]):
            for share, n in budgets.items():
                if run.budget == n:
                    found.setdefault((run.policy, share), []).append(summarise(run).coverage or 0.0)
    return {key: float(np.mean(values)) for key, values in found.items()}


def both_readings(history: History, window: int, n_orders: int, names: list[str]) -> Table:
    rows = {}
    for label, reading in READINGS.items():
        world = record(history, **reading)
        of = coverages(world, names, window, n_orders)
        rows[label] = of
    header = ("policy", *(f"{share:.0%} {label}" for label in READINGS for share in SHARES))
    table = [[name, *(f"{rows[label][name, share]:.3f}" for label in READINGS for share in SHARES)] for name in names]
    return Table(header, table)


def thinned(visits: Path, folder: Path, share: float, seed: int) -> History:
    """A history of some of the visits."""
    chance, kept = np.random.default_rng(seed), folder / f"thin-{share}-{seed}.jsonl"
    with visits.open("rb") as source, kept.open("wb") as target:
        target.writelines(line for line in source if chance.random() < share)
    history = History.create(folder / f"h-{share}-{seed}")
    import_files(history, [str(kept)])
    kept.unlink()
    return history


def run(data: Path, chosen: list[str], n_orders: int, names: list[str]) -> Iterator[str]:
    for name, (options, window) in CORPORA.items():
        if chosen and name not in chosen:
            continue
        with tempfile.TemporaryDirectory() as place:
            history, visits = imported(data, (*options, "--no-terms"), place), Path(place) / "visits.jsonl"
            yield f"\n## {name}\n"
            yield from markdown(both_readings(history, window, n_orders, names))
            for share, seed in THINNED:
                thin = thinned(visits, Path(place), share, seed)
                world = record(thin)
                of = coverages(world, names, window, 1)
                n = len(thin.slim_timeline.at)
                size = f"{n:,} visits, {world.n_pages:,} pages, {world.n_cycles:,} cycles"
                yield f"\n{share:.0%} of the visits at random (seed {seed}): {size}\n"
                table = [[each, *(f"{of[each, part]:.3f}" for part in SHARES)] for each in names]
                yield from markdown(Table(("policy", *(f"{part:.0%}" for part in SHARES)), table))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--orders", type=int, default=3)
    parser.add_argument("--policies", default=",".join([*RIVALS, OURS]))
    given = parser.parse_args()
    names = list(dict.fromkeys(given.policies.split(",")))
    for part in run(given.data, given.names, given.orders, names):
        print(part, flush=True)
    print(json.dumps({"orders": given.orders, "thinned": THINNED}))


if __name__ == "__main__":
    main()
