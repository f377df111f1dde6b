"""Commits to a Delta table in an object store.

A store keeps an object whole or not at all, and puts it only if its name is free when asked to (a conditional put). So there are no
drafts and nothing is synced: an object is safe when the store says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from recrawl.core.places import ObjectPath, Place, located
from recrawl.history.commits import ABANDONED, Action, DurableTable, entry_bytes, first_actions
from recrawl.history.delta import entry_name, is_table, load
from recrawl.history.schema import KEY, TABLES


@dataclass(frozen=True)
class ObjectTable(DurableTable):
    """The commits of a Delta table below a prefix of an object store."""

    def create(self) -> None:
        """Make the table if it is not there; safe when several processes do so at once."""
        if not is_table(self.folder):
            self._commit(0, first_actions(self.schema))  # or another process was quicker

    def checkpoint(self) -> None:
        """Put the state of the newest version in one object."""
        load(self.folder).create_checkpoint()

    def _commit(self, version: int, actions: list[Action]) -> bool:
        entry, lines = self._log / entry_name(version), entry_bytes(actions)
        # A put whose answer was lost is tried again, and finds its own object.
        return bool(entry.create_bytes(lines) or entry.read_bytes() == lines)

    def _write(self, file: Any, batches: Iterable[pa.RecordBatch]) -> None:
        system, path = located(file)
        with system.open_output_stream(path) as stream:
            self._write_to(stream, batches)

    def _sync(self, path: Any) -> None:
        """An object is safe when it was put."""

    def _give_up(self, files: list[Any], version: int) -> None:
        """Remove nothing: a put that seems to have failed may still arrive, and name them. `_tidy` removes what no entry names."""

    def _tidy(self) -> None:
        """Remove data files that killed writers have left, by the clock of the store."""
        kept = {uri.rpartition("/")[2] for uri in load(self.folder).file_uris()}
        before = max((each.modified for each in self._log.entries()), default=0.0) - ABANDONED
        for each in self.folder.entries():
            if each.name.endswith(".parquet") and quote(each.name) not in kept and each.modified < before:
                (self.folder / each.name).unlink()

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder on a disk of this machine."""
        with TemporaryDirectory() as scratch:
            yield Path(scratch)


def table_in(folder: Place, schema: pa.Schema, **about: Any) -> DurableTable:
    """The commits of the table in a folder or below a prefix."""
    kind = ObjectTable if isinstance(folder, ObjectPath) else DurableTable
    return kind(folder, schema, **about)


def durable_table(folder: Place, name: str) -> DurableTable:
    """The commits of one of the tables of a history."""
    # Ids are hashes: no dictionary or run length helps, except in visits, where a page's rows are together once compacted.
    return table_in(folder / name, TABLES[name], plain=KEY.get(name))
