"""``recrawl experiments``: what a method is made of, on your own history."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.common import (
    HISTORY,
    AsOfOption,
    EveryOption,
    HistoryOption,
    JsonOption,
    chosen,
    console,
    open_history,
    print_json,
    steps,
    working,
)
from recrawl.cli.policy_options import budget_pages, per_cycle

PARTS = "ablation, calibration, hidden"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="What a method is made of, measured on this history.", no_args_is_help=True)
    group.command("harvest")(harvest)
    app.add_typer(group, name="experiments")


def harvest(
    budget: Annotated[str, per_cycle("Pages a cycle: numbers or shares, with commas.")] = "5%,10%,20%",
    parts: Annotated[str, typer.Option("--parts", help=f"What to find out: {PARTS}.")] = PARTS.replace(" ", ""),
    orders: Annotated[
        int, typer.Option("--orders", min=1, help="Orders of the pages, which decide ties, to average over.")
    ] = 3,
    every: EveryOption = "crawl",
    related: Annotated[int, typer.Option("--related", min=0, help="Related pages of each page.")] = 30,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes; default: one a core.")] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Write an HTML page with plots.")
    ] = None,
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    json: JsonOption = False,
) -> None:
    """What each part of expected-harvest is worth, whether its intervals hold, and what it knows of pages without a past.

    The ablation replays the policy on the recorded past without one part after the other. The calibration sets what every plan
    expected against what its visits brought. For the last part the past of a fifth of the pages is hidden.
    """
    from dataclasses import asdict

    from recrawl.experiments.harvest import harvest as run
    from recrawl.experiments.harvest_page import tables, write_harvest_page
    from recrawl.replay.past import past

    if out and not Path(out).absolute().parent.is_dir():
        raise typer.BadParameter(f"--out {out}: there is no folder {Path(out).parent}; make it first")
    wanted = chosen("--parts", parts, tuple(PARTS.split(", ")))
    opened = open_history(history, as_of)
    with working("working out what every page showed in every cycle"):
        world = past(opened, every, n_related=related)
    with steps("beginning") as on_step:
        found = run(world, budget_pages(budget, world.n_pages), wanted, orders, workers, on_step)
    if out:
        write_harvest_page(out, found)
    if json:
        print_json(asdict(found))
        return
    from rich.table import Table as Shown

    screen = console()
    screen.print(
        f"{found.n_pages:,} pages × {found.n_cycles:,} cycles, {found.discoverable:,} links to discover", markup=False
    )
    for title, note, table in tables(found):
        shown = Shown(
            *table.header, title=title, title_justify="left", caption=note, caption_justify="left", pad_edge=False
        )
        for row in table.texts():
            shown.add_row(*row)
        screen.print(shown)
    if out:
        screen.print(f"page: {out}", markup=False)
