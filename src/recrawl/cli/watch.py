"""``recrawl watch``: which known pages are candidates of plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.common import HISTORY, HistoryOption, JsonOption, checked_url, console, note, open_history, print_json
from recrawl.core.words import count

if TYPE_CHECKING:
    from recrawl.core.arrays import Ints
    from recrawl.history import History


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("watch")(watch)


def watch(
    pages: Annotated[
        list[str] | None, typer.Argument(help="URLs of known pages, or glob patterns (*, ?).", metavar="URL")
    ] = None,
    stop: Annotated[bool, typer.Option("--stop", help="Do not watch these pages any more.")] = False,
    history: HistoryOption = HISTORY,
    json: JsonOption = False,
) -> None:
    """Watch known pages again, or stop watching them; without a URL, list the pages that are not watched.

    Plans choose among watched pages. Every page that was ever visited is watched, except pages that recrawl crawl --follow
    fetched and that brought few new links. Visits of pages that are not watched are kept and count for everything else.
    """
    if stop and not pages:
        raise typer.BadParameter("--stop needs the pages: give their URLs or patterns")
    opened = open_history(history)
    if not pages:
        _list(opened, json)
        return
    from datetime import UTC, datetime

    from recrawl.history.watching import Decision, decide

    ids = _matching(opened, pages, stop)
    now, why = datetime.now(UTC), "recrawl watch" + (" --stop" if stop else "")
    decide(opened, [Decision(page=page, at=now, is_watched=not stop, why=why) for page in ids])
    if json:
        print_json({"pages": len(ids), "is_watched": not stop})
    else:
        console().print(f"{count(len(ids), 'page')} {'no longer watched' if stop else 'watched again'}", markup=False)


def _matching(history: History, patterns: list[str], stop: bool) -> list[int]:
    """The ids of known pages that match and whose state changes; a pattern that no known page matches is reported."""
    import numpy as np

    from recrawl.errors import RecrawlError
    from recrawl.history.watching import unwatched

    known, left_out = np.unique(history.page_times()[0]), unwatched(history)
    matches = {pattern: _pages_of(pattern, known, history) for pattern in patterns}
    for pattern, ids in matches.items():
        if not len(ids):
            note(f"{pattern}: no known page matches")
    named = np.unique(np.concatenate(list(matches.values())))
    if not len(named):
        raise RecrawlError(f"no known page matches {', '.join(patterns)}; recrawl info lists the hosts that are known")
    is_left_out = np.isin(named, left_out)
    found: list[int] = named[~is_left_out if stop else is_left_out].tolist()
    return found


def _pages_of(pattern: str, known: Ints, history: History) -> Ints:
    """The known pages that a glob pattern matches, or the one that a URL names."""
    import numpy as np

    from recrawl.plan.planner import matching
    from recrawl.web.urls import page_id

    if "*" in pattern or "?" in pattern:
        return known[matching(history.urls_of(known), [pattern])]
    return np.intersect1d(known, [page_id(checked_url(pattern))])


def _list(history: History, json: bool) -> None:
    import pyarrow.compute as pc

    from recrawl.history.watching import newest

    rows = newest(history)
    rows = rows.filter(pc.invert(rows["is_watched"]))
    urls = history.urls_of(rows["page"].to_numpy()).to_pylist()
    for url, row in zip(urls, rows.drop_columns(["page", "is_watched"]).to_pylist(), strict=True):
        _print(url, row, json)
    if not urls and not json:
        console().print("every known page is watched", markup=False)


def _print(url: str | None, row: dict[str, Any], json: bool) -> None:
    if json:
        print_json({"url": url, **row})
    else:
        console().print(f"{url}  {row['why']}", markup=False, soft_wrap=True, highlight=False)
