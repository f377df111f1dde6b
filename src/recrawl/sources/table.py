"""The visit record as CSV and as Parquet."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson

from recrawl.core.csv_text import read_rows
from recrawl.errors import BadRecord, BadSource
from recrawl.sources.base import Context, Source
from recrawl.sources.jsonl import KNOWN
from recrawl.sources.streams import text_lines
from recrawl.web.visit import Visit, from_record

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_CELL = 64 << 20


class Csv(Source):
    """CSV with a header; links are separated by blanks (or are a JSON list), terms are a JSON object."""

    name = "csv"

    def detects(self, head: bytes, filename: str = "") -> bool:
        """Whether a file begins with a header line that names a url and a time."""
        return {"url", "at"} <= _names(head)

    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        """A visit per row; columns that a visit does not have are counted."""
        csv.field_size_limit(_MAX_CELL)
        lines = text_lines(stream, _MAX_CELL)
        header = next(lines, "")
        delimiter = _delimiter(header)
        names = next(csv.reader([header], delimiter=delimiter), [])
        context.unknown_fields.update(set(names) - KNOWN)
        for cells in csv_rows(lines, delimiter):
            if isinstance(cells, BadRecord):
                yield cells
            elif cells:
                yield _from_row(names, cells, context.now)


def csv_rows(lines: Iterator[str], delimiter: str) -> Iterator[list[str] | BadRecord]:
    """The rows of CSV; one that is broken is named, and reading goes on."""
    rows = read_rows(lines, delimiter)
    while True:
        try:
            yield next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield BadRecord("broken CSV row", str(error))


def _names(head: bytes) -> set[str]:
    line = head.partition(b"\n")[0].decode("utf-8-sig", "replace")
    try:
        return {name.strip() for name in next(csv.reader([line.strip()], delimiter=_delimiter(line)), [])}
    except csv.Error:
        return set()


def _delimiter(header: str) -> str:
    return max(",;\t", key=header.count)


def _from_row(names: list[str], row: list[str], now: datetime | None) -> Visit | BadRecord:
    if len(row) != len(names):
        return BadRecord("wrong number of CSV cells", f"{len(row)} instead of {len(names)}")
    record: dict[str, Any] = dict(zip(names, row, strict=True))
    try:
        for name in ("links", "terms", "vector"):
            cell = record.get(name) or ""
            if cell.lstrip()[:1] in ("[", "{"):
                record[name] = orjson.loads(cell)
            elif not cell:
                record[name] = None  # an empty cell: not known; write [] for none
        return from_record(record, now=now)
    except orjson.JSONDecodeError as error:
        return BadRecord("not JSON in a CSV cell", str(error)[:80])
    except BadRecord as error:
        return error


class Parquet(Source):
    """Parquet files whose columns are fields of the visit record."""

    name = "parquet"
    raw = True

    def detects(self, head: bytes, filename: str = "") -> bool:
        """Whether a file begins as Parquet."""
        return head.startswith(b"PAR1")

    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        """A visit per row; columns that a visit does not have are counted."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            file = pq.ParquetFile(stream)
            names = file.schema_arrow.names
            if not {"url", "at"} <= set(names):
                raise BadSource(f"the Parquet file has no columns url and at, but: {', '.join(names[:20])}")
            context.unknown_fields.update(set(names) - KNOWN)
            for batch in file.iter_batches(batch_size=4096, columns=[name for name in names if name in KNOWN]):
                for record in _records(batch):
                    try:
                        yield record if isinstance(record, BadRecord) else from_record(record, now=context.now)
                    except BadRecord as error:
                        yield error
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last: names that are not UTF-8
            raise BadSource(f"the Parquet file is damaged: {str(error).splitlines()[0]}") from error


def _records(batch: pa.RecordBatch) -> Iterator[dict[str, Any] | BadRecord]:
    import pyarrow as pa

    for i, column in enumerate(batch.schema):
        if pa.types.is_timestamp(column.type) and column.type.tz is not None:
            # Python knows neither nanoseconds nor every name of a zone.
            microseconds = batch.column(i).cast(pa.timestamp("us", "UTC"), safe=False)
            batch = batch.set_column(i, column.name, microseconds)
    try:
        yield from batch.to_pylist()
    except (ValueError, OverflowError, LookupError) as error:
        if batch.num_rows == 1:
            yield BadRecord("unreadable Parquet row", str(error)[:80])
        else:
            for i in range(batch.num_rows):
                yield from _records(batch.slice(i, 1))
