"""The second half of the demo: a lively web crawled every three hours, policies replayed on its past, and a plan by the best."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from recrawl.experiments.replay_page import write_replay_page
from recrawl.experiments.replays import gather
from recrawl.history import History
from recrawl.history.store import MARKER
from recrawl.plan import Request, make
from recrawl.plan.default import recommend
from recrawl.plan.score import store
from recrawl.policies import Budget, named
from recrawl.policies.base import moment
from recrawl.replay.many import replay_many
from recrawl.replay.summary import summarise
from recrawl.replay.tune import Tuning
from recrawl.synth import Activity, Settings, batches
from recrawl.world import record

PAGES, CYCLES, SHARE = 240, 168, 0.05
POLICIES = (
    "round-robin",
    "windowed-outdegree",
    "windowed-clique",
    "regression",
    "bandit",
    "expected-harvest",
    "oracle",
)


def lively_web(seed: int) -> Settings:
    """Front pages: they gain and lose links by the hour, at about the pace of news sites, and share some of them."""
    return Settings(
        pages=PAGES,
        rounds=CYCLES,
        every=timedelta(hours=3),
        rhythm=True,
        seed=seed,
        terms=False,
        pages_per_site=12,
        sharing=0.3,
        internal=Activity(0.3, (30.0, 0.3), 40.0, 0.4),
        links_per_page=12,
        growing_rate=0.0,
        rotating_rate=0.0,
    )


def planned(place: Path, seed: int) -> Iterator[str]:
    """Make up the history, replay the policies on it, keep the best as recommended, plan with it; tells what it found."""
    folder = place / "lively"
    if (folder / MARKER).exists():
        shutil.rmtree(folder)  # of an earlier demo
    history = History.create(folder)
    for batch in batches(lively_web(seed)):
        history.append(batch)
    world = record(history)
    budget = Budget(round(SHARE * world.n_pages))
    runs = replay_many(world, [named(name, window=72) for name in POLICIES], [budget], workers=1)
    found = gather(world, runs, "crawl", seed, ())
    page = write_replay_page(place / "replay.html", found)
    yield (
        f"{world.n_cycles} cycles of {world.n_pages} pages, {budget.pages} fetches each: of {world.discoverable:,} new links"
    )
    for run in runs:
        told = summarise(run)
        yield f"{run.policy:20} found {told.coverage or 0:.0%}, {told.links_per_fetch or 0:.1f} a fetch"
    yield f"with plots: {page}"
    real = sorted((run for run in runs if not run.sees_future), key=lambda run: -(summarise(run).coverage or 0.0))
    recommend(folder, Tuning(real[0], real, None, None).record("crawl"))
    now = moment(int(world.time[-1])) + timedelta(hours=3)
    plan = make(history, named(real[0].policy, window=72), Request(budget.pages, per_site=8), now)
    store(history, plan)
    yield f"the next {len(plan)} pages by {plan.policy}, {plan.expected.sum():,.0f} new links expected:"
    for i in range(min(4, len(plan))):
        yield f"{plan.expected[i]:5.1f} on {plan.url[i]}: {plan.reason[i]}"
