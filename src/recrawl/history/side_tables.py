"""Tables kept beside the visits: plans, and what sitemaps and feeds said."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake.exceptions import DeltaError, TableNotFoundError

from recrawl.errors import HistoryError
from recrawl.history.beside import Beside
from recrawl.history.commits import PART, ROW_GROUP, Conflict, DurableTable
from recrawl.history.delta import data_files, dataset
from recrawl.history.object_commits import table_in
from recrawl.history.opened import open_table


@dataclass(frozen=True)
class SideTable:
    """A Delta table beside the visits: made with the first rows, empty before. Columns of later versions read as null."""

    name: str
    schema: pa.Schema

    def append(self, beside: Beside, rows: pa.Table) -> None:
        """Add rows in one commit."""
        if not rows.num_rows:
            return
        beside.make_history()
        try:
            durable = self._durable(beside)
            durable.create()
            durable.append(rows.cast(self.schema), open_table(durable.folder), blind=True)
        except (OSError, DeltaError) as error:
            raise HistoryError(self._message("write", beside, error)) from error

    def compact(self, beside: Beside) -> None:
        """Fewer, larger files."""
        durable = self._durable(beside)
        try:
            table = open_table(durable.folder)
            rows = dataset(data_files(table, durable.folder), self.schema).to_table().combine_chunks()
            durable.rewrite([(PART, rows.to_batches(max_chunksize=ROW_GROUP))], table)
        except (TableNotFoundError, Conflict):  # another process has just done the same
            return
        except (OSError, DeltaError) as error:
            raise HistoryError(self._message("compact", beside, error)) from error

    def read(self, beside: Beside, where: ds.Expression | None = None, columns: list[str] | None = None) -> pa.Table:
        """All rows, or some of them; all columns, or some."""
        try:
            folder = beside.folder / self.name
            files = data_files(open_table(folder), folder)
        except TableNotFoundError:
            return self.schema.empty_table()
        except (OSError, DeltaError) as error:
            raise HistoryError(self._message("read", beside, error)) from error
        try:
            return dataset(files, self.schema).to_table(columns=columns, filter=where)
        except (OSError, pa.ArrowException) as error:
            raise HistoryError(self._message("read", beside, error)) from error

    def _durable(self, beside: Beside) -> DurableTable:
        return table_in(beside.folder / self.name, self.schema)

    def _message(self, verb: str, beside: Beside, error: Exception) -> str:
        return f"cannot {verb} the {self.name} of {beside.folder}: {str(error).splitlines()[0]}"
