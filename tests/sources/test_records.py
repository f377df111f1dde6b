"""The visit record as JSON lines, CSV and Parquet."""

from __future__ import annotations

import csv
import gzip
import io
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from making import AT, imported, jsonl, links, urls

TIME = "2026-01-02T03:04:05Z"
RECORDS = [
    {
        "url": "https://e.org/1",
        "at": TIME,
        "status": 200,
        "links": ["https://e.org/a", "https://f.org/"],
        "title": "One",
    },
    {"url": "https://e.org/2", "at": TIME, "status": 200, "links": [], "title": 'with "quotes", commas;\nand lines'},
    {"url": "https://e.org/3", "at": TIME, "status": 404, "links": None, "title": None},
]
LINKS = {"https://e.org/1": ["https://e.org/a", "https://f.org/"], "https://e.org/2": [], "https://e.org/3": None}


def as_csv(delimiter: str, join: str = "json", end: str = "\r\n") -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(RECORDS[0]), delimiter=delimiter, lineterminator=end)
    writer.writeheader()
    for record in RECORDS:
        found: Any = record["links"]
        cell = orjson.dumps(found).decode() if join == "json" or not found else " ".join(found)
        writer.writerow({**record, "links": "" if found is None else cell})
    return out.getvalue().encode()


def as_parquet(records: list[dict[str, Any]], **columns: pa.Array) -> bytes:
    table = pa.Table.from_pylist(records)
    for name, values in columns.items():
        table = (
            table.append_column(name, values)
            if name not in table.column_names
            else table.set_column(table.column_names.index(name), name, values)
        )
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


INPUTS = {
    "JSON lines": jsonl(RECORDS),
    "JSON lines with a mark and Windows line ends": b"\xef\xbb\xbf" + jsonl(RECORDS).replace(b"\n", b"\r\n"),
    "JSON lines without a last line end": jsonl(RECORDS).rstrip(),
    "JSON lines with empty lines": b"\n\n" + jsonl(RECORDS).replace(b"\n", b"\n \n"),
    "CSV with commas": as_csv(","),
    "CSV with semicolons": as_csv(";"),
    "CSV with tabs": as_csv("\t", end="\n"),
    "CSV with links parted by blanks": as_csv(",", join="blanks"),
    "CSV with a mark": b"\xef\xbb\xbf" + as_csv(","),
    "Parquet": as_parquet(RECORDS),
}


@pytest.mark.parametrize("packing", ["plain", "gz", "zst", "gz of two members"])
@pytest.mark.parametrize("kind", INPUTS)
def test_the_same_records_in_every_form_make_the_same_history(tmp_path: Path, kind: str, packing: str) -> None:
    if kind == "Parquet" and packing != "plain":
        pytest.skip("Parquet is compressed within")
    data = INPUTS[kind]
    half = len(data) // 2
    data = {
        "plain": lambda: data,
        "gz": lambda: gzip.compress(data),
        "zst": lambda: zstandard.ZstdCompressor().compress(data),
        "gz of two members": lambda: gzip.compress(data[:half]) + gzip.compress(data[half:]) + b"\0" * 512,
    }[packing]()
    report, history = imported(tmp_path, data)
    assert (report.added, report.pages, report.skipped, report.failed_inputs, report.unknown_fields) == (
        3,
        3,
        {},
        [],
        {},
    )
    assert links(history) == LINKS
    titles = dict(
        zip(history.timeline.rows["status"].to_pylist(), history.timeline.rows["title"].to_pylist(), strict=True)
    )
    assert titles[404] is None
    assert RECORDS[1]["title"] in history.timeline.rows["title"].to_pylist()


def test_unknown_columns_are_counted_and_named(tmp_path: Path) -> None:
    more = [{**record, "fetched_by": "x", "depth": 3} for record in RECORDS]
    report, _ = imported(
        tmp_path, jsonl(more), as_parquet(more), b"url,at,colour\nhttps://e.org/9,%s,red\n" % TIME.encode()
    )
    assert dict(report.unknown_fields) == {"fetched_by": 4, "depth": 4, "colour": 1}
    assert (report.added, report.duplicates) == (4, 3)


