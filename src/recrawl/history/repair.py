"""A history whose logs are damaged, put in order: what its data files hold counts again.

The log of a damaged table is set aside, and a new one names all data files that can be read, but for those that a compaction has
replaced.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from deltalake.exceptions import DeltaError

from recrawl.core.files import sync
from recrawl.core.places import Place
from recrawl.errors import HistoryError
from recrawl.history.commits import DurableTable, paths_in
from recrawl.history.delta import LOG, data_files, metadata_of
from recrawl.history.folder_check import check_format, note_versions, noted_versions
from recrawl.history.hints import HINTS
from recrawl.history.log_check import damage
from recrawl.history.object_commits import durable_table
from recrawl.history.opened import open_table
from recrawl.history.plans import PLANS_TABLE
from recrawl.history.schema import TABLES
from recrawl.history.watching import WATCHING


@dataclass
class Repaired:
    """What was wrong with a table, and what was done."""

    table: str
    wrong: str
    n_files: int = 0  # that count again
    n_rows: int = 0
    lost: list[str] = field(default_factory=list)  # files that cannot be read


def repair(folder: Place) -> list[Repaired]:
    """Put the damaged tables of a history in order; those that are whole are left alone."""
    check_format(folder)
    if not isinstance(folder, Path):
        raise HistoryError(f"{folder} is in an object store; copy it to a disk, repair the copy, and put it back")
    versions = noted_versions(folder)
    try:
        found = [_repaired(each, versions.get(each.folder.name, -1)) for each in _tables(folder)]
    except OSError as error:
        raise HistoryError(f"cannot repair the history {folder}: {error.strerror or error}") from error
    done = [each for each in found if each is not None]
    if done:
        note_versions(folder, reset=True)
    return done


def _tables(folder: Path) -> list[DurableTable]:
    beside = (DurableTable(folder / each.name, each.schema) for each in (HINTS, PLANS_TABLE, WATCHING))
    return [*(durable_table(folder, name) for name in TABLES), *beside]


def _repaired(table: DurableTable, at_least: int) -> Repaired | None:
    if at_least < 0 and _is_bare(table.folder):
        return None
    wrong = damage(table.folder, at_least, thorough=True) or _unreadable(table.folder)
    if wrong is None:
        return None
    n_rows = {file: _n_rows(file) for file in sorted(table.folder.glob("*.parquet"))}
    readable = {file: n for file, n in n_rows.items() if n is not None}
    for file in _replaced(table.folder / LOG, readable.keys()):
        readable.pop(file, None)
    lost = [str(file) for file, n in n_rows.items() if n is None]
    done = Repaired(table.folder.name, wrong, len(readable), sum(readable.values()), lost)
    if (table.folder / LOG).exists():
        aside = f"{LOG}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
        os.rename(table.folder / LOG, table.folder / aside)
        sync(table.folder)
    table.create()
    table.adopt(list(readable))
    return done


def _replaced(log: Path, readable: Collection[Path]) -> set[Path]:
    """Files that log entries name as replaced, where all that replaced them can be read: a compaction had yet to remove them."""
    replaced = set[Path]()
    for entry in log.glob("*.json"):
        added, removed = paths_in(entry)
        if added and {log.parent / path for path in added} <= set(readable):
            replaced |= {log.parent / path for path in removed}
    return replaced


def _is_bare(folder: Path) -> bool:
    """Whether a table was not made yet: the next writer makes it."""
    return not any(folder.glob("*.parquet")) and not any(folder.glob(f"{LOG}/*"))


def _unreadable(folder: Path) -> str | None:
    """What the engine says of a table that it cannot read, or a file that is missing or damaged."""
    try:
        files = data_files(open_table(folder), folder)
    except (DeltaError, OSError) as error:
        return f"{folder / LOG} cannot be read: {str(error).strip().splitlines()[0]}"
    return next((f"{file} is missing or damaged" for file in files if _n_rows(Path(file)) is None), None)


def _n_rows(file: Path) -> int | None:
    """How many rows a data file has; None where it is missing or damaged."""
    try:
        return int(metadata_of(str(file)).num_rows)
    except (OSError, pa.ArrowException):
        return None
