"""The history on disk: one Delta Lake table per kind of row, appended to so that a visit's commit is the receipt.

Appends of several processes do not conflict, and one that meets a compaction starts again. A crash between two commits
leaves link sets or URLs that no visit points at yet; importing again completes them. Rows that are there already are not
written again; should two writers race and both write one, readers and `compact` keep it once.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from recrawl.core.arrays import Flags, Ints
from recrawl.core.places import Place, make_folder
from recrawl.errors import HistoryError
from recrawl.history.buckets import bucket_in, checked, layout_of
from recrawl.history.commits import PART, Conflict, DurableTable
from recrawl.history.delta import data_files, dataset, is_table, n_bytes_of, read_file
from recrawl.history.folder_check import (
    MARKER,
    check_format,
    check_logs,
    check_place,
    damaged,
    first_line,
    note_versions,
    write_marker,
)
from recrawl.history.keys import Keys, KnownIds, best_rows, ranges_of, settle, unique_rows, visit_keys
from recrawl.history.layout import Layout
from recrawl.history.log_check import damage
from recrawl.history.object_commits import durable_table
from recrawl.history.opened import open_table
from recrawl.history.row_groups import RowGroup, row_groups
from recrawl.history.schema import KEY, LATER, TABLES, VISITS, Batch
from recrawl.history.url_lookup import look_up

T = TypeVar("T")
#: As they are read: the texts of a large history do not fit 32-bit offsets.
_WIDE = {
    name: pa.schema([field.with_type(pa.large_string()) if field.type == pa.string() else field for field in schema])
    for name, schema in TABLES.items()
}
#: What compaction holds in memory, at most (about); bytes as on disk.
ROWS_AT_ONCE, BYTES_AT_ONCE = 8_000_000, 256 << 20
CONFLICTS = 1000  #: how often to start again when another process has written to a table meanwhile
TRIES = 20  #: how often to start again when another process has compacted a table meanwhile


@dataclass(frozen=True)
class Appended:
    """The receipt of an append: these visits are on disk."""

    added: int
    duplicates: int  # the history already had a visit of that page at that moment
    replaced: int  # duplicates that hold more than the row already there, and now count instead of it


class FilesReplaced(Exception):
    """A compaction has replaced files of a table that were to be read again."""


class Store:
    """The tables of one history directory."""

    part = ""  #: which part of the history this is, in words; empty: all of it

    def __init__(self, folder: Place, *, missing_ok: bool = False) -> None:
        self.folder = folder
        self._known = {name: KnownIds() for name in KEY}
        self._visit_files: set[str] = set()
        self._visit_runs: list[Keys] = []  # sorted by page and time
        try:
            self._is_made = (folder / MARKER).is_file() or not missing_ok
            if self._is_made:
                check_format(folder)
                check_logs(folder)
            else:
                check_place(folder)
        except OSError as error:
            raise HistoryError(f"cannot open the history {folder}: {first_line(error)}") from error

    @classmethod
    def create(cls, folder: Place) -> Store:
        """The store in this folder, made if it is not there yet."""
        store = cls(folder, missing_ok=True)
        store.make()
        return store

    def make(self) -> None:
        """Make the tables where they are missing; safe when several processes do so at once."""
        try:
            make_folder(self.folder)
            for name in TABLES:
                self._durable(name).create()
            write_marker(self.folder)
        except (OSError, DeltaError) as error:
            raise HistoryError(f"cannot write the history {self.folder}: {first_line(error)}") from error
        check_format(self.folder)
        self._is_made = True

    def make_if_missing(self) -> None:
        """Make the tables of a store that was opened before it was there."""
        if not self._is_made:
            self.make()

    def append(self, batch: Batch) -> Appended:
        """Write what is not there yet. When this returns, the visits are safe."""
        self.make_if_missing()
        try:
            for name, key in KEY.items():
                _despite_compaction(partial(self._append_missing, name, key, batch.get(name)))
            appended = _despite_compaction(partial(self._append_visits, batch["visits"]))
            note_versions(self.folder)
            return appended
        except (OSError, DeltaError, pa.ArrowException) as error:
            raise HistoryError(
                f"cannot write the history {self.folder}: {first_line(error)}. All visits reported so far are safe; "
                "remove the cause and run the same command again: what is there already is not added twice."
            ) from error

    def read(self, name: str, columns: list[str] | None = None, where: ds.Expression | None = None) -> pa.Table:
        """Rows of one table, as they are on disk."""
        return self._read(name, lambda files: self._dataset(name, files).to_table(columns=columns, filter=where))

    def read_at_once(
        self, name: str, work: Callable[[ds.Dataset], T], only: frozenset[str] | None = None
    ) -> tuple[T, tuple[str, ...]]:
        """The result of the work on the rows of one table as it is now, and the names of the files that hold them.

        `only`: those in files of these names, as it was when they were read before; raises `FilesReplaced` where one is gone.
        """

        def read(files: list[str]) -> tuple[T, tuple[str, ...]]:
            if only is not None:
                files = [file for file in files if os.path.basename(file) in only]
                if len(files) < len(only):
                    raise FilesReplaced(name)
            return work(self._dataset(name, files)), tuple(sorted(map(os.path.basename, files)))

        return self._read(name, read)

    def scan(self, name: str, work: Callable[[list[RowGroup]], T]) -> T:
        """The result of the work on the row groups of a table; it starts again if a compaction replaces them meanwhile."""
        return self._read(name, lambda files: work(self._row_groups(name, files)))

    def look_up(self, ids: Ints) -> pa.Array:
        """The URLs of pages and links; null where an id is not known."""
        return self.scan("urls", partial(look_up, ids))

    def _dataset(self, name: str, files: list[str]) -> ds.Dataset:
        return dataset(files, _WIDE[name])

    def _row_groups(self, name: str, files: list[str]) -> list[RowGroup]:
        return row_groups(files)

    def _read(self, name: str, work: Callable[[list[str]], T]) -> T:
        try:
            return _despite_compaction(lambda: work(self.files(name)))
        except (OSError, DeltaError, pa.ArrowException) as error:
            wrong = None
            with suppress(OSError):  # a store that does not answer
                wrong = damage(self.folder / name, thorough=True)
            if isinstance(error, OSError) and not isinstance(self.folder, Path):
                raise HistoryError(f"cannot read the table {self.folder / name}: {first_line(error)}") from error
            wrong = wrong or f"cannot read the table {self.folder / name}: {first_line(error)}"
            raise HistoryError(damaged(self.folder, wrong)) from error

    def layout(self) -> int | None:
        """The number of buckets that the visits are laid out in; None: they are not."""
        return layout_of(self.files("visits"))

    def n_unlaid(self) -> int:
        """How many files of visits came since they were laid out; 0 where they never were."""
        files = self.files("visits")
        n = layout_of(files)
        return 0 if n is None else sum(bucket_in(file) is None for file in files)

    def size_in_bytes(self) -> dict[str, int]:
        """Bytes of live data per table."""
        return _despite_compaction(lambda: {name: n_bytes_of(self.files(name)) for name in TABLES})

    def n_files(self) -> dict[str, int]:
        """Live data files per table."""
        return {name: len(self.files(name)) for name in TABLES}

    def compact(self, buckets: int | None = None) -> None:
        """Rewrite every table sorted and without repeated rows, and delete the files this makes superfluous.

        Rows that others append meanwhile stay: an overwrite replaces only the files it has read. `buckets`: how many to lay it out
        in; 0: none; None: as many as it is laid out in.
        """
        n = checked(buckets) if buckets else buckets
        try:
            if n := self.layout() if n is None else n:
                self._lay_out(n)
            else:
                for name in filter(self._is_there, TABLES):
                    _despite_compaction(partial(self._compact, name))
            if self._is_made:
                note_versions(self.folder)
        except (OSError, DeltaError, pa.ArrowException) as error:
            raise HistoryError(
                f"cannot compact the history {self.folder}: {first_line(error)}; nothing was lost"
            ) from error

    def _compact(self, name: str) -> None:
        table = self._open(name)
        batches = self._sorted_batches(name, data_files(table, self.folder / name))
        self._durable(name).rewrite([(PART, batches)], table)

    def _lay_out(self, n: int) -> None:
        layout = Layout(folder=self.folder, n=n, rows_at_once=ROWS_AT_ONCE, bytes_at_once=BYTES_AT_ONCE)
        names = list(filter(self._is_there, TABLES))
        if names:
            _despite_compaction(layout.lay_out_urls)
            _despite_compaction(partial(self._compact, "terms"))
            _despite_compaction(partial(layout.lay_out_visits, names))

    def _sorted_batches(self, name: str, files: list[str]) -> Iterator[pa.RecordBatch]:
        key = "page" if name == "visits" else KEY[name]
        rows, n_bytes = dataset(files, TABLES[name]), n_bytes_of(files)
        n_parts = max(1, -(-rows.count_rows() // ROWS_AT_ONCE), -(-n_bytes // BYTES_AT_ONCE)) if files else 0
        for where in ranges_of(key, n_parts):
            part = rows.to_table(filter=where)
            yield from part.take(unique_rows(name, part)).combine_chunks().to_batches(max_chunksize=131_072)

    def _durable(self, name: str) -> DurableTable:
        return durable_table(self.folder, name)

    def _open(self, name: str) -> DeltaTable:
        return open_table(self.folder / name)

    def _is_there(self, name: str) -> bool:
        return (self._is_made and name not in LATER) or is_table(self.folder / name)

    def files(self, name: str) -> list[str]:
        """The files that make up a table now; none where it was never written."""
        return data_files(self._open(name), self.folder / name) if self._is_there(name) else []

    def _append_missing(self, name: str, key: str, rows: pa.Table | None) -> None:
        if rows is None or not rows.num_rows:
            return
        known = self._known[name]
        if not self._is_there(name):
            self._durable(name).create()
        table = self._open(name)
        known.read_new(
            data_files(table, self.folder / name), lambda file: read_file(file, columns=[key])[key].to_numpy()
        )
        keys = rows[key].to_numpy()
        missing = ~known.holds(keys)
        first = np.zeros(len(keys), np.bool_)
        first[np.unique(keys, return_index=True)[1]] = True
        missing &= first
        if missing.any():
            self._durable(name).append(rows.filter(pa.array(missing)), table)
            known.add(keys[missing])

    def _append_visits(self, rows: pa.Table) -> Appended:
        table = self._open("visits")
        self._read_visit_keys(data_files(table, self.folder / "visits"))
        n_read = rows.num_rows
        page, at, rank = visit_keys(rows)
        rows = rows.take(pa.array(best := best_rows(page, at, lambda: rank)))
        page, at, rank = page[best], at[best], rank[best]
        is_known, known_rank = self._known_visits(page, at)
        fresh = ~is_known
        better = is_known & (rank > known_rank)
        if (fresh | better).any():
            self._durable("visits").append(rows.filter(pa.array(fresh | better)), table)
        added, replaced = int(fresh.sum()), int(better.sum())
        return Appended(added, n_read - added, replaced)

    def _read_visit_keys(self, files: list[str]) -> None:
        for file in files:
            if file not in self._visit_files:
                self._visit_runs.append(_sorted_keys([visit_keys(read_file(file, schema=VISITS))]))
                self._visit_files.add(file)
                settle(self._visit_runs, lambda run: len(run[0]), _sorted_keys)

    def _known_visits(self, page: Ints, at: Ints) -> tuple[Flags, Ints]:
        """Whether each (page, at) is there already, and with which precedence."""
        is_known, rank = np.zeros(len(page), np.bool_), np.full(len(page), -1, np.int64)
        for run in self._visit_runs:
            in_run, rank_in_run = _find(run, page, at)
            is_known |= in_run
            rank = np.where(in_run, np.maximum(rank, rank_in_run), rank)
        return is_known, rank


def _sorted_keys(parts: list[Keys]) -> Keys:
    page, at, rank = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = best_rows(page, at, lambda: rank)
    return page[order], at[order], rank[order]


def _find(keys: Keys, page: Ints, at: Ints) -> tuple[Flags, Ints]:
    """Whether each (page, at) is among the sorted keys, and with which precedence."""
    low = np.searchsorted(keys[0], page, "left")
    end = np.searchsorted(keys[0], page, "right")
    high = end.copy()
    while (open_ := low < high).any():  # one binary search for all of them at once
        middle = (low + high) // 2
        before = np.zeros(len(page), np.bool_)
        before[open_] = keys[1][middle[open_]] < at[open_]
        low = np.where(open_ & before, middle + 1, low)
        high = np.where(open_ & ~before, middle, high)
    is_there = low < end
    is_there[is_there] = keys[1][low[is_there]] == at[is_there]
    rank = np.zeros(len(page), np.int64)
    rank[is_there] = keys[2][low[is_there]]
    return is_there, rank


def _despite_compaction(work: Callable[[], T]) -> T:
    """Do work on a table, and again if another process has meanwhile replaced the files it looked at, or added to them."""
    attempt = n_conflicts = 0
    while True:
        try:
            return work()
        except Conflict:  # another writer made progress
            n_conflicts += 1
            if n_conflicts == CONFLICTS:
                raise
        except (FileNotFoundError, DeltaError) as error:
            attempt += 1
            if attempt == TRIES or not _was_compacted(error):
                raise
        time.sleep(0.01 * 2 ** min(attempt, 6) * random.random())


def _was_compacted(error: Exception) -> bool:
    """Whether files were replaced meanwhile; a writer that reads them wraps the error, and keeps only its text."""
    gone = ("FileNotFoundError", "No such file")
    return isinstance(error, FileNotFoundError | CommitFailedError) or any(text in str(error) for text in gone)


def trap_ids(store: Store) -> Ints:
    """The ids of the URLs that look like crawler traps, seen or not."""
    ids: Ints = store.read("urls", ["id"], ds.field("trap"))["id"].to_numpy()
    return ids
