"""Tables kept beside the visits: plans, and what sitemaps and feeds said."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from recrawl.errors import HistoryError
from recrawl.history.beside import Beside
from recrawl.history.commits import ROW_GROUP, Conflict, DurableTable
from recrawl.history.opened import open_table


def local_files(table: DeltaTable) -> list[str]:
    """The files of a table as the file system knows them: a table gives them as URIs, in which a blank is %20."""
    return [unquote(uri) for uri in table.file_uris()]


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
            rows = ds.dataset(local_files(table), schema=self.schema).to_table().combine_chunks()
            durable.rewrite(rows.to_batches(max_chunksize=ROW_GROUP), table)
        except (TableNotFoundError, Conflict):  # another process has just done the same
            return
        except (OSError, DeltaError) as error:
            raise HistoryError(self._message("compact", beside, error)) from error

    def read(self, beside: Beside, where: ds.Expression | None = None, columns: list[str] | None = None) -> pa.Table:
        """All rows, or some of them; all columns, or some."""
        try:
            files = local_files(open_table(beside.folder / self.name))
        except TableNotFoundError:
            return self.schema.empty_table()
        except (OSError, DeltaError) as error:
            raise HistoryError(self._message("read", beside, error)) from error
        try:
            return ds.dataset(files, schema=self.schema).to_table(columns=columns, filter=where)
        except (OSError, pa.ArrowException) as error:
            raise HistoryError(self._message("read", beside, error)) from error

    def _durable(self, beside: Beside) -> DurableTable:
        return DurableTable(beside.folder / self.name, self.schema)

    def _message(self, verb: str, beside: Beside, error: Exception) -> str:
        return f"cannot {verb} the {self.name} of {beside.folder}: {str(error).splitlines()[0]}"
