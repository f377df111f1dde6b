"""``recrawl compact``: the history in fewer, sorted files."""

from __future__ import annotations

import typer

from recrawl.cli.common import HISTORY, HistoryOption, JsonOption, console, open_history, print_json


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compact")(compact)


def compact(history: HistoryOption = HISTORY, json: JsonOption = False) -> None:
    """Rewrite the history in fewer, sorted files without repeated rows. Safe while other processes read and write."""
    opened = open_history(history)
    before, files = opened.store.size_in_bytes(), opened.store.n_files()
    opened.compact()
    after, files_after = opened.store.size_in_bytes(), opened.store.n_files()
    if json:
        print_json({"bytes_before": before, "bytes_after": after, "files_before": files, "files_after": files_after})
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
