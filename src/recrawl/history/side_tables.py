"""Tables kept beside the visits, that no question about the past needs: plans, and what sitemaps and feeds said."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError

from recrawl.errors import HistoryError


def local_files(table: DeltaTable) -> list[str]:
    """The files of a table as the file system knows them: a table tells them as URIs, in which a blank is %20."""
    return [unquote(uri) for uri in table.file_uris()]


@dataclass(frozen=True)
class SideTable:
    """A Delta table in the history's folder: made with the first rows, empty before. Columns of later versions read as null."""

    name: str
    schema: pa.Schema

    def append(self, folder: Path, rows: pa.Table) -> None:
        """Add rows in one commit."""
        if not rows.num_rows:
            return
        try:
            write_deltalake(folder / self.name, rows.cast(self.schema), mode="append", schema_mode="merge")
        except (OSError, DeltaError) as error:
            raise HistoryError(f"cannot write the {self.name} of {folder}: {str(error).splitlines()[0]}") from error

    def compact(self, folder: Path) -> None:
        """Fewer, larger files; whoever reads the older ones goes on doing so."""
        try:
            DeltaTable(folder / self.name).optimize.compact()
        except TableNotFoundError:
            return
        except (OSError, DeltaError) as error:
            raise HistoryError(f"cannot compact the {self.name} of {folder}: {str(error).splitlines()[0]}") from error

    def read(self, folder: Path, where: ds.Expression | None = None) -> pa.Table:
        """All rows, or some of them."""
        try:
            files = local_files(DeltaTable(folder / self.name))
        except TableNotFoundError:
            return self.schema.empty_table()
        except (OSError, DeltaError) as error:
            raise HistoryError(f"cannot read the {self.name} of {folder}: {str(error).splitlines()[0]}") from error
        return ds.dataset(files, schema=self.schema).to_table(filter=where)
