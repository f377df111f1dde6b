"""``recrawl tune``: which policy suits this history best."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from recrawl.cli.common import (
    HISTORY,
    AsOfOption,
    EveryOption,
    HistoryOption,
    JsonOption,
    SeedOption,
    console,
    open_history,
    print_json,
    progress,
)
from recrawl.cli.policy_options import per_cycle


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("tune")(tune)


def tune(
    budget: Annotated[str, per_cycle("Pages per cycle: a number, or a share such as 10%.")] = "10%",
    policies: Annotated[
        str | None,
        typer.Option(
            "--policies",
            help="Policies to try beside the default one, separated by commas. Default: quick ones of every kind.",
        ),
    ] = None,
    window: Annotated[
        int, typer.Option("--window", min=1, help="Number of past cycles that policies with a window look at.")
    ] = 168,
    every: EveryOption = "crawl",
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Number of processes. Default: one per core.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do not store the recommendation.")] = False,
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Replay several policies and settings on this history's past and recommend one, which recrawl plan then uses.

    The policy that found most new links is recommended, but the default policy stays unless another is better by more than
    chance.
    """
    from recrawl.cli.policy_options import budget_pages, made_policies
    from recrawl.plan.default import recommend
    from recrawl.plan.survey import N_RELATED
    from recrawl.policies import DEFAULT
    from recrawl.policies.budget import Budget
    from recrawl.replay.past import past
    from recrawl.replay.tune import CANDIDATES
    from recrawl.replay.tune import tune as run

    if "," in budget:
        raise typer.BadParameter(f"--budget {budget}: a policy is recommended for one budget; run it once for each")
    if policies:
        made_policies(policies)  # a wrong name is refused before anything is read
    opened = open_history(history, as_of)
    world = past(opened, every, n_related=N_RELATED)
    named = [name.strip() for name in policies.split(",")] if policies else []
    chosen = [*named, *([] if DEFAULT in named else [DEFAULT])] if named else CANDIDATES
    with progress("replaying", None) as advance:
        before = 0

        def on_cycles(done: int, total: int) -> None:
            nonlocal before
            advance(done - before, total)
            before = done

        found = run(world, Budget(budget_pages(budget, world.n_pages)[0]), chosen, window, seed, workers, on_cycles)
    recorded = found.record(every)
    if not dry_run and not found.is_tie:
        recommend(opened.store.folder, recorded)
    if json:
        print_json(recorded)
        return
    _show(found, world.n_pages, every, dry_run)


def _show(found: Any, n_pages: int, every: str, dry_run: bool) -> None:
    screen = console()

    def say(text: str) -> None:
        screen.print(text, markup=False)

    best = found.best
    say(f"{len(best.rows):,} cycles of {n_pages:,} pages, {best.budget:,} fetches each; share of the new links found:")
    from recrawl.replay.summary import summarise
    from recrawl.replay.tune import told

    for run in found.runs:
        coverage = summarise(run).coverage
        say(f"  {told(run):36} {'–' if coverage is None else f'{coverage:.3f}'}")
    if found.is_tie:
        say(
            "all of them found the same, so none is recommended: the budget reaches every page, or hardly any of them twice"
        )
        return
    margins = (found.against_next, found.against_round_robin)
    for margin in margins if found.against_next != found.against_round_robin else margins[:1]:
        if margin is not None and margin.difference is not None:
            # Resampled days may hold more links than all days do: a share is no more than everything all the same.
            low, high = (max(-1.0, min(1.0, end or 0.0)) for end in (margin.low, margin.high))
            interval = "" if margin.low is None else f" (95% between {low:+.3f} and {high:+.3f})"
            than = f"{abs(margin.difference):.3f} {'more' if margin.difference >= 0 else 'less'} than {margin.against}"
            say(f"{margin.policy} finds {than}{interval}")
    if best is not found.runs[0]:
        say(f"{told(found.runs[0])} is not better than it by more than chance, so the default stays")
    end = "not kept (--dry-run)" if dry_run else f"recrawl plan --every {every} will use it"
    say(f"recommended: {told(best)}; {end}")
