"""How much a page matters comes with its visits, is kept apart from what they showed, and is known from then on."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from making import without_table
from recrawl.cli import app
from recrawl.errors import BadRecord
from recrawl.history import History, page_timeline, summary
from recrawl.history.importance import Statements, importance_of, statements
from recrawl.history.ingest import import_files
from recrawl.web.urls import page_id
from recrawl.web.visit import Visit, from_record

AT = datetime(2026, 1, 5, tzinfo=UTC)
REASON = "importance is not a number from 0 up"


def visit(page: str, day: int = 0, importance: float | None = None, status: int = 200) -> Visit:
    at = AT + timedelta(days=day)
    return Visit(url=f"https://e.org/{page}", at=at, status=status, links=[], importance=importance)


def of(history: History, *pages: str) -> list[float] | None:
    found = importance_of(history, np.array([page_id(f"https://e.org/{page}") for page in pages]))
    return None if found is None else found.tolist()


@pytest.mark.parametrize("value", [0, 3, 2.5, "7", "1e3", "0.25"])
def test_a_record_takes_numbers_from_0_up(value: Any) -> None:
    record = {"url": "https://e.org/", "at": "2026-01-05T00:00:00Z", "importance": value}
    assert from_record(record).importance == float(value)


@pytest.mark.parametrize(
    "value", [-1, "-0.5", "much", "nan", math.nan, math.inf, "inf", "1e999", [2], {}, True, 10**400]
)
def test_a_record_with_anything_else_is_refused_with_the_name_of_the_field(value: Any) -> None:
    with pytest.raises(BadRecord, match=REASON):
        from_record({"url": "https://e.org/", "at": "2026-01-05T00:00:00Z", "importance": value})


def test_an_absent_or_empty_value_says_nothing() -> None:
    for more in ({}, {"importance": None}, {"importance": ""}):
        assert from_record({"url": "https://e.org/", "at": "2026-01-05T00:00:00Z", **more}).importance is None


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_visits_of_programs_are_checked_as_well_and_nothing_of_a_wrong_one_is_taken(
    tmp_path: Path, wrong: float
) -> None:
    history = History.create(tmp_path)
    with pytest.raises(BadRecord, match=REASON):
        history.add([visit("a", importance=wrong)])
    assert history.timeline.n_visits == 0


def jsonl(path: Path, values: list[Any]) -> Path:
    records = [
        {"url": f"https://e.org/{i}", "at": AT.isoformat(), "importance": value} for i, value in enumerate(values)
    ]
    path.write_text("\n".join(json.dumps(record) for record in records))
    return path


def test_json_lines_bring_it_and_wrong_values_are_counted_and_named(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    report = import_files(history, [jsonl(tmp_path / "v.jsonl", [3, 0, 0.5, -2, "x", "inf", "nan", None])])
    assert (report.added, dict(report.skipped)) == (4, {REASON: 4})
    assert "line 4" in report.examples[REASON]
    assert "-2" in report.examples[REASON]
    assert of(history, "0", "1", "2", "7") == [3.0, 0.0, 0.5, 1.0]
    assert not report.unknown_fields


def test_csv_and_parquet_bring_it(tmp_path: Path) -> None:
    table = tmp_path / "v.csv"
    rows = [
        f"https://e.org/{i},{AT.isoformat()},{cell}" for i, cell in enumerate(["3", "", "-1", "nan", "inf", "x", "2e0"])
    ]
    table.write_text("\n".join(["url,at,importance", *rows]))
    history = History.create(tmp_path / "csv")
    report = import_files(history, [table])
    assert (report.added, dict(report.skipped)) == (3, {REASON: 4})
    assert of(history, "0", "1", "6") == [3.0, 1.0, 2.0]
    columns = {
        "url": [f"https://e.org/{i}" for i in range(4)],
        "at": [AT] * 4,
        "importance": pa.array([4.0, None, math.nan, -1.0]),
    }
    pq.write_table(pa.table(columns), tmp_path / "v.parquet")
    history = History.create(tmp_path / "parquet")
    report = import_files(history, [tmp_path / "v.parquet"])
    assert (report.added, dict(report.skipped)) == (2, {REASON: 2})
    assert of(history, "0", "1") == [4.0, 1.0]


def test_it_holds_until_the_next_statement_and_failures_state_it_too(tmp_path: Path) -> None:
    history = History.create(tmp_path)
    history.add(
        [visit("a"), visit("a", 1, 5.0), visit("a", 2), visit("a", 3, 2.0, status=500), visit("a", 4), visit("b", 4)]
    )
    known = [of(history.as_of(AT + timedelta(days=day)), "a", "b") for day in range(5)]
    assert known == [None, [5.0, 1.0], [5.0, 1.0], [2.0, 1.0], [2.0, 1.0]]
    history.add([visit("a", 5, 1.0)])
    assert of(history, "a", "b") is None  # all matter alike again


def test_of_several_for_one_visit_the_greatest_counts_whatever_the_order(tmp_path: Path) -> None:
    for i, order in enumerate(permutations([2.0, 9.0, 0.0])):
        history = History.create(tmp_path / str(i))
        for importance in order:
            history.add([visit("a", importance=importance)])
        history.compact()
        assert of(history, "a") == [9.0]


def test_a_visit_that_is_known_already_may_still_get_one(tmp_path: Path) -> None:
    history = History.create(tmp_path)
    history.add([visit("a"), visit("a", 1)])
    receipt = history.add([visit("a", 1, 4.0)])
    assert (receipt.added, receipt.duplicates) == (0, 1)
    assert of(history, "a") == [4.0]
    history.add([visit("a", 1, 4.0)])
    assert history.store.read("importance").num_rows == 1  # stated twice, kept once


def test_histories_made_before_have_no_table_for_it_and_get_one_when_it_is_needed(tmp_path: Path) -> None:
    history = History.create(tmp_path)
    history.add([visit("a")])
    without_table(tmp_path, "importance")
    history = History.open(tmp_path)
    assert of(history, "a") is None
    assert history.visits().to_arrow()["importance"].to_pylist() == [None]
    history.add([visit("a", 1, 3.0)])
    history.compact()
    assert of(History.open(tmp_path), "a") == [3.0]


def test_statements_are_found_as_by_a_plain_search() -> None:
    chance = np.random.default_rng(3)
    for n in (1, 5, 200):
        keys = sorted({(int(p), int(t)) for p, t in chance.integers(-4, 5, (n, 2))})
        page, at = np.array(keys, np.int64).T
        said = Statements(page=page, at=at, importance=chance.integers(0, 9, len(keys)).astype(float))
        pages, times = chance.integers(-5, 6, (2, 300))
        for p, t, held, stated, newest in zip(
            pages, times, said.in_force(pages, times), said.stated_at(pages, times), said.newest(pages), strict=True
        ):
            earlier = [w for q, u, w in zip(page, at, said.importance, strict=True) if q == p and u <= t]
            assert held == (earlier[-1] if earlier else 1.0)
            now = [w for q, u, w in zip(page, at, said.importance, strict=True) if (q, u) == (p, t)]
            assert stated == now[0] if now else np.isnan(stated)
            ever = [w for q, w in zip(page, said.importance, strict=True) if q == p]
            assert newest == (ever[-1] if ever else 1.0)


def test_most_histories_state_nothing(tmp_path: Path) -> None:
    history = History.create(tmp_path)
    history.add([visit("a")])
    assert statements(history) is None
    assert summary(history).pages_with_importance == 0


def test_people_see_it(tmp_path: Path) -> None:
    history = History.create(tmp_path)
    history.add([visit("a"), visit("a", 1, 3.5), visit("a", 2), visit("b", importance=1.0), visit("c")])
    story = page_timeline(history, "https://e.org/a")
    assert ([each.importance for each in story.visits], story.importance) == ([None, 3.5, None], 3.5)
    assert page_timeline(history, "https://e.org/c").importance == 1.0
    by_url = history.visits().to_arrow().select(["url", "importance"]).to_pylist()
    assert [row["importance"] for row in by_url if row["url"].endswith("/a")] == [None, 3.5, None]
    run = CliRunner().invoke
    where = ["--history", str(tmp_path)]
    assert "importance 3.5" in run(app, ["show", "https://e.org/a", *where]).output
    assert "importance" not in run(app, ["show", "https://e.org/c", *where]).output
    assert "pages with an importance: 2" in run(app, ["info", *where]).output
    assert json.loads(run(app, ["info", "--json", *where]).output)["pages_with_importance"] == 2
    exported = [json.loads(line) for line in run(app, ["export", "visits", *where]).output.splitlines()]
    assert sorted(row["importance"] for row in exported if row["importance"] is not None) == [1.0, 3.5]
