"""Capture indexes of all widths and kinds."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from making import imported, urls
from recrawl.errors import BadRecord
from recrawl.sources import Context, cdx, detect
from recrawl.web.visit import Visit

FIELDS = {
    "N": "org,e)/{}", "b": "2026010203040{}", "a": "https://e.org/{}", "m": "text/html", "s": "200", "k": "DIGEST{}",
    "r": "-", "M": "-", "S": "100", "V": "1234", "g": "x.warc.gz",
}  # fmt: skip


def lines(letters: str, n: int = 3, **changed: str) -> str:
    values = {**FIELDS, **changed}
    return "".join(" ".join(values[letter].format(i) for letter in letters.split()) + "\n" for i in range(n))


@pytest.mark.parametrize("n_fields", [11, 10, 9, 7, 6])
@pytest.mark.parametrize("header", [" CDX {}\n", "CDX {}\n", "\ufeff CDX {}\n", ""])
def test_cdx_of_every_width_is_read_with_and_without_header(tmp_path: Path, n_fields: int, header: str) -> None:
    letters = cdx.HEADERS[n_fields]
    text = header.format(letters) + lines(letters)
    assert detect(text.encode(), "x").name == "cdx"
    report, history = imported(tmp_path, text.encode())
    assert (report.added, report.skipped) == (3, {})
    assert urls(history) == [f"https://e.org/{i}" for i in range(3)]
    assert len(set(history.timeline.rows["payload"].to_pylist())) == 3
    assert sorted(history.timeline.at % 10_000_000) == [0, 1_000_000, 2_000_000]


def test_a_header_may_name_the_fields_in_any_order(tmp_path: Path) -> None:
    report, history = imported(tmp_path, b" CDX a b k s\nhttps://e.org/x 20260102030405 D 404\n")
    assert report.added == 1
    assert history.timeline.status.tolist() == [404]


def test_revisits_are_unchanged_and_unknown_statuses_are_answers() -> None:
    text = lines(cdx.HEADERS[11], 1, m="warc/revisit", s="-") + lines(cdx.HEADERS[11], 1, s="-")
    revisit, answer = cdx.Cdx().read(io.BytesIO(text.encode()), Context())
    assert isinstance(revisit, Visit)
    assert isinstance(answer, Visit)
    assert (revisit.status, revisit.content_type, answer.status) == (304, None, 200)
    assert revisit.payload_digest == "sha1:DIGEST0"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"s": "2000"}, "unreadable status"),
        ({"s": "-1"}, "unreadable status"),
        ({"s": "99999"}, "unreadable status"),
        ({"s": "²"}, "unreadable status"),
        ({"b": "20261399000000"}, "unreadable time"),
        ({"b": "2026"}, None),
        ({"b": "19600101000000"}, "time before 1990"),
        ({"b": "21990101000000"}, "time in the future"),
        ({"b": "202601020304056"}, "unreadable time"),
        ({"a": "-"}, "no url"),
        ({"a": "warcinfo:/x.warc"}, "not an http or https URL"),
        ({"a": "two words"}, "wrong number of CDX fields"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_used_is_counted_and_the_others_arrive(
    tmp_path: Path, changed: dict[str, str], reason: str | None
) -> None:
    text = lines(cdx.HEADERS[11], 2) + lines(cdx.HEADERS[11], 1, **{"a": "https://e.org/bad", **changed})
    report, _ = imported(tmp_path, text.encode())
    assert report.added == (2 if reason else 3)
    assert dict(report.skipped) == ({reason: 1} if reason else {})


CAPTURE = {"url": "https://e.org/1", "mime": "text/html", "status": "200", "digest": "D"}
SERVER = {
    "urlkey": "org,e)/",
    "timestamp": "20260102030405",
    "url": "https://e.org/1",
    "mime": "text/html",
    "status": "200",
    "digest": "D",
}


@pytest.mark.parametrize(
    "line",
    [
        "org,e)/1 20260102030405 " + json.dumps(CAPTURE),
        "org,e)/1 20260102030405 " + json.dumps({**CAPTURE, "digest": "sha1:D", "status": "-", "mime": "-"}),
        "!OpenWayback-CDXJ 1.0\norg,e)/1 20260102030405 " + json.dumps(CAPTURE),
        json.dumps(SERVER),  # an index server's answer
        json.dumps(
            {
                "urlkey": "x",
                "timestamp": "20260102030405",
                "original": "https://e.org/1",
                "mimetype": "text/html",
                "statuscode": "200",
            }
        ),
    ],
)
def test_cdxj_and_index_server_lines_are_read(tmp_path: Path, line: str) -> None:
    assert detect(line.encode(), "x").name == "cdxj"
    report, history = imported(tmp_path, line.encode() + b"\n")
    assert (report.added, report.skipped) == (1, {})
    assert urls(history) == ["https://e.org/1"]
    assert history.timeline.status.tolist() == [200]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('org,e)/2 20260102030405 {"url": "https://e.org/2', "not CDXJ"),
        ("org,e)/2 20260102030405", "not CDXJ"),
        ('org,e)/2 20260102030405 {"url": 5}', "no url"),
        ('org,e)/2 nonsense {"url": "https://e.org/2"}', "unreadable time"),
        ('org,e)/2 20260102030405 {"url": "https://e.org/2", "status": [1]}', "unreadable status"),
        ('org,e)/2 20260102030405 {"url": "https://e.org/2", "mime": [1], "digest": {"x": [2]}}', None),
    ],
)
def test_a_cdxj_line_that_cannot_be_used_is_counted_and_the_others_arrive(
    tmp_path: Path, line: str, reason: str | None
) -> None:
    good = "org,e)/1 20260102030405 " + json.dumps(CAPTURE)
    report, _ = imported(tmp_path, f"{good}\n{line}\n".encode())
    assert report.added == (1 if reason else 2)
    assert dict(report.skipped) == ({reason: 1} if reason else {})


@given(st.lists(st.binary(max_size=80), max_size=10), st.binary(max_size=40))
def test_any_lines_are_taken_or_named(data: list[bytes], first: bytes) -> None:
    for source in (cdx.Cdx(), cdx.Cdxj()):
        for item in source.read(io.BytesIO(b"\n".join(data)), Context(first_line=first)):
            assert isinstance(item, Visit | BadRecord)


def test_equal_digests_are_unchanged_and_others_are_changes(tmp_path: Path) -> None:
    text = "".join(
        lines(cdx.HEADERS[11], 1, b=f"202601{day:02}000000", k=digest) for day, digest in enumerate("AABB", 1)
    )
    _, history = imported(tmp_path, text.encode())
    assert history.timeline.text_changed.tolist() == [-1, 0, 1, 0]
