"""``recrawl repair``: a damaged history put in order."""

from __future__ import annotations

import typer

from recrawl.cli.common import HISTORY, HistoryOption, JsonOption, print_json


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("repair")(repair)


def repair(history: HistoryOption = HISTORY, json: JsonOption = False) -> None:
    """Put a damaged history in order: take up again what its data files hold, and say what is lost.

    For a history of which files were lost or damaged, by a failing disk or a copy that was interrupted. Tables that are whole are
    left alone, and damaged logs are kept beside the new ones. Nothing else may write to the history meanwhile.
    """
    from recrawl.cli.screen import Screen
    from recrawl.core.places import place
    from recrawl.core.words import count
    from recrawl.history.repair import repair as repaired

    done = repaired(place(history))
    if json:
        print_json([vars(each) for each in done])
        return
    screen = Screen()
    if not done:
        screen.line("nothing to repair: all tables are whole")
    for each in done:
        found = f"{count(each.n_rows, 'row')} in {count(each.n_files, 'file')} count again"
        screen.item(each.table, each.wrong, found, *(f"lost, unless you put it back: {file}" for file in each.lost))
