"""What is kept beside the visits, and that a history is made only when there is something to keep."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from commands import command
from making import jsonl
from recrawl.errors import HistoryError
from recrawl.history import History, summary
from recrawl.history.hints import HINTS
from recrawl.history.ingest import import_files
from recrawl.history.plans import stored
from recrawl.web.visit import Visit

AT = datetime(2026, 1, 5, tzinfo=UTC)
VISIT = Visit(url="https://e.org/", at=AT, links=["https://e.org/a"])


def test_files_are_kept_by_name(tmp_path: Path) -> None:
    beside = History.create(tmp_path / "h").beside
    assert (beside.exists("a.json"), beside.read_bytes("a.json")) == (False, None)
    beside.write_bytes("a.json", b"old")
    beside.write_bytes("a.json", b"new")
    assert (beside.exists("a.json"), beside.read_bytes("a.json")) == (True, b"new")
    assert History.open(tmp_path / "h").as_of(AT).beside.read_bytes("a.json") == b"new"
    beside.remove("a.json")
    beside.remove("a.json")
    assert not beside.exists("a.json")
    assert not [name for name in os.listdir(tmp_path / "h") if "a.json" in name]


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "/etc/passwd"])
def test_a_name_is_not_a_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not a plain file name"):
        History.create(tmp_path / "h").beside.read_bytes(name)


def test_a_file_that_cannot_be_written_is_a_history_error(tmp_path: Path) -> None:
    beside = History.create(tmp_path / "h").beside
    (tmp_path / "h" / "taken").mkdir()
    with pytest.raises(HistoryError, match=r"cannot write .*taken"):
        beside.write_bytes("taken", b"")


# -- a history that is not there yet ----------------------------------------------------------------------------------


def test_a_missing_history_is_made_with_the_first_visits(tmp_path: Path) -> None:
    history = History.open(tmp_path / "h", missing_ok=True)
    assert (repr(history), history.timeline.n_visits) == ("History(no visits)", 0)
    assert summary(history).pages == 0
    assert history.visits().to_arrow().num_rows == 0
    assert HINTS.read(history.beside).num_rows == stored(history.beside).num_rows == 0
    assert history.beside.read_bytes("tuned.json") is None
    history.compact()
    assert not (tmp_path / "h").exists()
    assert history.add([VISIT]).added == 1
    assert (history.timeline.n_visits, History.open(tmp_path / "h").timeline.n_visits) == (1, 1)


def test_a_missing_history_is_made_with_the_first_file_beside_it(tmp_path: Path) -> None:
    History.open(tmp_path / "files", missing_ok=True).beside.write_bytes("a.json", b"1")
    assert History.open(tmp_path / "files").beside.read_bytes("a.json") == b"1"
    row = {"kind": "feed", "source": "s", "host": "e.org", "page": 1, "read_at": AT, "changed_at": AT}
    HINTS.append(
        History.open(tmp_path / "rows", missing_ok=True).beside, pa.Table.from_pylist([row], schema=HINTS.schema)
    )
    assert HINTS.read(History.open(tmp_path / "rows").beside).num_rows == 1


def test_a_history_that_another_process_makes_meanwhile_is_seen(tmp_path: Path) -> None:
    early = History.open(tmp_path / "h", missing_ok=True)
    History.create(tmp_path / "h").add([VISIT])
    assert early.timeline.n_visits == 1
    assert early.add([VISIT]).duplicates == 1


def test_a_place_where_no_history_can_be_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(HistoryError, match="is a file"):
        History.open(tmp_path / "file", missing_ok=True)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("x")
    with pytest.raises(HistoryError, match="holds other files and is not a history"):
        History.open(tmp_path / "photos", missing_ok=True)


def test_an_import_that_reads_nothing_makes_no_history(tmp_path: Path) -> None:
    report = import_files(History.open(tmp_path / "h", missing_ok=True), [tmp_path / "missing.jsonl"])
    assert len(report.failed_inputs) == 1
    assert not (tmp_path / "h").exists()


def test_a_failed_import_of_a_missing_file_creates_no_history(tmp_path: Path) -> None:
    result = command("import", tmp_path / "missing.jsonl", "--history", tmp_path / "h")
    assert result.code == 1
    assert "No such file" in result.stderr
    assert not (tmp_path / "h").exists()
    (tmp_path / "visits.jsonl").write_bytes(jsonl([{"url": "https://e.org/", "at": AT.isoformat()}]))
    assert command("import", tmp_path / "visits.jsonl", "--history", tmp_path / "h").code == 0
    assert History.open(tmp_path / "h").timeline.n_visits == 1


# -- views of one history ---------------------------------------------------------------------------------------------


def test_a_detached_history_has_caches_of_its_own(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    history.add([VISIT])
    timeline = history.timeline
    other = history.detached()
    assert other.timeline is not timeline
    other.release()
    assert history.timeline is timeline
    assert history.as_of(AT).detached().until == AT
