"""``recrawl experiments``: what the parts of a method contribute, measured on your own history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.common import (
    HISTORY,
    AsOfOption,
    EveryOption,
    HistoryOption,
    JsonOption,
    check_writable,
    chosen,
    console,
    open_history,
    print_json,
    steps,
    working,
)
from recrawl.cli.policy_options import budget_pages, per_cycle
from recrawl.cli.report_options import OutOption, PageOutput, SelfContainedOption

if TYPE_CHECKING:
    from recrawl.report.harvest.experiment import HarvestResult

PARTS = "ablation, calibration, hidden"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Measure on this history what the parts of a method contribute.", no_args_is_help=True)
    group.command("harvest")(harvest)
    app.add_typer(group, name="experiments")


def harvest(
    budget: Annotated[
        str, per_cycle("Pages per cycle: numbers or shares such as 5%, separated by commas.")
    ] = "5%,10%,20%",
    parts: Annotated[str, typer.Option("--parts", metavar="NAMES", help=f"What to measure: {PARTS}.")] = PARTS.replace(
        " ", ""
    ),
    orders: Annotated[
        int,
        typer.Option("--orders", metavar="N", min=1, help="Orders of the pages, which decide ties, to average over."),
    ] = 3,
    every: EveryOption = "auto",
    related: Annotated[
        int, typer.Option("--related", metavar="N", min=0, help="Number of related pages of each page.")
    ] = 30,
    workers: Annotated[
        int | None, typer.Option("--workers", metavar="N", min=1, help="Number of processes. Default: one per core.")
    ] = None,
    out: OutOption = None,
    self_contained: SelfContainedOption = False,
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    json: JsonOption = False,
) -> None:
    """Measure what each part of expected-harvest contributes, whether its intervals hold, and what it knows of new pages.

    ablation: the policy is replayed on the recorded past without one part after the other. calibration: what every plan
    expected is compared with what its visits brought. hidden: a fifth of the pages is predicted without their past.
    """
    from dataclasses import asdict

    from recrawl.replay.past import past
    from recrawl.report.harvest.experiment import harvest as run
    from recrawl.report.harvest.page import write_harvest_page

    check_writable(out)
    wanted = chosen("--parts", parts, tuple(PARTS.split(", ")))
    opened = open_history(history, as_of)
    with working("working out what every page showed in every cycle"):
        world = past(opened, every, n_related=related)
    with steps("beginning") as on_step:
        result = run(world, budget_pages(budget, world.n_pages), wanted, orders, workers, on_step)
    if out:
        write_harvest_page(out, result, self_contained=self_contained)
    if json:
        print_json(asdict(result))
        return
    _print_tables(result, out)


def _print_tables(result: HarvestResult, out: str | None) -> None:
    from rich.text import Text

    from recrawl.report.harvest.page import findings, harvest_tables, scope
    from recrawl.report.terminal import Bullets

    screen = console()
    screen.print(Text(scope(result), "bold"))
    screen.print(Bullets(findings(result)))
    for table in harvest_tables(result):
        screen.print(table)
    PageOutput(out).print_path(screen)
