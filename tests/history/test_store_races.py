"""A file that another process has compacted away is looked for again, and no commit is made where others have gone on."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake.exceptions import CommitFailedError, DeltaError

from recrawl.history import History
from recrawl.history.commits import Conflict, DurableTable
from recrawl.history.delta import LOG, entry_name, load
from recrawl.history.object_commits import durable_table
from recrawl.history.schema import TABLES
from recrawl.history.store import _despite_compaction
from recrawl.web.visit import Visit

WRAPPED = "Generic DeltaTable error: C Data interface error: IOError: part-0.parquet. Detail: raise FileNotFoundError(info.path)"


@pytest.mark.parametrize("error", [FileNotFoundError("part"), CommitFailedError("raced"), DeltaError(WRAPPED)])
def test_work_that_met_a_compaction_is_done_again(error: Exception) -> None:
    errors = [error]

    def work() -> str:
        if errors:
            raise errors.pop()
        return "done"

    assert _despite_compaction(work) == "done"


def test_a_table_that_is_always_written_to_is_an_error_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recrawl.history.store.CONFLICTS", 5)
    calls = []

    def work() -> None:
        calls.append(1)
        raise Conflict("another process has written version 7")

    with pytest.raises(Conflict):
        _despite_compaction(work)
    assert len(calls) == 5


def test_other_errors_are_not_repeated() -> None:
    calls = []

    def work() -> None:
        calls.append(1)
        raise DeltaError("the table is damaged")

    with pytest.raises(DeltaError, match="damaged"):
        _despite_compaction(work)
    assert len(calls) == 1


def test_a_writer_that_was_held_up_for_an_hour_starts_again(tmp_path: Path) -> None:
    """Others have compacted meanwhile, and the names of their log entries are free again: no one would read what takes them."""

    def visit(day: int) -> Visit:
        return Visit(url="https://e.org/", at=datetime(2026, 1, 1 + day, tzinfo=UTC), links=[f"https://e.org/{day}"])

    history = History.create(tmp_path)
    history.add([visit(0)])
    held_up = load(tmp_path / "visits")
    rows = history.store.read("visits").cast(TABLES["visits"])
    for day in range(1, 7):
        history.add([visit(day)])
        if day % 3 == 0:
            for entry in (tmp_path / "visits" / LOG).glob("*.json"):
                os.utime(entry, (0, 0))
            history.compact()
    names = {path.name for path in (tmp_path / "visits" / LOG).iterdir()}
    assert entry_name(held_up.version() + 1) not in names  # its name is free
    table = durable_table(tmp_path, "visits")
    with pytest.raises(Conflict, match="and later ones"):
        table.append(rows, held_up)
    assert {path.name for path in (tmp_path / "visits" / LOG).iterdir()} == names
    table.append(rows, load(tmp_path / "visits"))  # in time
    assert History.open(tmp_path).store.read("visits").num_rows == 8


def test_a_checkpoint_that_comes_just_after_a_commit_does_not_undo_it(tmp_path: Path) -> None:
    history = History.create(tmp_path)
    history.add([Visit(url="https://e.org/", at=datetime(2026, 1, 1, tzinfo=UTC), links=[])])
    table = durable_table(tmp_path, "visits")
    commit = DurableTable._commit

    def commit_and_compact(durable: DurableTable, version: int, actions: list[Any]) -> bool:
        done = commit(durable, version, actions)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(DurableTable, "_commit", commit)
            History.open(tmp_path).compact()
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DurableTable, "_commit", commit_and_compact)
        table.append(history.store.read("visits").cast(TABLES["visits"]), load(tmp_path / "visits"))
    assert History.open(tmp_path).timeline.n_visits == 1
