"""``recrawl compact``: the history in fewer, sorted files."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.common import HISTORY, HistoryOption, JsonOption, console, open_history, print_json
from recrawl.cli.screen import Screen
from recrawl.core.words import count


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compact")(compact)


BUCKETS = typer.Option(
    metavar="N",
    help="Lay the history out in N buckets of whole sites, each in files of its own; 0: in none. Default: as it is laid out now.",
)


def compact(
    history: HistoryOption = HISTORY, buckets: Annotated[int | None, BUCKETS] = None, json: JsonOption = False
) -> None:
    """Rewrite the history in fewer, sorted files without repeated rows. Safe while other processes read and write."""
    opened = open_history(history)
    before, files = opened.store.size_in_bytes(), opened.store.n_files()
    opened.compact(buckets)
    after, files_after = opened.store.size_in_bytes(), opened.store.n_files()
    n = opened.layout()
    if json:
        sizes = {"bytes_before": before, "bytes_after": after, "files_before": files, "files_after": files_after}
        print_json({**sizes, "buckets": n})
        return
    from rich.table import Table

    table = Table("table", "files", "MB before", "files", "MB after", box=None)
    for name in before:
        table.add_row(
            name,
            f"{files[name]:,}",
            f"{before[name] / 1e6:,.2f}",
            f"{files_after[name]:,}",
            f"{after[name] / 1e6:,.2f}",
        )
    console().print(table)
    if n:
        Screen().line(f"laid out in {count(n, 'bucket')}")
