"""``recrawl export``: the tables for the user's own notebook."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, cast

import typer

from recrawl.cli.common import (
    HISTORY,
    AsOfOption,
    EngineOption,
    EveryOption,
    HistoryOption,
    JsonOption,
    MinShareOption,
    check_writable,
    note,
    open_history,
    working,
    written,
)
from recrawl.cli.train import MODEL

if TYPE_CHECKING:
    import pyarrow as pa

    from recrawl.history import History


class ExportTable(StrEnum):
    """The tables."""

    visits = "visits"
    links = "links"
    panel = "panel"
    features = "features"
    predictions = "predictions"


class ExportFormat(StrEnum):
    """How they are written."""

    jsonl = "jsonl"
    csv = "csv"
    parquet = "parquet"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export")(export)


def export(
    what: Annotated[ExportTable, typer.Argument(help="visits, links, panel, features or predictions.")],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="File to write; .gz and .zst compress, - is stdout.")
    ] = "-",
    format: Annotated[
        ExportFormat | None,
        typer.Option("--format", help="jsonl, csv or parquet. Default: by the file name, else jsonl."),
    ] = None,
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    every: EveryOption = "crawl",
    min_share: MinShareOption = 1.0,
    features: Annotated[str, typer.Option("--features", help="Feature set, as in recrawl train.")] = ("everything"),
    past: Annotated[
        int,
        typer.Option("--past", min=0, help="Also export the features of this many past rounds, with their new links."),
    ] = 0,
    model: Annotated[str, typer.Option("--model", "-m", metavar="FILE", help="Model for predictions.")] = MODEL,
    engine: EngineOption = None,
    json: JsonOption = False,
) -> None:
    """Write a table as Parquet, CSV or JSON lines.

    visits: what each visit showed and what was new. links: every link of every distinct copy (a 304 has none of its own).
    panel: pages by rounds (--every, --min-share). features: what is known of each page before the next round, and before past
    rounds (--features, --past). predictions: what the model expects of every page (--model).
    visits and links can be put together by the workers of an engine (--engine); rows and order are the same.
    CSV: a text that a spreadsheet would run as a formula gets a leading apostrophe, which recrawl import takes off again.
    """
    check_writable(out)
    kind = ExportFormat.jsonl if json else format or _format_of(out)
    if engine is not None and what not in _BY_BUCKETS:
        raise typer.BadParameter(
            f"{what.value} need all pages at once, so no engine can export them; visits and links it can",
            param_hint="--engine",
        )
    opened = open_history(history, as_of)
    from recrawl.report import export as tables

    parts: Iterator[pa.Table]
    if engine is not None:
        parts = _by_engine(engine, opened, what)
    elif what is ExportTable.panel:
        parts = tables.panel_rows(opened, every, min_share)
    elif what is ExportTable.features:
        parts = tables.features(opened, features, every, min_share, past)
    elif what is ExportTable.predictions:
        parts = tables.predictions(opened, model)
    else:
        parts = {"visits": tables.visits, "links": tables.links}[what.value](opened)
    if kind is ExportFormat.parquet and out == "-" and sys.stdout.isatty():
        raise typer.BadParameter("Parquet is not for a terminal; name a file with --out FILE")
    with working(f"exporting {what.value}"), written(out) as stream:
        {"jsonl": _write_jsonl, "csv": _write_csv, "parquet": _write_parquet}[kind.value](parts, stream)


_BY_BUCKETS = (ExportTable.visits, ExportTable.links)


def _by_engine(engine: str, history: History, what: ExportTable) -> Iterator[pa.Table]:
    from recrawl.engine.collection import opened_collection
    from recrawl.engine.export import exported

    with opened_collection(engine, history, note) as collection:
        yield from exported(collection, what.value)  # type: ignore[arg-type]  # one of the two


_ENDINGS = {
    ".csv": ExportFormat.csv,
    ".parquet": ExportFormat.parquet,
    ".jsonl": ExportFormat.jsonl,
    ".ndjson": ExportFormat.jsonl,
}


def _format_of(name: str) -> ExportFormat:
    if name == "-":
        return ExportFormat.jsonl
    ending = Path(name.removesuffix(".gz").removesuffix(".zst")).suffix
    if ending not in _ENDINGS:
        raise typer.BadParameter(f"the name {name} does not show the format; add --format jsonl, csv or parquet")
    return _ENDINGS[ending]


def _write_jsonl(parts: Iterator[pa.Table], stream: BinaryIO) -> None:
    import orjson

    options = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z
    for part in parts:
        for batch in part.to_batches(max_chunksize=10_000):
            stream.write(b"".join(orjson.dumps(row, option=options) for row in batch.to_pylist()))


def _write_csv(parts: Iterator[pa.Table], stream: BinaryIO) -> None:
    from recrawl.core.csv_text import write_tables

    write_tables(parts, stream)


def _write_parquet(parts: Iterator[pa.Table], stream: BinaryIO) -> None:
    import pyarrow.parquet as pq

    writer: Any = None
    for part in parts:
        writer = writer or pq.ParquetWriter(cast(Any, stream), part.schema, compression="zstd")
        writer.write_table(part)
    if writer:
        writer.close()
