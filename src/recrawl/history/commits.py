"""Commits to a Delta table that outlive a power cut.

The table engine does not wait for the disk: after a power cut a commit may be empty, or name files that never got there. So recrawl
writes data files and log entries itself, in an order that leaves no such state: a data file is on disk before a log entry names it,
and a log entry is on disk before it has its name. Reading, schemas and the content of checkpoints are the engine's. In an object
store the same order holds by the store's own guarantee: an object is there when it was put, whole, and is put only if its name is
free (`recrawl.history.object_commits`).
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError

from recrawl.core.files import make_folder, sync
from recrawl.core.places import Place, entries, size_of
from recrawl.core.version import __version__
from recrawl.history.delta import LOG, entry_name, is_table, load, metadata_of, read_file

CHECKPOINT_EVERY = 50  #: versions
ROW_GROUP = 131_072  #: rows
FILE_ROWS = 32 * ROW_GROUP  #: rows of a data file, at most about
ABANDONED = 3600.0  #: seconds after which a file that no version names is one of a writer that was killed
CONFIGURATION = {"delta.logRetentionDuration": "interval 1 hours", "delta.checkpointInterval": str(CHECKPOINT_EVERY)}

PART = "part"  #: how the names of data files begin that hold any rows

Action = dict[str, Any]
NamedBatches = Iterable[tuple[str, Iterable[pa.RecordBatch]]]


class Conflict(CommitFailedError):
    """Another process has changed the table since it was read."""


@dataclass(frozen=True)
class DurableTable:
    """The commits of the Delta table in a folder."""

    folder: Any  # a Path; in `ObjectTable` an `ObjectPath`
    schema: pa.Schema
    plain: str | None = None  # a column of hashes, which a dictionary would only make larger

    def create(self) -> None:
        """Make the table if it is not there; safe when several processes do so at once."""
        if is_table(self.folder):
            return
        make_folder(self.folder)
        with self.scratch() as scratch:
            (scratch / entry_name(0)).write_bytes(entry_bytes(first_actions(self.schema)))
            sync(scratch / entry_name(0))
            sync(scratch)
            try:
                os.rename(scratch, self._log)  # with its first entry, or not at all
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # then another process was quicker
                    raise
        sync(self.folder)

    def append(self, rows: pa.Table, table: DeltaTable, *, blind: bool = False) -> None:
        """Add rows in one commit: the version after that of `table`; when this returns they are on disk.

        Raises `Conflict` where another process was quicker, and leaves nothing behind; `blind`: whatever others did.
        """
        files = self._written([(PART, rows.combine_chunks().to_batches(max_chunksize=ROW_GROUP))])
        version = table.version() + 1
        try:
            actions = [_info("WRITE", mode="Append"), *self._added_columns(table), *map(_add, files)]
            while not self._commit(version, actions):
                if not blind:
                    raise Conflict(f"another process has written version {version} of {self.folder}")
                version += 1
            self._check_in_time(version, files)
        except BaseException:
            self._give_up(files, version)
            raise
        if version % CHECKPOINT_EVERY == 0:
            with suppress(OSError, DeltaError):  # what was added is safe; the next checkpoint will do
                self.checkpoint()

    def rewrite(self, batches: NamedBatches, table: DeltaTable) -> None:
        """Replace all files of a version of the table by one commit, and remove them.

        `batches`: those that belong in files of their own, with the beginning of these files' names. Rows that others append
        meanwhile stay. Raises `Conflict` where another process has replaced any of the files.
        """
        old = pa.table(table.get_add_actions(flatten=True)).select(["path", "size_bytes"]).to_pylist()
        if not old:
            return
        files = self._written(batches)
        removed = [_removed(each["path"], each["size_bytes"]) for each in old]
        version = table.version() + 1
        try:
            # Files are removed last: what is left of a damaged entry never removes more than it replaces.
            actions = [_info("OPTIMIZE"), *self._added_columns(table), *map(_add, files), *removed]
            while not self._commit(version, actions):
                if paths_in(self._log / entry_name(version))[1] & {each["path"] for each in old}:
                    raise Conflict(f"another process has replaced the same files of {self.folder}")
                version += 1
            self._check_in_time(version, files)
        except BaseException:
            self._give_up(files, version)
            raise
        self.checkpoint()
        _remove([self.folder / each["path"] for each in old])
        load(self.folder).cleanup_metadata()  # removes older log entries, which the checkpoint replaces
        self._tidy()

    def adopt(self, files: list[Any]) -> None:
        """Add data files that are there already to a table that has none."""
        for file in files:
            self._sync(file)
        self._sync(self.folder)
        if files and not self._commit(1, [_info("WRITE", mode="Append"), *map(_add, files)]):
            raise Conflict(f"another process has written version 1 of {self.folder}")

    def checkpoint(self) -> None:
        """Put the state of the newest version in one file, so that a reader need not go through all log entries."""
        with self.scratch() as scratch:
            make_folder(scratch / LOG)
            for entry in list(self._log.iterdir()):
                if entry.name != _LAST and entry.suffix in (".json", ".parquet"):
                    os.link(entry, scratch / LOG / entry.name)
            before = set(os.listdir(scratch / LOG))
            DeltaTable(scratch).create_checkpoint()
            made = sorted(set(os.listdir(scratch / LOG)) - before - {_LAST})
            for name in [*made, _LAST]:  # which names the others
                sync(scratch / LOG / name)
                os.replace(scratch / LOG / name, self._log / name)
                sync(self._log)

    # -- log entries ---------------------------------------------------------------------------------------------------

    @property
    def _log(self) -> Any:
        return self.folder / LOG

    def _sync(self, path: Any) -> None:
        sync(path)

    def _commit(self, version: int, actions: list[Action]) -> bool:
        """Add a log entry; False where there is one of that version."""
        draft = self._log / f".{uuid4()}.draft"
        try:
            with draft.open("wb") as stream:
                stream.write(entry_bytes(actions))
            return self._put(draft, entry_name(version))
        finally:
            draft.unlink(missing_ok=True)

    def _put(self, file: Path, name: str) -> bool:
        """Give a file a name in the log, if no other has it: no reader ever sees part of it, not even after a power cut."""
        sync(file)
        try:
            os.link(file, self._log / name)
        except FileExistsError:
            return False
        finally:
            sync(self._log)
        return True

    def _check_in_time(self, version: int, files: list[Any]) -> None:
        """Take a commit back that came too late: of a writer that was held up while others made a checkpoint of later versions.

        Log entries below a checkpoint are removed after an hour. Then their names are free again, and no one reads what takes them.
        A checkpoint that was made after the commit knows its files.
        """
        later = [
            each.name
            for each in entries(self._log)
            if each.name.endswith(".parquet") and each.name[:20].isdigit() and int(each.name[:20]) >= version
        ]
        if not later or not files or any(quote(files[0].name) in _paths_of(self._log / name) for name in later):
            return
        (self._log / entry_name(version)).unlink(missing_ok=True)
        self._sync(self._log)
        raise Conflict(f"other processes have written version {version} of {self.folder}, and later ones")

    def _give_up(self, files: list[Any], version: int) -> None:
        """Remove data files, unless the entry that names them is there after all: it may be the last step that has failed."""
        entry = self._log / entry_name(version)
        if not (entry.exists() and files and files[0].name.encode() in entry.read_bytes()):
            _remove(files)

    def _added_columns(self, table: DeltaTable) -> list[Action]:
        """The metadata of a table that lacks columns which were added to the schema since it was made."""
        now = pa.schema(table.schema().to_arrow())
        if not set(self.schema.names) - set(now.names):
            return []
        return [_metadata(self.schema, str(table.metadata().id))]

    # -- data files ----------------------------------------------------------------------------------------------------

    def _written(self, batches: NamedBatches) -> list[Any]:
        """New data files, on disk."""
        files = list[Any]()
        try:
            for prefix, some in batches:
                rest = iter(some)
                for first in rest:
                    files.append(self.folder / f"{prefix}-{len(files):05}-{uuid4()}-c000.zstd.parquet")
                    self._write(files[-1], _of_one_file(first, rest))
            self._sync(self.folder)
        except BaseException:
            _remove(files)
            raise
        return files

    def _write(self, file: Any, batches: Iterable[pa.RecordBatch]) -> None:
        with file.open("wb") as stream:
            self._write_to(stream, batches)
        sync(file)

    def _write_to(self, stream: Any, batches: Iterable[pa.RecordBatch]) -> None:
        use_dictionary = [_leaf(field) for field in self.schema if field.name != self.plain]
        how: dict[str, Any] = {"compression": "zstd", "compression_level": 3, "use_dictionary": use_dictionary}
        with pq.ParquetWriter(stream, self.schema, **how) as writer:
            for batch in batches:
                writer.write_batch(batch.cast(self.schema), row_group_size=ROW_GROUP)

    def _tidy(self) -> None:
        """Remove what killed writers have left."""
        kept = {Path(uri).name for uri in load(self.folder).file_uris()}
        before = time.time() - ABANDONED
        for folder in (self.folder, self._log):
            for path in list(folder.iterdir()):
                is_left = path.name.startswith(".") or (path.suffix == ".parquet" and folder == self.folder)
                if is_left and quote(path.name) not in kept and path.stat().st_mtime < before:
                    _remove([path])

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder on a disk for files on the way: of the engine, or rows that wait."""
        scratch = self.folder / f".{uuid4()}.scratch"
        scratch.mkdir()
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


