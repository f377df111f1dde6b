"""``recrawl stats``: the papers' empirical analysis on any history."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.common import (
    HISTORY,
    AsOfOption,
    EveryOption,
    HistoryOption,
    JsonOption,
    MinShareOption,
    SeedOption,
    console,
    open_history,
    print_json,
    working,
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("stats")(stats)


def stats(
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Write an HTML page with plots.")
    ] = None,
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    every: EveryOption = "crawl",
    min_share: MinShareOption = 1.0,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """How new links arrive: the empirical analysis of the papers, as tables and as one self-contained HTML page.

    Means and deviations per round, pages without new links, change rates, groups from round to round, heavy tails and the laws
    that fit them, the most extreme pages, top-level domains, gaps between visits.
    """
    from recrawl.experiments.empirical import analyse
    from recrawl.panel import build

    opened = open_history(history, as_of)
    with working("working out what was new, and how it is distributed"):
        timeline = opened.timeline
        found = analyse(build(opened, every, min_share), timeline.page, timeline.at.view("datetime64[us]"), seed=seed)
        if out:
            from recrawl.experiments.empirical_page import write_empirical_page

            write_empirical_page(out, found)
    if json:
        print_json(found.as_dict())
        return
    from rich.text import Text

    from recrawl.experiments.tables import tables

    screen = console()
    for table in tables(found):
        screen.print(table)
    for sentence in found.findings:
        screen.print(Text(f"• {sentence}"))
    if out:
        screen.print(Text(f"all of it with plots: {out}"))
