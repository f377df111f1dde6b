"""The second half of the demo: a busy web crawled every three hours, policies replayed on its past, and a plan by the best."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from recrawl.core.times import moment
from recrawl.history import History
from recrawl.history.folder_check import MARKER
from recrawl.plan.default import recommend
from recrawl.plan.options import PlanOptions
from recrawl.plan.planner import Planner
from recrawl.plan.score import store
from recrawl.policies import Budget, named
from recrawl.replay.many import replay_many
from recrawl.replay.summary import summarise
from recrawl.replay.tune import Tuning
from recrawl.report.replays.comparison import gather
from recrawl.report.replays.page import write_replay_page
from recrawl.synth import Activity, SynthSettings, batches
from recrawl.world.recording import record

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


def lively_web(seed: int) -> SynthSettings:
    """Front pages that gain and lose links by the hour, at about the pace of news sites, and share some of them."""
    return SynthSettings(
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


def planned(place: Path, seed: int, *, self_contained: bool = False) -> Iterator[str]:
    """Make up the history, replay the policies on it, recommend the best and plan with it; yields what it finds, line by line."""
    folder = place / "lively"
    if (folder / MARKER).exists():
        shutil.rmtree(folder)  # of an earlier demo
    history = History.create(folder)
    for batch in batches(lively_web(seed)):
        history.append(batch)
    world = record(history)
    budget = Budget(round(SHARE * world.n_pages))
    runs = replay_many(world, [named(name, window=72) for name in POLICIES], [budget], workers=1)
    page = write_replay_page(place / "replay.html", gather(world, runs, "auto", seed), self_contained=self_contained)
    yield (
        f"{world.n_cycles} cycles of {world.n_pages} pages, {budget.pages} fetches each: of {world.discoverable:,} new links"
    )
    for run in runs:
        summary = summarise(run)
        yield f"{run.policy:20} found {summary.coverage or 0:.0%}, {summary.links_per_fetch or 0:.1f} per fetch"
    yield f"with plots: {page}"
    real = sorted((run for run in runs if not run.sees_future), key=lambda run: -(summarise(run).coverage or 0.0))
    recommend(history, Tuning(best=real[0], runs=real).record("auto"))
    now = moment(int(world.time[-1])) + timedelta(hours=3)
    options = PlanOptions(budget=str(budget.pages), policy=named(real[0].policy, window=72), per_site=8)
    plan = Planner(history, options, now).plan()
    store(history, plan)
    yield f"the next {len(plan)} pages by {plan.policy}, {plan.expected.sum():,.0f} new links expected:"
    for i in range(min(4, len(plan))):
        yield f"{plan.expected[i]:5.1f} on {plan.url[i]}: {plan.reason[i]}"
