"""The papers' tables on real collections and the made-up web: ``python -m benchmarks.results.papers ../shared/data [NAME …]``.

The protocol is theirs: a random quarter of the pages is tested, the last of ten rounds predicted. Names are those of
`benchmarks.results.results`, and ``synth:PAGES`` for a synthetic web of that many pages. ``--tuned`` searches the grids
by cross-validation instead of taking their tuned settings; ``--trees N`` and ``--repeat N`` make it shorter. ``--papers-rate`` and
``--papers-leaks`` are those of `recrawl evaluate`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.results.results import CORPORA, imported
from recrawl.history import History
from recrawl.papers.outlinks.evaluation import evaluate
from recrawl.papers.outlinks.settings import OutlinkSettings
from recrawl.papers.outlinks.tables import count_table, feature_table, history_table, kinds, ranking_table
from recrawl.report.tables import Table
from recrawl.synth import SynthSettings, batches
from recrawl.world import panel

ROUNDS = 10
PARTS = ("features", "history", "rankings", "counts")


def markdown(table: Table) -> Iterator[str]:
    """The table as Markdown."""
    yield f"| {' | '.join(table.header)} |"
    yield "|" + "---|" * len(table.header)
    for row in table.texts():
        yield f"| {' | '.join(row)} |"
    yield ""


def report(history: History, every: str, settings: OutlinkSettings) -> Iterator[str]:
    """Every part that was asked for."""
    started = time.perf_counter()
    whole = panel.build(history, every, 0.0)
    aligned = whole.window(max(0, whole.shape[1] - ROUNDS), whole.shape[1], 1.0)
    found = evaluate(history, aligned, settings)
    yield f"{found.n_pages:,} pages × {found.n_rounds} rounds, {(time.perf_counter() - started) / 60:.1f} minutes.\n"
    made = {
        "features": feature_table,
        "history": history_table,
        "rankings": lambda known: ranking_table(known, kinds(known, "rankings")),
        "counts": count_table,
    }
    for part in settings.parts:
        yield from markdown(made[part](found))


def main() -> None:
    """Print the tables of some collections, or of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("names", nargs="*", default=[*CORPORA, "synth:38432"])
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--trees", type=int)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--papers-rate", action="store_true")
    parser.add_argument("--papers-leaks", action="store_true")
    asked = parser.parse_args()
    settings = OutlinkSettings(
        parts=tuple(asked.parts.split(",")),
        seeds=tuple(range(asked.repeat)),
        quick=not asked.tuned,
        trees=asked.trees,
        papers_rate=asked.papers_rate,
        papers_leaks=asked.papers_leaks,
    )
    for name in asked.names:
        print(f"### {name}\n", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            if name.startswith("synth:"):
                every, history = "crawl", History.create(Path(folder) / "history")
                size = int(name.removeprefix("synth:"))
                made_up = SynthSettings(pages=size, terms=False, vectors=True, failure_rate=0, death_rate=0)
                for batch in batches(made_up):
                    history.append(batch)
            else:
                options, every, _ = CORPORA[name]
                history = imported(asked.data, options, folder)
            for line in report(history, every, settings):
                print(line, flush=True)


if __name__ == "__main__":
    main()
