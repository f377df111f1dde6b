"""``recrawl show``: one page's visits and what was new."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.common import HISTORY, AsOfOption, HistoryOption, JsonOption, console, open_history, print_json

if TYPE_CHECKING:
    from recrawl.history import PageStory


_NUMBERS = ("internal", "external", "new", "new to page", "new anywhere", "left")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("show")(show)


def show(
    url: Annotated[str, typer.Argument(help="The page.")],
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    last: Annotated[int, typer.Option("--last", min=1, help="Show at most this many visits, the newest.")] = 40,
    links: Annotated[bool, typer.Option("--links", help="List the new links of each visit, too.")] = False,
    json: JsonOption = False,
) -> None:
    """One page's timeline: every visit, what was new at it, what left, whether the text changed."""
    from recrawl.history import page_story

    story = page_story(open_history(history, as_of), url, with_links=links)
    if json:
        print_json(asdict(story))
    else:
        _print(story, last)


def _print(story: PageStory, last: int) -> None:
    from rich.table import Table
    from rich.text import Text

    out = console()
    out.print(Text(story.url, style="bold"))
    table = Table(title=f"{len(story.visits):,} visits in {story.days_observed:,.1f} days", title_justify="left")
    for name in ("visited (UTC)", "status", "outcome", *_NUMBERS, "text", "note"):
        table.add_column(name, justify="right" if name in _NUMBERS else "left")
    for visit in story.visits[-last:]:
        text = {None: "", True: "changed", False: "same"}[visit.text_changed]
        counts = (
            visit.n_internal,
            visit.n_external,
            visit.n_new_previous,
            visit.n_new_page,
            visit.n_new_anywhere,
            visit.n_left,
        )
        style = "bold" if visit.n_new_previous else "dim" if visit.outcome in ("failed", "gone") else ""
        cells = ["" if count is None else f"{count:,}" for count in counts]
        at = f"{visit.at:%Y-%m-%d %H:%M}"
        table.add_row(at, str(visit.status), visit.outcome, *cells, text, Text((visit.note or "")[:40]), style=style)
    out.print(table)
    if len(story.visits) > last:
        out.print(f"the {len(story.visits) - last:,} visits before these: --last {len(story.visits)}")
    if story.new_links_per_day is not None and story.visits_with_new_links_rate is not None:
        out.print(
            f"{story.new_links_per_day:,.2f} new links a day; {story.visits_with_new_links_rate:.0%} of visits found any"
        )
    for at, arrived in story.new_links.items():
        out.print(Text(f"new at {at[:16].replace('T', ' ')}", style="bold"))
        for link in arrived:
            out.print(Text(f"  {link}"))
