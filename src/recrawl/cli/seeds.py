"""``recrawl seeds``: where another crawl should begin."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from recrawl.cli.common import (
    HISTORY,
    AsOfOption,
    HistoryOption,
    JsonOption,
    check_writable,
    note,
    open_history,
    written,
)
from recrawl.cli.option_groups import choice, with_options
from recrawl.plan.focus_options import ThresholdOptions
from recrawl.web.link_kinds import LINKS

BY = ("yield", "outlinks")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("seeds")(with_options(seeds))


def seeds(
    *,
    top: Annotated[int, typer.Option("--top", min=1, help="Number of pages.")] = 100,
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="|".join(BY),
            help="New links per visit so far (yield), or links on the page when it was last seen (outlinks).",
            callback=choice("value", BY),
        ),
    ] = "yield",
    links: Annotated[
        str,
        typer.Option(
            "--links",
            metavar="|".join(LINKS),
            help="Kind of links to rank by: internal, external or all.",
            callback=choice("value", LINKS),
        ),
    ] = "internal",
    per_site: Annotated[
        int | None, typer.Option("--per-site", min=1, help="Maximum number of pages per registered domain.")
    ] = None,
    min_visits: Annotated[
        int, typer.Option("--min-visits", min=1, help="By yield: minimum number of visits that show what was new.")
    ] = 1,
    which: ThresholdOptions,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="File to write; .gz and .zst compress, - is stdout.")
    ] = "-",
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    json: JsonOption = False,
) -> None:
    """List the pages that brought most new links, one URL per line: seeds for another crawl (recrawl crawl --seeds FILE).

    Where every page was fetched only once, as in a focused crawl by ACHE, use --by outlinks. With --relevance or
    --relevant-above only links to relevant pages count: as recorded at their visits, else as the classifier predicts it.
    """
    check_writable(out)
    opened = open_history(history, as_of)
    from recrawl.report.seeds import seeds as best

    found = best(opened, top=top, by=by, links=links, per_site=per_site, min_visits=min_visits, focus=which.focus)
    import orjson

    with written(out) as stream:
        for seed in found:
            stream.write(orjson.dumps(asdict(seed)) if json else seed.url.encode())
            stream.write(b"\n")
    if out != "-":
        note(f"{len(found):,} pages: {out}")
    elif not found:
        note("no page has brought a new link yet; --by outlinks goes by the links that pages show")