_LAST = "_last_checkpoint"


def first_actions(schema: pa.Schema) -> list[Action]:
    """The first entry of a table's log."""
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    return [_info("CREATE TABLE"), protocol, _metadata(schema, str(uuid4()))]


def _metadata(schema: pa.Schema, table: str) -> Action:
    """What a log says of a table with this schema and id."""
    return {
        "metaData": {
            "id": table,
            "name": None,
            "description": None,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": Schema.from_arrow(schema).to_json(),
            "partitionColumns": [],
            "createdTime": int(time.time() * 1000),
            "configuration": CONFIGURATION,
        }
    }


def entry_bytes(actions: list[Action]) -> bytes:
    """A log entry."""
    return b"".join(orjson.dumps(each) + b"\n" for each in actions)


def _info(operation: str, **parameters: str) -> Action:
    return {
        "commitInfo": {
            "timestamp": int(time.time() * 1000),
            "operation": operation,
            "operationParameters": parameters,
            "engineInfo": f"recrawl {__version__}",
        }
    }


def paths_in(entry: Place) -> tuple[set[str], set[str]]:
    """The data files that a log entry adds, and those that it removes; what cannot be read names none."""
    added, removed = set[str](), set[str]()
    for line in entry.read_bytes().splitlines():
        with suppress(ValueError, KeyError, TypeError):
            action = orjson.loads(line)
            if "add" in action:
                added.add(action["add"]["path"])
            elif "remove" in action:
                removed.add(action["remove"]["path"])
    return added, removed