def test_unknown_columns_are_counted_across_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recrawl.history.ingest.COMMIT_VISITS", 2)
    report, _ = imported(tmp_path, jsonl({"url": f"https://e.org/{i}", "at": TIME, "extra": 1} for i in range(7)))
    assert (report.added, dict(report.unknown_fields)) == (7, {"extra": 7})


# -- bad lines --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (jsonl(RECORDS[:1])[:40], "not JSON"),
        (b'{"url": "https://e.org/\xff\xfe", "at": 1767323045}', "not JSON"),
        (b'{"url": "https://e.org/", "at": 1767323045, "title": "\\ud800"}', "not JSON"),  # half a character
        (b"[1, 2]", "not a JSON object"),
        (b"[" * 100_000, "not JSON"),
        (b'"text"', "not a JSON object"),
        (b"{}", "no url"),
        (b'{"url": "https://e.org/"}', "no time"),
        (b'{"url": "ftp://e.org/", "at": 1767323045}', "not an http or https URL"),
        (b'{"url": "nonsense", "at": 1767323045}', "not a URL"),
        (b'{"url": "https://e.org/", "at": "2026-01-02T03:04:05"}', "time without zone"),
        (b'{"url": "https://e.org/", "at": "2226-01-02T03:04:05Z"}', "time in the future"),
        (b'{"url": "https://e.org/", "at": "1970-01-02T03:04:05Z"}', "time before 1990"),
        (b'{"url": "https://e.org/", "at": 1767323045, "terms": [1]}', "terms is not an object"),
        (b'{"url": "https://e.org/", "at": 1767323045, "status": 70000}', "status out of range"),
        (b'{"url": "https://e.org/", "at": 1767323045, "vector": [1e39]}', "vector holds a number out of range"),
        (b'{"url": "https://e.org/", "at": 1767323045, "vector": ["1"]}', "vector is not a list of numbers"),
        (b'{"url": "https://e.org/", "at": 1767323045, "html": "%s"}' % (b"<div>" * 100_000), "too costly to parse"),
    ],
)
def test_a_line_that_cannot_be_used_is_counted_and_the_others_arrive(tmp_path: Path, line: bytes, reason: str) -> None:
    report, history = imported(tmp_path, jsonl(RECORDS[:1]) + b"\n" + line + b"\n" + jsonl(RECORDS[1:]))
    assert dict(report.skipped) == {reason: 1}
    assert report.examples[reason].startswith(f"{tmp_path}/input-0 line 3")
    assert urls(history) == sorted(LINKS)


def test_nul_bytes_and_odd_characters_arrive(tmp_path: Path) -> None:
    odd = {
        "url": "https://e.org/",
        "at": TIME,
        "title": "a\0b\u2028\U0001f600",
        "text": "\0",
        "note": "\ufffe",
        "links": ["https://e.org/\0"],
    }
    report, history = imported(tmp_path, jsonl([odd]))
    assert report.added == 1
    assert history.timeline.rows["title"].to_pylist() == [odd["title"]]


CSV = b"url,at,links,status\r\nhttps://e.org/1,%b,,200\r\n" % TIME.encode()


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"https://e.org/x", "wrong number of CSV cells"),
        (b"https://e.org/x,%b,[broken,200" % TIME.encode(), "not JSON in a CSV cell"),
        (b"https://e.org/x,%b,[5],200" % TIME.encode(), "links is not a list of texts"),
        (b"https://e.org/x,%b,,OK" % TIME.encode(), "status is not a whole number"),
        (b",%b,,200" % TIME.encode(), "no url"),
        (b"https://e.org/x,,,200", "unreadable time"),
    ],
)
def test_a_row_that_cannot_be_used_is_counted_and_the_others_arrive(tmp_path: Path, row: bytes, reason: str) -> None:
    report, history = imported(tmp_path, CSV + row + b"\r\nhttps://e.org/2,%b,,200\r\n" % TIME.encode())
    assert dict(report.skipped) == {reason: 1}
    assert urls(history) == ["https://e.org/1", "https://e.org/2"]


