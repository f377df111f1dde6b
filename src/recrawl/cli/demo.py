"""``recrawl demo``: from crawl files to a plan on a made-up web, in under a minute."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.common import JsonOption, SeedOption, console, note, print_json
from recrawl.cli.report_options import SelfContainedOption


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    folder: Annotated[str, typer.Option("--folder", metavar="DIR", help="Folder that the demo writes to.")] = "demo",
    pages: Annotated[int, typer.Option("--pages", metavar="N", min=10, help="Size of the made-up web.")] = 3_000,
    self_contained: SelfContainedOption = False,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Take a made-up web from crawl files to a plan: synth, import, stats, an HTML report, train, predict, replay and plan."""
    from recrawl.report.demo.run import run

    result = run(folder, pages, seed, step=note, self_contained=self_contained)
    if json:
        print_json(result.as_dict())
        return
    out = console()
    for line in result.what_to_look_at:
        out.print(line, markup=False, soft_wrap=True)
