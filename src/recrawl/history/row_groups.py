"""Tables read row group by row group: a large one is never in memory twice, and columns that are not needed stay unread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from recrawl.core.workers import cores, read_ahead
from recrawl.history.delta import metadata_of, open_file

S = TypeVar("S")
T = TypeVar("T")
#: Row groups read at once, at most: with many cores a whole table would be in memory beside what is made of it.
AT_ONCE = 4
FEW = 20_000  #: rows that are read before a thread would have begun


@dataclass(frozen=True)
class RowGroup:
    """Some rows of a file that are read together."""

    file: str
    number: int
    about: pq.FileMetaData

    @property
    def n_rows(self) -> int:
        """How many rows it has."""
        return int(self.about.row_group(self.number).num_rows)

    def n_values(self, column: str) -> int:
        """How many values a column of lists has, each empty list counted as one."""
        return int(self._chunk(column).num_values)

    def span(self, column: str) -> tuple[int, int] | None:
        """The least and the greatest value of a column; None: the file does not say."""
        statistics = self._chunk(column).statistics
        return (statistics.min, statistics.max) if statistics is not None and statistics.has_min_max else None

    def read(self, columns: Sequence[str]) -> pa.Table:
        """These columns of its rows."""
        with open_file(self.file, self.about) as file:
            return file.read_row_group(self.number, columns=list(columns), use_threads=False)

    def _chunk(self, column: str) -> pq.ColumnChunkMetaData:
        rows = self.about.row_group(self.number)
        return next(
            chunk
            for chunk in map(rows.column, range(rows.num_columns))
            if chunk.path_in_schema.split(".", 1)[0] == column
        )


def row_groups(files: Iterable[str]) -> list[RowGroup]:
    """All row groups of some files, in order."""
    with_metadata = ((file, metadata_of(file)) for file in files)
    return [RowGroup(file, i, metadata) for file, metadata in with_metadata for i in range(metadata.num_row_groups)]


def side_by_side(work: Callable[[S], T], parts: Iterable[S], n_rows: int) -> Iterator[T]:
    """The result of the work on each part of a table, in order; a few cores share it, and none runs far ahead of the reader."""
    return map(work, parts) if n_rows < FEW else read_ahead(work, parts, min(cores(), AT_ONCE))


def n_rows_of(groups: Iterable[RowGroup]) -> int:
    """How many rows some row groups have together."""
    return sum(group.n_rows for group in groups)
