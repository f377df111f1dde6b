"""WACZ files, whole, damaged and dishonest."""

from __future__ import annotations

import io
import json
import random
import zipfile
from pathlib import Path

import pytest

from making import http, imported, last_parts, packed, page_record, record


def wacz(*warcs: bytes, compression: int = zipfile.ZIP_STORED, folder: str = "archive") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        archive.writestr("datapackage.json", json.dumps({"profile": "data-package", "wacz_version": "1.1.1"}))
        archive.writestr("pages/pages.jsonl", '{"format": "json-pages-1.0"}\n')
        archive.writestr("indexes/index.cdx.gz", b"not read")
        for i, data in enumerate(warcs):
            archive.writestr(f"{folder}/{i}.warc.gz", data)
    return out.getvalue()


A, B = packed([page_record(i) for i in range(3)], "gz"), packed([page_record(i) for i in range(3, 5)], "gz")


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_all_warc_files_of_a_wacz_are_read(tmp_path: Path, compression: int) -> None:
    report, history = imported(tmp_path, wacz(A, B, compression=compression))
    assert (report.added, report.skipped) == (5, {})
    assert last_parts(history) == "01234"


def test_a_damaged_entry_costs_its_damaged_part_only(tmp_path: Path) -> None:
    noise = [
        record(f"https://e.org/{i}", http(random.Random(i).randbytes(9000), content_type="image/png")) for i in range(5)
    ]
    first = packed(noise, "gz")
    data = bytearray(wacz(first, packed([page_record(9)], "gz")))
    middle = bytes(data).index(first) + len(first) // 2
    data[middle : middle + 8] = bytes(8)
    report, history = imported(tmp_path, bytes(data))
    assert last_parts(history) == "0139"  # the zip's own checksum is known only with its last bytes, which go with it
    assert dict(report.skipped) == {"broken WARC record": 2, "broken WACZ entry": 1}


def test_a_truncated_wacz_is_refused_with_a_reason(tmp_path: Path) -> None:
    report, _ = imported(tmp_path, wacz(A, B)[:-30])
    assert report.added == 0
    assert "the WACZ file is damaged" in report.failed_inputs[0]


def test_a_zip_without_warc_files_is_refused(tmp_path: Path) -> None:
    report, _ = imported(tmp_path, wacz())
    assert "it is not a WACZ file" in report.failed_inputs[0]


def test_paths_that_climb_out_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    report, history = imported(tmp_path, wacz(A, folder="archive/../../.."), wacz(B))
    assert dict(report.skipped) == {"WACZ entry with a path that climbs out": 1}
    assert last_parts(history) == "34"
    assert {path.name for path in tmp_path.iterdir()} == {"history", "input-0", "input-1"}


def test_a_zip_bomb_is_refused(tmp_path: Path) -> None:
    report, _ = imported(tmp_path, wacz(bytes(64 << 20), compression=zipfile.ZIP_DEFLATED))
    assert dict(report.skipped) == {"WACZ entry unpacks too far": 1}


def test_a_wacz_of_requests_says_what_it_holds(tmp_path: Path) -> None:
    asked = record("https://e.org/", b"GET / HTTP/1.0\r\n\r\n", "request")
    report, _ = imported(tmp_path, wacz(packed([asked, asked], "gz"), packed([asked], "gz")))
    (note,) = report.notes
    assert note.endswith("Visits are response, resource and revisit records; it holds only 3 request records.")
