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
    checked_url,
    open_history,
    print_json,
    working,
)
from recrawl.core.words import count

if TYPE_CHECKING:
    from recrawl.history import History
    from recrawl.history.page_timeline import PageTimeline, PageVisit
    from recrawl.models.experts.naming import NamedExpert


#: Heading → the cell of a visit; the first few for a narrow terminal.
_NARROW = ("visited (UTC)", "outcome", "links", "new", "removed", "text")
_WIDE = (
    *_NARROW[:2],
    "status",
    "internal",
    "external",
    "new",
    "new to page",
    "new anywhere",
    "removed",
    "text",
    "importance",
    "note",
)
_ENOUGH = 110  # columns for all of it


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("show")(show)


def show(
    url: Annotated[str, typer.Argument(help="The page.", callback=checked_url)],
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    last: Annotated[int, typer.Option("--last", min=1, help="Maximum number of visits to show, the newest.")] = 40,
    links: Annotated[bool, typer.Option("--links", help="Also list the new links of each visit.")] = False,
    experts: Annotated[
        int,
        typer.Option(
            "--experts",
            min=0,
            metavar="N",
            help="Also name this number of pages whose words come and go together with this page's: its experts.",
        ),
    ] = 0,
    json: JsonOption = False,
) -> None:
    """Show the visits to one page: what was new each time, what was removed, whether the text changed."""
    from recrawl.history.page_timeline import page_timeline

    with working("looking through the history"):
        opened = open_history(history, as_of)
        story = page_timeline(opened, url, with_links=links)
        named = _experts(opened, story.url, experts) if experts else []
    if json:
        print_json(asdict(story) | ({"experts": [asdict(each) for each in named]} if experts else {}))
        return
    _print(story, last)
    if experts:
        _print_experts(named)


def _experts(history: History, url: str, k: int) -> list[NamedExpert]:
    from recrawl.errors import NotEnoughData
    from recrawl.models.experts.naming import experts_of_page

    try:
        return experts_of_page(history, url, k)
    except NotEnoughData:  # no page has words
        return []


def _print_experts(experts: list[NamedExpert]) -> None:
    from recrawl.cli.screen import Screen

    screen = Screen()
    if not experts:
        screen.line("no experts: no page is known whose words come and go together with this page's")
        return
    rows = [[each.url, f"{each.weight:.2f}", f"{each.last_seen_at:%Y-%m-%d}"] for each in experts]
    screen.columns(["expert", "weight", "last seen"], rows)


def _print(story: PageTimeline, last: int) -> None:
    from recrawl.cli.screen import Screen

    screen = Screen()
    screen.item(story.url)
    weight = "" if story.importance == 1 else f"; importance {story.importance:g}"
    screen.line(f"{count(len(story.visits), 'visit')} in {story.days_observed:,.1f} days{weight}")
    shown = story.visits[-last:]
    names = _WIDE if screen.width >= _ENOUGH else _NARROW
    rows = [_cells(visit) for visit in shown]
    used = [name for name in names if name in _NARROW[:2] or any(row[name] for row in rows)]
    screen.columns(used, [[row[name] for name in used] for row in rows])
    if len(story.visits) > last:
        screen.line(f"{len(story.visits) - last:,} earlier visits: --last {len(story.visits)} shows all")
    if story.new_links_per_day is not None and story.visits_with_new_links_rate is not None:
        screen.line(
            f"{story.new_links_per_day:,.2f} new links per day; {story.visits_with_new_links_rate:.0%} of visits found any"
        )
    for visit in shown:
        links = story.new_links.get(visit.at.isoformat(), ())
        if links:
            screen.item(f"new at {visit.at:%Y-%m-%d %H:%M}", *links)


def _cells(visit: PageVisit) -> dict[str, str]:
    def known(number: int | None) -> str:
        return "" if number is None else f"{number:,}"

    has_links = visit.n_internal is not None and visit.n_external is not None
    return {
        "visited (UTC)": f"{visit.at:%Y-%m-%d %H:%M}",
        "outcome": visit.outcome,
        "status": str(visit.status),
        "links": known((visit.n_internal or 0) + (visit.n_external or 0)) if has_links else "",
        "internal": known(visit.n_internal),
        "external": known(visit.n_external),
        "new": known(visit.n_new_previous),
        "new to page": known(visit.n_new_page),
        "new anywhere": known(visit.n_new_anywhere),
        "removed": known(visit.n_left),
        "text": {None: "", True: "changed", False: "same"}[visit.text_changed],
        "importance": "" if visit.importance is None else f"{visit.importance:g}",
        "note": (visit.note or "")[:40],
    }
