"""``recrawl show``: one page's visits and what was new."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.common import (
    HISTORY,
    AsOfOption,
    HistoryOption,
    JsonOption,
    console,
    open_history,
    print_json,
    working,
)
from recrawl.core.words import count

if TYPE_CHECKING:
    from recrawl.history import PageStory
    from recrawl.history.page_timeline import PageVisit


_NUMBERS = ("inter\nnal", "exter\nnal", "new", "new to\npage", "new any\nwhere", "left")
_COLUMNS = ("visited (UTC)", "status", "outcome", *_NUMBERS, "text", "note")


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
    from recrawl.history.page_timeline import page_timeline

    with working("looking through the history"):
        story = page_timeline(open_history(history, as_of), url, with_links=links)
    if json:
        print_json(asdict(story))
    else:
        _print(story, last)


def _print(story: PageStory, last: int) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    out = console()
    out.print(Text(story.url, style="bold"))
    title = f"{count(len(story.visits), 'visit')} in {story.days_observed:,.1f} days"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    shown = story.visits[-last:]
    rows = [_cells(visit) for visit in shown]
    used = [i for i in range(len(_COLUMNS)) if i < 3 or any(row[i] for row in rows)]
    for i in used:
        name = _COLUMNS[i]
        table.add_column(name, justify="right" if name in _NUMBERS else "left", no_wrap=i == 0)
    for visit, row in zip(shown, rows, strict=True):
        style = "bold" if visit.n_new_previous else "dim" if visit.outcome in ("failed", "gone") else ""
        table.add_row(*(Text(row[i]) for i in used), style=style)
    out.print(table)
    if len(story.visits) > last:
        out.print(f"the {len(story.visits) - last:,} visits before these: --last {len(story.visits)}")
    if story.new_links_per_day is not None and story.visits_with_new_links_rate is not None:
        out.print(
            f"{story.new_links_per_day:,.2f} new links a day; {story.visits_with_new_links_rate:.0%} of visits found any"
        )
    for visit in shown:
        for i, link in enumerate(story.new_links.get(visit.at.isoformat(), ())):
            if i == 0:
                out.print(Text(f"new at {visit.at:%Y-%m-%d %H:%M}", style="bold"))
            out.print(Text(f"  {link}"), soft_wrap=True)


def _cells(visit: PageVisit) -> list[str]:
    counts = (
        visit.n_internal,
        visit.n_external,
        visit.n_new_previous,
        visit.n_new_page,
        visit.n_new_anywhere,
        visit.n_left,
    )
    text = {None: "", True: "changed", False: "same"}[visit.text_changed]
    numbers = ["" if number is None else f"{number:,}" for number in counts]
    note = (visit.note or "")[:40]
    return [f"{visit.at:%Y-%m-%d %H:%M}", str(visit.status), visit.outcome, *numbers, text, note]
