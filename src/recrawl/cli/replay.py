"""``recrawl replay``: what every policy would have found on the recorded past."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.common import (
    HISTORY,
    HistoryOption,
    JsonOption,
    check_writable,
    console,
    note,
    open_history,
    print_json,
    stderr_console,
    working,
    written,
)
from recrawl.cli.option_groups import with_options
from recrawl.cli.report_options import OutOption, SelfContainedOption
from recrawl.cli.running import Ended, code_after
from recrawl.report.replays.options import ReplayOptions

if TYPE_CHECKING:
    from recrawl.report.replays.comparison import Replays

NARROW = 110  # columns of a terminal below which the table is cut


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replay")(with_options(replay))


def replay(
    options: ReplayOptions,
    history: HistoryOption = HISTORY,
    rows: Annotated[
        str | None, typer.Option("--rows", metavar="FILE", help="Write one JSON line per policy and cycle.")
    ] = None,
    out: OutOption = None,
    self_contained: SelfContainedOption = False,
    json: JsonOption = False,
) -> None:
    """Compare policies on the recorded past: in each cycle a policy sees only the pages that it chooses.

    Shows coverage over time, how soon links are found, freshness of the stored copies, and the cost. The first crawl is
    known to every policy; results are relative to visiting every page in every cycle. With --goal content policies are judged by
    the copies that they keep current; checksums are enough for that.
    """
    check_writable(out)
    check_writable(rows, "--rows")
    result = _replayed(history, options)
    if rows:
        _write_rows(rows, result)
    with working("comparing the policies"):
        if out:
            result.write(out, self_contained=self_contained)
    if rows == "-":
        return
    if json:
        for record in result.records():
            print_json(record)
    else:
        _print_tables(result, out, rows)


def _replayed(history: str, options: ReplayOptions) -> Replays:
    """The result; after Ctrl-C or SIGTERM a line says what is kept of it."""
    opened = open_history(history)
    from recrawl.report.replays.api import replay_by

    try:
        with _progress() as (on_step, on_cycles):
            return replay_by(opened, options, on_step=on_step, on_cycles=on_cycles, on_note=note)
    except (KeyboardInterrupt, Ended) as interrupt:
        kept = (
            f"finished runs are kept in {options.resume}"
            if options.resume
            else "to keep finished runs give --resume DIR"
        )
        note(f"stopped; {kept}")
        raise typer.Exit(code_after(interrupt)) from None


@contextmanager
def _progress() -> Iterator[tuple[Callable[[str], None], Callable[[int, int], None]]]:
    """A progress bar with the step at hand and cycles per second, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda step: None, lambda done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    speed = TextColumn("{task.fields[speed]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), speed, TimeRemainingColumn())
    with Progress(*columns, console=stderr_console(), transient=True) as bar:
        task = bar.add_task("", total=None, speed="")

        def on_cycles(done: int, total: int) -> None:
            pace = bar.tasks[0].speed
            bar.update(task, completed=done, total=total, speed=f"{pace:,.0f} cycles/s" if pace else "")

        yield lambda step: bar.update(task, description=step), on_cycles


def _write_rows(path: str, result: Replays) -> None:
    import orjson

    with written(path) as file:
        for record in result.cycle_records():
            file.write(orjson.dumps(record) + b"\n")


def _print_tables(result: Replays, out: str | None, rows: str | None) -> None:
    from rich.text import Text

    from recrawl.report.replays.page import scope
    from recrawl.report.replays.tables import legend, tables

    screen = console()
    screen.print(Text(scope(result)))
    narrow = screen.width < NARROW
    for table in tables(result, narrow):
        screen.print(table)
    screen.print(Text(legend(narrow, result.goal, result.is_weighted), "dim"))
    for what, path in (("every cycle", rows), ("all of it with plots", out)):
        if path:
            screen.print(Text(f"{what}: {path}"), soft_wrap=True)
