"""The tables on expected-harvest of docs/results/expected-harvest.md, printed by

    python -m benchmarks.results.harvest ../shared/data [NAME …]


For every collection: coverage beside the best published policies, what each part is worth, whether expectations and intervals hold,
and what is known of pages without a past. ``--orders N``: orders of the pages, which decide ties, that coverage is averaged over.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np

from benchmarks.results.papers import markdown
from benchmarks.results.results import imported
from recrawl.policies import Budget, named
from recrawl.replay import replay_many, summarise
from recrawl.replay.past import past
from recrawl.report.harvest.experiment import harvest
from recrawl.report.harvest.page import harvest_tables
from recrawl.report.tables import Table
from recrawl.world.recorded import World

#: name → options of visits.py, window in cycles of the policies that have one
CORPORA: dict[str, tuple[tuple[str, ...], int]] = {
    "news hourly": (("news_hourly_2025-03",), 168),
    "news daily": (("news_daily_2025",), 28),
    "ota_terms weekly": (("ota_terms", "--every", "7d", "--from", "2021-01-01", "--to", "2026-07-01"), 52),
    "openbsd_www weekly": (("openbsd_www", "--every", "7d", "--from", "2005-01-01", "--to", "2010-01-01"), 52),
    "author_homepages weekly": (
        ("author_homepages", "--every", "7d", "--from", "2017-01-01", "--to", "2026-06-01"),
        52,
    ),
}
#: The same pages at other times or at another pace.
OTHERS: dict[str, tuple[tuple[str, ...], int]] = {
    "ota_terms daily": (("ota_terms", "--every", "1d", "--from", "2024-06-01", "--to", "2026-07-01"), 52),
    "ota_terms 30-day": (("ota_terms", "--every", "30d", "--from", "2021-01-01", "--to", "2026-07-01"), 12),
    "openbsd_www weekly, 2010 to 2015": (
        ("openbsd_www", "--every", "7d", "--from", "2010-01-01", "--to", "2015-01-01"),
        52,
    ),
    "openbsd_www weekly, 2000 to 2005": (
        ("openbsd_www", "--every", "7d", "--from", "2000-01-01", "--to", "2005-01-01"),
        52,
    ),
    "openbsd_www 30-day": (("openbsd_www", "--every", "30d", "--from", "2000-01-01", "--to", "2014-01-01"), 12),
    "author_homepages 30-day": (
        ("author_homepages", "--every", "30d", "--from", "2017-01-01", "--to", "2026-06-01"),
        12,
    ),
    "author_homepages daily": (("author_homepages", "--every", "1d", "--from", "2022-01-01", "--to", "2024-01-01"), 52),
    "news hourly, cycles of 6 hours": (("news_hourly_2025-03",), 28),
    "news hourly, cycles of a day": (("news_hourly_2025-03",), 7),
    "news daily, cycles of a week": (("news_daily_2025",), 12),
}
#: Cycles that are not the recorded crawls.
CYCLES = {
    "news hourly, cycles of 6 hours": timedelta(hours=6),
    "news hourly, cycles of a day": timedelta(days=1),
    "news daily, cycles of a week": timedelta(days=7),
}
SHARES = (0.05, 0.1, 0.2)
#: The published policies that lead anywhere, and round-robin; docs/results has all of them in other tables.
RIVALS = (
    "round-robin",
    "average-count",
    "windowed-clique",
    "stormcrawler-adaptive",
    "lambda-crawl",
    "history-aware",
    "learning-to-rank",
    "regression",
    "regression-round-robin",
    "bandit",
)
OWN = ("expected-harvest", "expected-harvest, favour freshness")


def compared(world: World, budgets: list[int], window: int, orders: int, rivals: list[str]) -> Table:
    """Coverage and what is found within four cycles: means over the orders."""
    policies = [named(name, window=window) for name in rivals]
    policies += [named("expected-harvest"), named("expected-harvest", favour="freshness")]
    found = np.zeros((len(policies), 2 * len(budgets), orders))
    for order in range(orders):
        shuffled = world if order == 0 else world.reordered(np.random.default_rng(order).permutation(world.n_pages))
        runs = replay_many(shuffled, policies, [Budget(n) for n in budgets], workers=1)
        for i, run in enumerate(runs):
            summary, place = summarise(run), i // len(policies)
            found[i % len(policies), place, order] = summary.coverage or 0.0
            found[i % len(policies), len(budgets) + place, order] = summary.within_4_cycles or 0.0
    heads = [f"k = {budget}" for budget in budgets]
    mean = found.mean(axis=2)
    names = [*rivals, *OWN]
    if rivals:
        names.insert(len(rivals), "best published")
        mean = np.insert(mean, len(rivals), mean[: len(rivals)].max(axis=0), axis=0)
    rows = [[name, *(f"{value:.3f}" for value in row)] for name, row in zip(names, mean, strict=True)]
    return Table(("policy", *heads, *(f"{head}, within 4 cycles" for head in heads)), rows)


def report(data: Path, name: str, orders: int, parts: list[str], related: int, rivals: list[str]) -> Iterator[str]:
    """All tables of one collection."""
    options, window = (CORPORA | OTHERS)[name]
    with tempfile.TemporaryDirectory() as folder:
        history = imported(data, options if related else (*options, "--no-terms"), folder)
        world = past(history, CYCLES.get(name, "auto"), n_related=related)
    budgets = [max(1, round(share * world.n_pages)) for share in SHARES]
    yield f"{world.n_pages:,} pages × {world.n_cycles} cycles, {world.discoverable:,} links to discover:\n"
    if "compared" in parts:
        yield from markdown(compared(world, budgets, window, orders, rivals))
    found = harvest(world, budgets, parts, orders=orders, workers=1)
    for table in harvest_tables(found):
        yield f"{table.title}:\n"
        yield from markdown(table)


def main() -> None:
    """Print the tables of some collections, or of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("names", nargs="*", default=list(CORPORA), help=", ".join((*CORPORA, *OTHERS)))
    parser.add_argument("--orders", type=int, default=3)
    parser.add_argument("--parts", default="compared,ablation,calibration,hidden")
    parser.add_argument("--related", type=int, default=30, help="related pages of each page; 0: texts are not read")
    parser.add_argument("--rivals", default=",".join(RIVALS), help="published policies beside ours; none: ours alone")
    asked = parser.parse_args()
    rivals = [name for name in asked.rivals.split(",") if name and name != "none"]
    for name in asked.names:
        print(f"### {name}\n", flush=True)
        for line in report(asked.data, name, asked.orders, asked.parts.split(","), asked.related, rivals):
            print(line, flush=True)


if __name__ == "__main__":
    main()
