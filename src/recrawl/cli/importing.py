"""``recrawl import``: files of any kind into the history."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.common import HISTORY, HistoryOption, JsonOption, console, note, print_json, progress
from recrawl.cli.running import Ended, code_after
from recrawl.core.visible import one_line
from recrawl.core.words import count

if TYPE_CHECKING:
    from recrawl.history.ingest import ImportReport


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
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Report each commit on stderr.")] = False,
    json: JsonOption = False,
) -> None:
    """Import visits from JSONL, CSV, Parquet, WARC, WACZ, CDX/CDXJ, TimeMap or LBLA (Dang et al., 2022) files.

    The file type is detected from the content; .gz and .zst are decompressed on the fly. Importing the same file twice adds
    nothing. Records that cannot be used are counted by reason and skipped. Exits 1 if an input could not be read, or if no
    record could be used.
    """
    from recrawl.history import Appended, History
    from recrawl.history.ingest import ImportOptions, import_files

    options = ImportOptions(format=format, keep_tracking=keep_tracking, max_body=max_body << 20, strict=strict)
    total = sum(os.path.getsize(file) for file in files if os.path.isfile(file)) if "-" not in files else None
    safe = 0

    def committed(receipt: Appended) -> None:
        nonlocal safe
        safe += receipt.added + receipt.duplicates
        if verbose:
            note(f"safe: {safe:,} visits ({receipt.added:,} added, {receipt.duplicates:,} known)")

    try:
        with progress("importing", total, in_bytes=True) as advance:
            report = import_files(
                History.open(history, missing_ok=True),
                files,
                options,
                workers=workers,
                on_read=advance,
                on_commit=committed,
            )
    except (KeyboardInterrupt, Ended) as interrupt:
        note(f"stopped: {count(safe, 'visit')} of this import are safe; run the same command again to continue")
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