def test_nul_bytes_and_broken_characters_in_csv_cost_no_row(tmp_path: Path) -> None:
    report, _ = imported(
        tmp_path, b"url,at,title\nhttps://e.org/1,%b,a\0b\nhttps://e.org/2,%b,\xff\xfe\n" % ((TIME.encode(),) * 2)
    )
    assert (report.added, report.skipped) == (2, {})


def test_a_quote_that_is_never_closed_is_named(tmp_path: Path) -> None:
    report, history = imported(tmp_path, CSV + b'https://e.org/2,%b,"open,200\r\n' % TIME.encode())
    assert urls(history) == ["https://e.org/1"]
    assert sum(report.skipped.values()) == 1


# -- Parquet ----------------------------------------------------------------------------------------------------------

PAGES = [{"url": f"https://e.org/{i}"} for i in range(2)]


@pytest.mark.parametrize(
    "times",
    [
        pa.array([AT, AT], pa.timestamp("us", "UTC")),
        pa.array([AT, AT], pa.timestamp("s", "Europe/Amsterdam")),
        pa.array([1767323045 * 10**9 + 1] * 2, pa.timestamp("ns", "UTC")),
        pa.array([1767323045, 1767323045], pa.int64()),
        pa.array([1767323045.0, 1767323045.0], pa.float64()),
        pa.array([TIME, TIME]),
    ],
)
def test_times_in_parquet_may_have_any_type(tmp_path: Path, times: pa.Array) -> None:
    report, history = imported(tmp_path, as_parquet(PAGES, at=times))
    assert (report.added, report.skipped) == (2, {})
    assert history.timeline.at.tolist() == [1767323045 * 10**6] * 2


def test_parquet_times_without_zone_are_refused(tmp_path: Path) -> None:
    report, _ = imported(tmp_path, as_parquet(PAGES, at=pa.array([datetime(2026, 1, 2)] * 2, pa.timestamp("us"))))
    assert dict(report.skipped) == {"time without zone": 2}


def test_parquet_maps_lists_and_missing_values_arrive(tmp_path: Path) -> None:
    terms = pa.array([[("word", 2), ("other", 1)], None], pa.map_(pa.string(), pa.int32()))
    found = pa.array([["https://e.org/a"], None], pa.large_list(pa.large_string()))
    data = as_parquet(PAGES, at=pa.array([TIME, TIME]), terms=terms, links=found, status=pa.array([200.0, None]))
    report, history = imported(tmp_path, data)
    assert (report.added, report.skipped) == (2, {})
    assert links(history) == {"https://e.org/0": ["https://e.org/a"], "https://e.org/1": None}
    assert sorted(history.store.read("terms")["term"].to_pylist()) == ["other", "word"]


def test_a_parquet_row_that_cannot_be_decoded_costs_no_other_row(tmp_path: Path) -> None:
    bad = pa.array([b"fine", b"\xff\xfe"]).cast(pa.string(), safe=False)
    report, history = imported(tmp_path, as_parquet(PAGES, at=pa.array([TIME, TIME]), title=bad))
    assert dict(report.skipped) == {"unreadable Parquet row": 1}
    assert urls(history) == ["https://e.org/0"]


def test_damaged_and_foreign_parquet_is_refused_with_a_reason(tmp_path: Path) -> None:
    whole = as_parquet(RECORDS)
    damaged = whole[:20] + b"\xff" * 40 + whole[60:]
    foreign = as_parquet([{"a": 1}])
    report, _ = imported(tmp_path, whole[:-20], damaged, foreign, whole)
    assert report.added == 3
    assert len(report.failed_inputs) in (2, 3)
    assert "no columns url and at, but: a" in " ".join(report.failed_inputs)
    assert all("input-" in failure for failure in report.failed_inputs)
