"""``recrawl replay``: what every policy would have found on the recorded past."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.common import (
    HISTORY,
    HistoryOption,
    JsonOption,
    SeedOption,
    console,
    note,
    print_json,
    working,
    written,
)
from recrawl.cli.option_groups import with_options
from recrawl.cli.policy_options import budget_pages, made_policies, per_cycle
from recrawl.cli.replay_options import ReplayedPast

if TYPE_CHECKING:
    from recrawl.report.replays.comparison import Replays

DEFAULT = (
    "round-robin,windowed-outdegree,windowed-clique,regression,regression-round-robin,bandit,expected-harvest,oracle"
)
NARROW = 110  # columns of a terminal below which the table is cut


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replay")(with_options(replay))


def replay(
    *,
    policies: Annotated[
        str, typer.Option("--policies", "-p", metavar="NAMES", help="Policies, separated by commas, or 'all'.")
    ] = DEFAULT,
    budget: Annotated[
        str, per_cycle("Pages per cycle, or a share such as 10%; several, separated by commas, are compared.")
    ] = "10%",
    options: ReplayedPast,
    history: HistoryOption = HISTORY,
    window: Annotated[
        int | None, typer.Option("--window", min=1, help="Number of past cycles that policies with a window look at.")
    ] = None,
    per_host: Annotated[
        int | None, typer.Option("--per-host", min=1, help="Maximum number of pages per host and cycle.")
    ] = None,
    per_site: Annotated[
        int | None, typer.Option("--per-site", min=1, help="Maximum number of pages per site and cycle.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="POLICY.SETTING=VALUE", help="Setting of a policy, such as bandit.window=28. Repeatable."
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Number of processes. Default: one per core for long replays."),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume", metavar="DIR", help="Store finished runs in this directory, and reuse those already there."
        ),
    ] = None,
    rows: Annotated[
        str | None, typer.Option("--rows", metavar="FILE", help="Write one JSON line per policy and cycle.")
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Write an HTML page with plots.")
    ] = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Compare policies on the recorded past: in each cycle a policy sees only the pages that it chooses.

    Shows coverage over time, how soon links are found, freshness of the stored copies, and the cost. The first crawl that holds
    most pages is known to every policy; results are relative to visiting every page in every cycle.
    """
    from recrawl.policies import Budget
    from recrawl.replay import replay_many
    from recrawl.report.replays.comparison import gather

    chosen = made_policies(policies, settings or (), window=window, seed=seed)
    with working("working out what every page showed in every cycle"):
        world = options.world(history, chosen)
    budgets = [Budget(pages, per_host, per_site) for pages in budget_pages(budget, world.n_pages)]
    if resume:
        _check_folder(resume)
    try:
        with _cycles() as on_cycles:
            runs = replay_many(
                world, chosen, budgets, workers=workers, folder=resume, on_cycles=on_cycles, observed=options.observed
            )
    except KeyboardInterrupt:
        note(
            f"stopped; {f'finished runs are kept in {resume}' if resume else 'to keep finished runs give --resume DIR'}"
        )
        raise typer.Exit(130) from None
    limits = [f"at most {n:,} per {what} and cycle" for n, what in ((per_host, "host"), (per_site, "site")) if n]
    found = gather(world, runs, options.every, seed, limits + options.limits(), options.observed)
    if rows:
        _write_rows(rows, found)
    with working("comparing the policies"):
        if out:
            from recrawl.report.replays.page import write_replay_page

            write_replay_page(out, found)
    if rows == "-":
        return
    _print_json(found) if json else _print_tables(found, out, rows)


def _check_folder(folder: str) -> None:
    """Create the folder of finished runs now, not after the first one an hour later."""
    from pathlib import Path

    from recrawl.errors import RecrawlError

    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecrawlError(f"cannot keep finished runs in {folder}: {error.strerror or error}") from error


@contextmanager
def _cycles() -> Iterator[Callable[[int, int], None]]:
    """A progress bar with cycles per second, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    speed = TextColumn("{task.fields[speed]}")
    columns = (TextColumn("cycles"), BarColumn(), MofNCompleteColumn(), speed, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, speed="")

        def on_cycles(done: int, total: int) -> None:
            pace = bar.tasks[0].speed
            bar.update(task, completed=done, total=total, speed=f"{pace:,.0f}/s" if pace else "")

        yield on_cycles


def _write_rows(path: str, found: Replays) -> None:
    """Every cycle of every run, without timings, so that the same command writes the same file."""
    import orjson

    with written(path) as file:
        for run in found.runs:
            for row in run.timeless_rows():
                file.write(orjson.dumps({"policy": run.policy, "budget": run.budget, **row}) + b"\n")


def _print_json(found: Replays) -> None:
    for key, summary in found.summaries.items():
        versus = {"vs_round_robin": found.versus_uniform, "vs_best_published": found.versus_published}
        compared = {name: other[key].as_dict() if key in other else None for name, other in versus.items()}
        print_json({**summary.as_dict(), **compared})


def _print_tables(found: Replays, out: str | None, rows: str | None) -> None:
    from rich.text import Text

    from recrawl.report.replays.page import scope
    from recrawl.report.replays.tables import legend, tables

    screen = console()
    screen.print(Text(scope(found)))
    narrow = screen.width < NARROW
    for table in tables(found, narrow):
        screen.print(table)
    screen.print(Text(legend(narrow), "dim"))
    for what, path in (("every cycle", rows), ("all of it with plots", out)):
        if path:
            screen.print(Text(f"{what}: {path}"))
