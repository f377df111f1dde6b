"""Short histories, with both ways in which the policies of Pham et al. can begin: for docs/results/readings.md.

    python -m benchmarks.results.short ../shared/data

The synthetic web (200 pages, 30 cycles of six hours, three seeds), and the first 51 cycles of hourly news. Best published: of
windowed-outdegree, windowed-clique, regression, regression-round-robin and bandit, each with its own `begin`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from benchmarks.results.papers import markdown
from benchmarks.results.readings import coverages
from benchmarks.results.results import imported
from recrawl.history import History
from recrawl.report.tables import Table
from recrawl.synth import SynthSettings, batches
from recrawl.world.recorded import World
from recrawl.world.recording import record

PUBLISHED = ["windowed-outdegree", "windowed-clique", "regression", "regression-round-robin", "bandit"]
SHARES = (0.05, 0.1, 0.2)


def worlds(data: Path) -> Iterator[tuple[str, World]]:
    for seed in range(3):
        with tempfile.TemporaryDirectory() as folder:
            history = History.create(Path(folder) / "h")
            settings = SynthSettings(
                pages=200, rounds=31, every=timedelta(hours=6), rhythm=True, terms=False, seed=seed
            )
            for batch in batches(settings):
                history.append(batch)
            yield f"synthetic, 30 cycles, seed {seed}", record(history)
    with tempfile.TemporaryDirectory() as folder:
        history = imported(data, ("news_hourly_2025-03", "--to", "2025-03-04", "--no-terms"), folder)
        world = record(history)
        yield "hourly news, 51 cycles", world.until(min(51, world.n_cycles))


def rows(data: Path) -> Iterator[list[str]]:
    for name, world in worlds(data):
        ours = coverages(world, ["expected-harvest"], 28, 1)
        best = {begin: coverages(world, PUBLISHED, 28, 1, begin) for begin in ("sweep", "outdegree")}
        for share in SHARES:
            cells = [max(of[policy, share] for policy in PUBLISHED) for of in best.values()]
            yield [name, f"{share:.0%}", *(f"{value:.3f}" for value in (*cells, ours["expected-harvest", share]))]


if __name__ == "__main__":
    header = ("history", "budget", "best published, begin=sweep", "best published, begin=outdegree", "expected-harvest")
    print("\n".join(markdown(Table(header, list(rows(Path(sys.argv[1])))))))
