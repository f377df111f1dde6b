"""Lost and damaged files of a history are noticed when it is opened, named, and can be repaired."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from recrawl.cli import app
from recrawl.errors import HistoryError
from recrawl.history import History
from recrawl.history.hints import HINTS
from recrawl.history.repair import repair
from recrawl.web.visit import Visit

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three imports of 25 visits each."""
    history = History.create(tmp_path / "h")
    for i in range(3):
        add(history, i)
    return tmp_path / "h"


def add(history: History, i: int) -> int:
    visits = [
        Visit(url=f"https://e.org/{k}", at=START + timedelta(days=i), status=200, links=[f"https://e.org/{i}/{k}"])
        for k in range(25)
    ]
    return history.add(visits).added


def log(folder: Path, table: str = "visits") -> list[Path]:
    return sorted((folder / table / "_delta_log").glob("*.json"))


def n_visits(folder: Path) -> int:
    return History.open(folder).timeline.n_visits


def n_urls(folder: Path) -> int:
    """Pages whose URLs are known; all tables are read."""
    history = History.open(folder)
    return len(history.urls_of(history.timeline.pages).drop_null())


@pytest.mark.parametrize("table", ["visits", "urls", "link_sets"])
@pytest.mark.parametrize("place", [-1, 1])
@pytest.mark.parametrize("how", ["empty", "missing", "cut"])
def test_a_damaged_commit_is_named_with_the_way_out_and_repaired(
    table: str, place: int, how: str, folder: Path
) -> None:
    entry = log(folder, table)[place]
    if how == "missing":
        entry.unlink()
    else:
        entry.write_bytes(b"" if how == "empty" else entry.read_bytes()[:-20])
    with pytest.raises(HistoryError, match=f"{entry.name} is .*recrawl repair --history") as error:
        n_urls(folder)
    assert table in str(error.value)
    (done,) = repair(folder)
    assert (done.table, done.lost) == (table, [])
    assert (n_visits(folder), n_urls(folder)) == (75, 25)
    assert add(History.open(folder), 7) == 25
    assert repair(folder) == []
    assert list((folder / table).glob("_delta_log.damaged-*"))


def test_without_the_first_commits_the_data_are_found_again(folder: Path) -> None:
    for entry in log(folder):
        entry.unlink()
    with pytest.raises(HistoryError, match="recrawl repair"):
        History.open(folder)
    repair(folder)
    assert n_visits(folder) == 75


def test_a_damaged_data_file_is_named_and_the_rest_counts(folder: Path) -> None:
    lost = sorted((folder / "visits").glob("*.parquet"))[1]
    lost.write_bytes(lost.read_bytes()[:100])
    with pytest.raises(HistoryError, match="recrawl repair"):
        n_visits(folder)
    result = CliRunner().invoke(app, ["repair", "--history", str(folder), "--json"])
    assert result.exit_code == 0
    (done,) = json.loads(result.stdout)
    assert done["lost"] == [str(lost)]
    assert n_visits(folder) == 50
    assert "nothing to repair" in CliRunner().invoke(app, ["repair", "--history", str(folder)]).stdout


def test_a_table_of_which_nothing_is_left_is_named_and_made_again(folder: Path) -> None:
    shutil.rmtree(folder / "vectors")
    with pytest.raises(HistoryError, match=r"vectors.*recrawl repair"):
        History.open(folder)
    (done,) = repair(folder)
    assert (done.table, done.n_files) == ("vectors", 0)
    assert n_visits(folder) == 75


@pytest.mark.parametrize("is_cut", [False, True])
def test_files_that_a_compaction_has_replaced_do_not_count_again(is_cut: bool, folder: Path) -> None:
    beside = History.open(folder).beside
    for _ in range(3):
        HINTS.append(beside, pa.Table.from_pylist([{}], HINTS.schema))
    with pytest.MonkeyPatch.context() as patch:  # killed before it removes them
        patch.setattr("recrawl.history.commits._remove", lambda paths: None)
        HINTS.compact(beside)
    assert len(list((folder / "hints").glob("*.parquet"))) == 4
    checkpoint = sorted((folder / "hints" / "_delta_log").glob("*.checkpoint.parquet"))[-1]
    checkpoint.write_bytes(b"damaged")
    if is_cut:  # within what it adds: nothing is known to have been replaced
        entry = log(folder, "hints")[-1]
        entry.write_bytes(entry.read_bytes().split(b'"partitionValues"')[0])
    repair(folder)
    assert HINTS.read(beside).num_rows == (6 if is_cut else 3)


def test_a_history_that_is_whole_is_left_alone(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    assert repair(folder) == []
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()} == before


def test_after_a_compaction_older_log_entries_may_be_gone(folder: Path) -> None:
    History.open(folder).compact()
    for entry in log(folder)[:-1]:
        entry.unlink(missing_ok=True)
    assert n_visits(folder) == 75


def test_histories_of_earlier_versions_have_no_noted_versions(folder: Path) -> None:
    (folder / "versions.json").unlink()
    assert n_visits(folder) == 75
    add(History.open(folder), 9)
    assert json.loads((folder / "versions.json").read_text())["visits"] == 4
