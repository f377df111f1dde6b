"""What the rest of a history knows of Delta tables: their log, and the files that they are made of, on a disk or in a store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable

from recrawl.core.places import Place, located, size_of, storage_options

LOG = "_delta_log"


def entry_name(version: int) -> str:
    """The name of the log entry of a version."""
    return f"{version:020}.json"


def is_table(folder: Place) -> bool:
    """Whether there is a table in a folder."""
    return bool(DeltaTable.is_deltatable(str(folder), options_of(folder)))


def load(folder: Place) -> DeltaTable:
    """The table in a folder, with its log read."""
    return DeltaTable(str(folder), storage_options=options_of(folder))


def options_of(folder: Place) -> dict[str, str] | None:
    """What the engine must know beside the place of a table."""
    return None if isinstance(folder, Path) else storage_options()


def data_files(table: DeltaTable, folder: Place) -> list[str]:
    """The files of a table, as `open_file` takes them: a table gives them as URIs, in which a blank is %20."""
    if isinstance(folder, Path):
        return [unquote(uri) for uri in table.file_uris()]
    paths = pa.table(table.get_add_actions(flatten=True))["path"].to_pylist()
    return [str(folder / unquote(path)) for path in paths]


def dataset(files: Sequence[str], schema: pa.Schema) -> ds.Dataset:
    """The rows of some files."""
    if not files:
        return ds.dataset([], schema=schema)
    places = [located(file) for file in files]
    return ds.dataset([path for _, path in places], schema=schema, filesystem=places[0][0], format="parquet")


def read_file(file: str, **how: Any) -> pa.Table:
    """The rows of one file."""
    system, path = located(file)
    return pq.read_table(path, filesystem=system, **how)


def open_file(file: str, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """A file to be read part by part."""
    system, path = located(file)
    return pq.ParquetFile(path, metadata=metadata, filesystem=system)


def metadata_of(file: str) -> pq.FileMetaData:
    """What a file says of itself: rows, row groups, statistics."""
    system, path = located(file)
    return pq.read_metadata(path, filesystem=system)


def n_bytes_of(files: Sequence[str]) -> int:
    """Bytes of some files together."""
    return sum(map(size_of, files))
