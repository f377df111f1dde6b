"""``recrawl import``: files of any kind into the history."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.common import HISTORY, EngineOption, HistoryOption, JsonOption, console, note, print_json, progress
from recrawl.cli.running import Ended, code_after
from recrawl.core.visible import one_line
from recrawl.core.words import count

if TYPE_CHECKING:
    from recrawl.engine.inputs import InputFile
    from recrawl.history import Appended
    from recrawl.history.ingest import ImportOptions, ImportReport


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("import")(import_)


def _known_format(name: str | None) -> str | None:
    from recrawl.errors import BadSource
    from recrawl.sources import named

    try:
        return named(name).name if name else None
    except BadSource as error:
        raise typer.BadParameter(str(error)) from None


def import_(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Files of any kind, or - for standard input.")],
    history: HistoryOption = HISTORY,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="File type, if it is not detected: {formats}.",
            callback=_known_format,
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on the first record that would be skipped.")] = False,
    keep_tracking: Annotated[
        bool, typer.Option("--keep-tracking", help="Keep tracking parameters (utm_*, gclid, fbclid, …) in URLs.")
    ] = False,
    max_body: Annotated[
        int, typer.Option("--max-body", metavar="MIB", min=1, help="Skip bodies larger than this.")
    ] = 32,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Number of reading processes. Default: one per core for large inputs."),
    ] = None,
    engine: EngineOption = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Report each commit on stderr.")] = False,
    json: JsonOption = False,
) -> None:
    """Import visits from JSONL, CSV, Parquet, WARC, WACZ, CDX/CDXJ, TimeMap or LBLA (Dang et al., 2022) files.

    The file type is detected from the content; .gz and .zst are decompressed on the fly. Importing the same file twice adds
    nothing. Records that cannot be used are counted by reason and skipped. Exits 1 if an input could not be read, or if no
    record could be used. With --engine the workers of Sail or Spark read the files, and FILE may also be a folder, a pattern in
    quotes, or the URL of an object, a folder or a pattern in an object store.
    """
    from recrawl.history.ingest import ImportOptions

    options = ImportOptions(format=format, keep_tracking=keep_tracking, max_body=max_body << 20, strict=strict)
    tally = _Safe(verbose=verbose)
    try:
        importer = _import_here if engine is None else partial(_import_with, engine)
        report = importer(history, files, options, workers, tally)
    except (KeyboardInterrupt, Ended) as interrupt:
        note(
            f"stopped: {count(tally.n_visits, 'visit')} of this import are safe; run the same command again to continue"
        )
        raise typer.Exit(code_after(interrupt)) from None
    if json:
        print_json(report.as_dict())
    else:
        _print(report)
    if report.failed_inputs:
        for failure in report.failed_inputs:
            note(f"error: {failure}")
        raise typer.Exit(1)
    if report.read and report.read == sum(report.skipped.values()):
        note(f"error: none of the {count(report.read, 'record')} could be used")
        raise typer.Exit(1)


class _Safe:
    """How many visits are safe so far."""

    def __init__(self, *, verbose: bool) -> None:
        self.verbose = verbose
        self.n_visits = 0

    def committed(self, receipt: Appended) -> None:
        """Add what one commit made safe."""
        self.n_visits += receipt.added + receipt.duplicates
        if self.verbose:
            note(f"safe: {self.n_visits:,} visits ({receipt.added:,} added, {receipt.duplicates:,} known)")

    def group_read(self, files: list[InputFile], report: ImportReport) -> None:
        """Add what a worker has made safe."""
        self.n_visits += report.added + report.duplicates
        if self.verbose:
            for file in files:
                read = report.inputs.get(file.name)
                note(f"read: {file.name} ({count(read.n_read if read else 0, 'record')})")
            note(f"safe: {self.n_visits:,} visits ({report.added:,} added, {report.duplicates:,} known)")


def _import_here(
    history: str, files: list[str], options: ImportOptions, workers: int | None, safe: _Safe
) -> ImportReport:
    from recrawl.history import History
    from recrawl.history.ingest import import_files

    total = sum(os.path.getsize(file) for file in files if os.path.isfile(file)) if "-" not in files else None
    opened = History.open(history, missing_ok=True)
    with progress("importing", total, in_bytes=True) as advance:
        return import_files(opened, files, options, workers=workers, on_read=advance, on_commit=safe.committed)


def _import_with(
    engine: str, history: str, files: list[str], options: ImportOptions, workers: int | None, safe: _Safe
) -> ImportReport:
    from recrawl.engine import open_engine
    from recrawl.engine.bulk_import import import_with
    from recrawl.history import History

    opened = History.open(history, missing_ok=True)
    with open_engine(engine) as running, progress("importing", in_bytes=True) as advance:

        def group_read(part: list[InputFile], report: ImportReport) -> None:
            advance(sum(file.n_bytes for file in part))
            safe.group_read(part, report)

        return import_with(
            running,
            opened,
            files,
            options,
            n_parallel=workers,
            on_start=lambda n_files, n_bytes: advance(0, n_bytes),
            on_group=group_read,
        )


def _print(report: ImportReport) -> None:
    from rich.table import Table
    from rich.text import Text

    out = console()
    known = f"{report.duplicates:,} known already"
    if report.replaced:
        known += f", {report.replaced:,} of them with more detail than before"
    added = f"{count(report.added, 'visit')} added"
    out.print(f"{added} of {report.read:,} read, on {count(report.pages, 'page')}; {known}")
    if report.skipped:
        table = Table("skipped", "records", "for example", title_justify="left")
        for reason, n in report.skipped.most_common():
            table.add_row(Text(reason), f"{n:,}", Text(report.examples[reason][:110]))
        out.print(table)
    if report.dropped_links:
        dropped = ", ".join(f"{n:,} {reason}" for reason, n in report.dropped_links.most_common())
        out.print(Text(f"distinct links left out: {dropped}"))
    if report.unknown_fields:
        fields = ", ".join(f"{one_line(name)} ({n:,})" for name, n in report.unknown_fields.most_common(20))
        out.print(Text(f"fields not used: {fields}"))
    if report.not_numbers:
        cells = ", ".join(f"{one_line(name)} ({n:,})" for name, n in report.not_numbers.most_common(20))
        out.print(Text(f"values that are not usable numbers, taken as not known: {cells}"))
    if report.notes:
        from recrawl.report.terminal import Bullets

        out.print(Bullets(tuple(report.notes)))
    if report.traps:
        out.print(f"{report.traps:,} URLs look like crawler traps (kept, flagged)")
