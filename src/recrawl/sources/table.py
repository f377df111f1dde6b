"""The visit record as CSV and as Parquet."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from io import BufferedReader
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson

from recrawl.errors import BadRecord, BadSource
from recrawl.sources.jsonl import KNOWN
from recrawl.sources.streams import text_lines
from recrawl.web.visit import Visit, from_record

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_CELL = 64 << 20


def looks_like_csv(head: bytes) -> bool:
    """Whether a file begins with a header line that names a url and a time."""
    names = _names(head)
    return {"url", "at"} <= names


def _names(head: bytes) -> set[str]:
    line = head.partition(b"\n")[0].decode("utf-8-sig", "replace")
    try:
        return {name.strip() for name in next(csv.reader([line.strip()], delimiter=_delimiter(line)), [])}
    except csv.Error:
        return set()


def _delimiter(header: str) -> str:
    return max(",;\t", key=header.count)


def read_csv(
    stream: BufferedReader, *, unknown: Counter[str] | None = None, now: datetime | None = None
) -> Iterator[Visit | BadRecord]:
    """Visits of a CSV file with a header; links are separated by blanks (or a JSON list), terms are a JSON object."""
    csv.field_size_limit(_MAX_CELL)
    lines = text_lines(stream, _MAX_CELL)
    header = next(lines, "")
    delimiter = _delimiter(header)
    names = next(csv.reader([header], delimiter=delimiter), [])
    if unknown is not None:
        unknown.update(set(names) - KNOWN)
    rows = csv.reader(lines, delimiter=delimiter)
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            yield BadRecord("broken CSV row", str(error))
            continue
        if row is None:
            return
        if row:
            yield _from_row(names, row, now)


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


def read_parquet(
    stream: BinaryIO, *, unknown: Counter[str] | None = None, now: datetime | None = None
) -> Iterator[Visit | BadRecord]:
    """Visits of a Parquet file whose columns are fields of the visit record."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(stream)
        names = file.schema_arrow.names
        if not {"url", "at"} <= set(names):
            raise BadSource(f"the Parquet file has no columns url and at, but: {', '.join(names[:20])}")
        if unknown is not None:
            unknown.update(set(names) - KNOWN)
        for batch in file.iter_batches(batch_size=4096, columns=[name for name in names if name in KNOWN]):
            for record in _records(batch):
                try:
                    yield record if isinstance(record, BadRecord) else from_record(record, now=now)
                except BadRecord as error:
                    yield error
    except (pa.ArrowException, OSError) as error:
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
