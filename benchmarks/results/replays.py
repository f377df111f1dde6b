"""The coverage tables of docs/results/replays.md, printed by

python -m benchmarks.results.replays ../shared/data [CORPUS …]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.results.results import imported
from recrawl.policies import ALL, Budget, named
from recrawl.replay import replay_many, summarise
from recrawl.world.pages import Need
from recrawl.world.recording import record

#: name → options of visits.py, cycles, budgets as shares of the pages, window in cycles
CORPORA = {
    "news hourly": (("news_hourly_2025-03", "--no-terms"), "crawl", (0.05, 0.1, 0.2), 168),
    "news daily": (("news_daily_2025", "--no-terms"), "crawl", (0.1, 0.2), 28),
    "openbsd_www weekly": (
        ("openbsd_www", "--every", "7d", "--from", "2005-01-01", "--to", "2010-01-01", "--no-terms"),
        "crawl",
        (0.05, 0.1),
        52,
    ),
}
SLOW = ("predicted-count", "predicted-probability", "predicted-presence", "predicted-rate")  # minutes each
UNUSED = (*SLOW, "brute-force", "freshness-oracle")
NAMES = tuple(policy.name for policy in ALL if policy.name not in UNUSED and Need.WORDS not in policy.needs)


def table(data: Path, name: str) -> Iterator[str]:
    """One row a policy: its coverage with each budget, and with the middle one how soon and how fresh."""
    options, every, shares, window = CORPORA[name]
    with tempfile.TemporaryDirectory() as folder:
        world = record(imported(data, options, folder), every)
    budgets = [Budget(max(1, round(share * world.n_pages))) for share in shares]
    policies = [named(policy, window=window) for policy in NAMES]
    runs = replay_many(world, policies, budgets, workers=2)
    found = {(run.policy, run.budget): summarise(run) for run in runs}
    middle = budgets[len(budgets) // 2].pages
    yield f"{world.n_pages:,} pages × {world.n_cycles} cycles, {world.discoverable:,} links to discover, window {window} cycles:\n"
    heads = [f"k = {budget.pages}" for budget in budgets]
    within = [f"{text} (k = {middle})" for text in ("found within 4 h", "new links a fetch", "fresh")]
    yield f"| policy | {' | '.join([*heads, *within])} |"
    yield "|---" * (1 + len(heads) + len(within)) + "|"
    for policy in NAMES:
        told = found[policy, middle]
        coverage = [f"{found[policy, budget.pages].coverage or 0:.3f}" for budget in budgets]
        more = [f"{told.within_4h or 0:.3f}", f"{told.links_per_fetch or 0:.2f}", f"{told.freshness or 0:.3f}"]
        yield f"| {policy} | {' | '.join([*coverage, *more])} |"
    yield ""


def main(data: Path, names: list[str]) -> None:
    """Print the tables of some corpora, or of all."""
    for name in names or CORPORA:
        print(f"### {name}\n", flush=True)
        for line in table(data, name):
            print(line, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