def _paths_of(checkpoint: Place) -> set[str]:
    """The data files that a checkpoint knows, as there or as removed."""
    rows = read_file(str(checkpoint), columns=["add", "remove"])
    return {each["path"] for name in ("add", "remove") for each in rows[name].to_pylist() if each is not None}


def _add(file: Place) -> Action:
    return {
        "add": {
            "path": quote(file.name),
            "partitionValues": {},
            "size": size_of(file),
            "modificationTime": int(time.time() * 1000),
            "dataChange": True,
            "stats": orjson.dumps({"numRecords": metadata_of(str(file)).num_rows}).decode(),
        }
    }


def _removed(path: str, size: int) -> Action:
    return {
        "remove": {
            "path": path,
            "deletionTimestamp": int(time.time() * 1000),
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": {},
            "size": size,
        }
    }


def _leaf(field: pa.Field) -> str:
    """The column of a Parquet file that holds a field, or the elements of a list."""
    return f"{field.name}.list.element" if pa.types.is_list(field.type) else str(field.name)


def _of_one_file(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches until a file is full."""
    yield first
    n = first.num_rows
    while n < FILE_ROWS and (batch := next(rest, None)) is not None:
        yield batch
        n += batch.num_rows


def _remove(paths: Iterable[Any]) -> None:
    for path in paths:
        if isinstance(path, Path) and path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
