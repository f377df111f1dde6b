"""A history as people see it: its repr, its visits as a table, and as it was known at a moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import recrawl.history.description
from recrawl.history import History
from recrawl.history.visit_table import VisitTable
from recrawl.report import export
from recrawl.web.visit import Visit

START = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.fixture
def history(tmp_path: Path) -> History:
    made = History.create(tmp_path / "h")
    for day in range(4):
        made.add(
            Visit(url=f"https://e.org/{page}", at=START + timedelta(days=day), links=[f"https://e.org/{day}"])
            for page in ("a", "b")
        )
    return History.open(tmp_path / "h")


def test_the_repr_says_what_a_history_holds(history: History) -> None:
    assert repr(history) == "History(8 visits to 2 pages, 2026-01-05 to 2026-01-08)"
    assert "timeline" not in history.__dict__
    assert history.timeline.n_visits == 8
    assert repr(history) == "History(8 visits to 2 pages, 2026-01-05 to 2026-01-08)"
    assert repr(history.as_of("2026-01-07")) == "History(4 visits to 2 pages, 2026-01-05 to 2026-01-06)"


def test_the_repr_of_a_large_history_reads_no_column(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recrawl.history.description, "FEW", 3)
    monkeypatch.setattr(history.store, "read", lambda *_: pytest.fail("a table was read"))
    assert repr(history) == "History(8 visits, 2026-01-05 to 2026-01-08)"
    assert repr(history.as_of("2026-01-07")) == "History(up to 2026-01-07 of 8 visits, 2026-01-05 to 2026-01-08)"


def test_the_repr_counts_a_visit_that_is_stored_twice_once(history: History) -> None:
    history.add([Visit(url="https://e.org/a", at=START, links=[f"https://e.org/{i}" for i in range(3)], title="more")])
    assert history.store.read("visits").num_rows == 9
    assert repr(history) == "History(8 visits to 2 pages, 2026-01-05 to 2026-01-08)"


def test_the_repr_of_a_damaged_history_says_so(history: History) -> None:
    for file in (history.folder / "visits").glob("*.parquet"):
        file.write_bytes(b"damaged")
    assert repr(history).startswith("History(cannot be read: cannot read the table")


def test_visits_are_a_table_for_pandas_and_arrow(history: History) -> None:
    table = history.as_of("2026-01-07").visits()
    assert (len(table), repr(table)) == (4, "VisitTable(4 visits)")
    frame = table.to_pandas()
    assert frame["url"].tolist() == sorted(["https://e.org/a", "https://e.org/b"] * 2, key=frame["url"].tolist().index)
    assert frame["n_new_previous"].fillna(-1).tolist() == [-1, 1, -1, 1]
    assert table.to_arrow().column_names[:4] == ["url", "at", "status", "outcome"]


def test_the_table_is_that_of_export_visits(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recrawl.history.visit_table.VISITS_AT_ONCE", 3)
    parts = list(export.visits(history))
    assert [part.num_rows for part in parts] == [3, 3, 2]
    assert VisitTable(history).to_arrow().num_rows == 8


@pytest.mark.parametrize("moment", ["2026-01-06T12:00:00Z", "2026-01-06T13:00+01:00", "2026-01-06T12:00"])
def test_a_moment_may_be_a_text(history: History, moment: str) -> None:
    assert history.as_of(moment).until == START + timedelta(days=1)
    assert history.as_of(moment).timeline.n_visits == 4


def test_a_moment_that_is_not_a_time_is_refused(history: History) -> None:
    with pytest.raises(ValueError, match="'last week' is not a time"):
        history.as_of("last week")
    with pytest.raises(ValueError, match="needs an aware time"):
        history.as_of(datetime(2026, 1, 6))
