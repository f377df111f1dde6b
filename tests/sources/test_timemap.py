"""TimeMaps in all their spellings, and anything else in place of one."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patience import growth
from recrawl.errors import BadRecord
from recrawl.sources import Context
from recrawl.sources.timemap import TimeMap
from recrawl.web.visit import Visit

FIXTURES = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "fixtures"

RFC = b"""\
 <http://a.example.org>;rel="original",
 <http://arxiv.example.net/timemap/http://a.example.org>
   ; rel="self";type="application/link-format"
   ; from="Tue, 20 Jun 2000 18:02:59 GMT"
   ; until="Wed, 09 Apr 2008 20:30:51 GMT",
 <http://arxiv.example.net/timegate/http://a.example.org>
   ; rel="timegate",
 <http://arxiv.example.net/web/20000620180259/http://a.example.org>
   ; rel="first memento";datetime="Tue, 20 Jun 2000 18:02:59 GMT"
   ; license="http://creativecommons.org/publicdomain/zero/1.0/",
 <http://arxiv.example.net/web/20091027204954/http://a.example.org>
    ; rel="last memento";datetime="Tue, 27 Oct 2009 20:49:54 GMT"
    ; license="http://creativecommons.org/publicdomain/zero/1.0/",
 <http://arxiv.example.net/web/20000621011731/http://a.example.org>
   ; rel="memento";datetime="Wed, 21 Jun 2000 01:17:31 GMT"
"""  # RFC 7089, figure 28

RFC_PAGED = b"""\
<http://a.example.org>;rel="original",
<http://arxiv.example.net/timegate/http://a.example.org>; rel="timegate",
<http://arxiv.example.net/timemap/1/http://a.example.org>
  ; rel="self";type="application/link-format"; from="Tue, 20 Jun 2000 18:02:59 GMT",
<http://arxiv.example.net/timemap/2/http://a.example.org>
  ; rel="timemap";type="application/link-format"
  ; from="Thu, 10 Apr 2008 20:30:51 GMT"; until="Tue, 27 Oct 2009 20:49:54 GMT",
<http://arxiv.example.net/timemap/3/http://a.example.org>
  ; rel="timemap";type="application/link-format"; from="Thu, 29 Oct 2009 20:30:51 GMT"
"""


def entries(data: bytes) -> Iterator[Visit | BadRecord]:
    return TimeMap().read(io.BytesIO(data), Context())


def visits(data: bytes) -> list[Visit]:
    found = list(entries(data))
    assert [entry for entry in found if isinstance(entry, BadRecord)] == []
    return [entry for entry in found if isinstance(entry, Visit)]


def reasons(data: bytes) -> list[str]:
    return [entry.reason for entry in entries(data) if isinstance(entry, BadRecord)]


def test_the_example_of_the_rfc_has_three_mementos() -> None:
    assert TimeMap().detects(RFC)
    found = visits(RFC)
    assert {visit.url for visit in found} == {"http://a.example.org"}
    assert [visit.at.isoformat() for visit in found] == [
        "2000-06-20T18:02:59+00:00",
        "2009-10-27T20:49:54+00:00",
        "2000-06-21T01:17:31+00:00",
    ]
    assert {(visit.status, visit.links) for visit in found} == {(200, None)}


def test_further_pages_are_reported_and_the_own_page_is_not() -> None:
    problems = list(entries(RFC_PAGED))
    assert [(p.reason, p.detail) for p in problems if isinstance(p, BadRecord)] == [
        ("timemap has more pages", "http://arxiv.example.net/timemap/2/http://a.example.org"),
        ("timemap has more pages", "http://arxiv.example.net/timemap/3/http://a.example.org"),
    ]


def test_the_same_map_in_another_format_is_no_further_page() -> None:
    own = b'<https://a/timemap/link/https://e.org/>; rel="self timemap"; type="application/link-format",'
    same = own.replace(b"self timemap", b"timemap")
    other = b'<https://a/timemap/json/https://e.org/>; rel="timemap"; type="application/json"'
    assert list(entries(own + same + other)) == []


def test_commas_semicolons_and_quotes_inside_values_do_not_split_them() -> None:
    data = (
        b'<https://e.org/a,b;c?x="y",z>; rel="original",\n'
        b'<https://w/1/a,b>; title="said \\"x\\", <y>; rel=memento"; rel="next memento"; '
        b'datetime="Fri, 02 Jan 2026 00:00:00 GMT",<https://w/2>;datetime="Sat, 03 Jan 2026 00:00:00 GMT";rel=memento'
    )
    first, second = visits(data)
    assert first.url == second.url == 'https://e.org/a,b;c?x="y",z'
    assert (first.at.day, second.at.day) == (2, 3)


def test_an_entry_that_cannot_be_used_leaves_the_others_alone() -> None:
    data = (
        b'<https://e.org/>; rel="original", <https://w/1>; rel="memento", nonsense, <https://w/2> rel,'
        b'<https://w/3>; rel="memento"; datetime="yesterday", <https://w/4>; rel="memento"; '
        b'datetime="Mon, 02 Jan 1984 00:00:00 GMT", <https://w/5>; rel="memento"; '
        b'datetime="Fri, 02 Jan 2026 00:00:00 GMT"'
    )
    found = list(entries(data))
    assert [entry.reason if isinstance(entry, BadRecord) else entry.at.year for entry in found] == [
        "no time", "not a link", "not a link", "unreadable time", "time before 1990", 2026,
    ]  # fmt: skip


def test_without_a_named_original_the_url_is_taken_from_the_address_of_the_copy() -> None:
    dated = b'rel="memento"; datetime="Fri, 02 Jan 2026 00:00:00 GMT"'
    (visit,) = visits(b"<https://w/web/20260102000000id_/https://e.org/a?b>; " + dated)
    assert visit.url == "https://e.org/a?b"
    assert reasons(b"<https://w/copy/1>; " + dated) == ["no url"]


WAYBACK = [
    ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "redirect", "robotflags", "length"],
    ["org,e)/", "20250101000000", "http://e.org/", "text/html", "200", "AAA", "-", "-", "1"],
    ["org,e)/", "20250102000000", "http://e.org/", "warc/revisit", "-", "AAA", "-", "-", "1"],
    ["org,e)/", "20250103000000", "http://e.org/", "unk", "301", "-", "-", "-", "1"],
]


def test_rows_below_a_header_carry_status_and_digest() -> None:
    data = json.dumps(WAYBACK).encode()
    assert TimeMap().detects(data)
    found = visits(data)
    assert [(v.at.day, v.status, v.payload_digest, v.content_type) for v in found] == [
        (1, 200, "sha1:AAA", "text/html"),
        (2, 304, "sha1:AAA", None),
        (3, 301, None, None),
    ]
    assert {visit.url for visit in found} == {"http://e.org/"}


def test_an_empty_list_of_captures_is_a_timemap_of_nothing() -> None:
    assert TimeMap().detects(b"[]\n")
    assert visits(b"[]\n") == []


def test_a_resume_key_after_the_rows_means_more_pages() -> None:
    data = json.dumps([*WAYBACK, [], ["org%2Ce%29%2F+20250104"]]).encode()
    assert reasons(data) == ["timemap has more pages"]


def test_rows_unlike_the_header_are_counted() -> None:
    data = json.dumps([*WAYBACK, ["short"], 5, None, {"a": 1}]).encode()
    assert reasons(data) == ["row unlike the header"] * 4
    assert reasons(b'[["a", "b"]]') == ["TimeMap without a header row"]


MEMGATOR = {
    "original_uri": "https://e.org/",
    "self": "https://m/timemap/json/https://e.org/",
    "mementos": {
        "list": [
            {"datetime": "2025-01-01T00:00:00Z", "uri": "https://w/1"},
            {"datetime": "2025-01-02T00:00:00Z", "uri": "https://w/2"},
            {"datetime": "2025-01-02T00:00:00", "uri": "https://w/3"},
        ],
        "first": {"datetime": "2025-01-01T00:00:00Z", "uri": "https://w/1"},
        "last": {"datetime": "2025-01-05T00:00:00Z", "uri": "https://w/5"},
    },
    "timemap_uri": {"link_format": "https://m/timemap/link/https://e.org/"},
    "timegate_uri": "https://m/timegate/https://e.org/",
}


def test_an_object_with_a_list_of_mementos_is_read_each_once() -> None:
    data = json.dumps(MEMGATOR, indent=1).encode()
    assert TimeMap().detects(data)
    found = list(entries(data))
    assert [v.at.day for v in found if isinstance(v, Visit)] == [1, 2, 5]
    assert reasons(data) == ["time without zone"]


def test_an_object_names_its_further_pages() -> None:
    pages = {"timemap_index": [{"from": "2025", "uri": "https://m/1"}], "pages": {"next": {"uri": "https://m/2"}}}
    data = json.dumps({"original_uri": "https://e.org/"} | pages).encode()
    found = [entry.detail for entry in entries(data) if isinstance(entry, BadRecord)]
    assert found == ["https://m/1", "https://m/2"]


def test_one_object_a_line_is_read_line_by_line() -> None:
    data = (
        b'{"datetime": "2025-01-01T00:00:00Z", "uri": "https://w/20250101000000/https://e.org/"}\n'
        b"\n{broken\n"
        b'{"timestamp": "20250102", "url": "https://e.org/", "status": "404", "digest": "AAA"}\n'
    )
    assert TimeMap().detects(data)
    first, broken, last = entries(data)
    assert isinstance(first, Visit)
    assert isinstance(last, Visit)
    assert isinstance(broken, BadRecord)
    assert (first.url, first.at.day) == ("https://e.org/", 1)
    assert (last.status, last.at, last.payload_digest) == (404, datetime(2025, 1, 2, tzinfo=UTC), "sha1:AAA")
    assert broken.reason == "not a TimeMap"


def test_a_map_in_cdxj_names_its_original_in_a_line_of_its_own() -> None:
    data = (
        b'!context ["http://tools.ietf.org/html/rfc7089"]\n!id {"uri": "https://e.org/"}\n'
        b'!keys ["memento_datetime_YYYYMMDDhhmmss"]\n'
        b'20250101000000 {"uri": "https://w/1", "rel": "first memento", "datetime": "Wed, 01 Jan 2025 00:00:00 GMT"}\n'
    )
    assert TimeMap().detects(data)
    (visit,) = visits(data)
    assert (visit.url, visit.at) == ("https://e.org/", datetime(2025, 1, 1, tzinfo=UTC))


@pytest.mark.skipif(not FIXTURES.is_dir(), reason="no recorded answers in ../shared/data")
def test_recorded_json_lines_of_an_index_server_are_read() -> None:
    recorded = json.loads((FIXTURES / "cdx_toolkit" / "test_warc_prefix_1.jsonl").read_text().splitlines()[0])
    data = recorded["response_text"].encode()
    assert [(visit.url, visit.status) for visit in visits(data)] == [
        ("https://www.commoncrawl.org/", 200),
        ("http://commoncrawl.org", 301),
    ]


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"<html><a rel=x>",
        b"<!doctype html>",
        b'{"url": "https://e.org/", "at": 1}',
        b"[1, 2]",
        b"org,e)/ 2025 x",
        b"\x00",
    ],
)
def test_other_kinds_of_file_do_not_look_like_a_timemap(head: bytes) -> None:
    assert not TimeMap().detects(head)


def test_what_is_no_timemap_yields_a_reason() -> None:
    assert reasons(b"hello\n") == ["not a TimeMap"]
    assert reasons(b"<html>") == []
    assert reasons(b"<html><body>") == ["not a link"]
    assert reasons(b'"text"') == ["not a TimeMap"]


_PARTS = st.sampled_from(
    [
        b"<", b">", b";", b",", b'"', b"\\", b"=", b" ", b"\n", b"rel", b"memento", b"original", b"datetime", b"[",
        b"]", b"{", b"}", b":", b'"timestamp"', b'"mementos"', b'"list"', b'"uri"', b"null", b"1e999", b"-1",
        b"https://e.org/", b'rel="memento"', b'datetime="Fri, 02 Jan 2026 00:00:00 GMT"', b"20260102030405", b"!id",
        b"\xff", b"\xef\xbb\xbf",
    ]
)  # fmt: skip
_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8) | st.just("20250101000000"),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["mementos", "list", "first", "timestamp", "datetime", "uri", "url", "digest", "status", "pages"]
            )
            | st.just("timemap_index"),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


def _is_documented(data: bytes) -> None:
    TimeMap().detects(data)
    assert all(isinstance(entry, Visit | BadRecord) for entry in entries(data))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_another_error(data: bytes) -> None:
    _is_documented(data)


@given(st.lists(_PARTS, max_size=40).map(b"".join))
def test_any_mixture_of_the_syntax_is_read_without_another_error(data: bytes) -> None:
    _is_documented(data)


@given(_JSON)
def test_any_json_is_read_without_another_error(document: object) -> None:
    _is_documented(json.dumps(document).encode())
    _is_documented(json.dumps([["timestamp", "url", "status", "digest"], [document] * 4]).encode())


@given(
    st.lists(
        st.tuples(st.text(st.characters(exclude_characters="<>", codec="utf-8")), st.integers(0, 10**9)), max_size=9
    )
)
def test_what_is_written_as_a_link_is_read_back(mementos: list[tuple[str, int]]) -> None:
    parts = ["<https://e.org/>; rel=original"]
    for uri, seconds in mementos:
        at = datetime.fromtimestamp(700_000_000 + seconds, UTC)
        parts.append(f'<{uri}>; rel="memento"; datetime="{at:%a, %d %b %Y %H:%M:%S} GMT"')
    assert [round(v.at.timestamp()) - 700_000_000 for v in visits(", ".join(parts).encode())] == [
        s for _, s in mementos
    ]


NONSENSE = (
    b",<", b'<a>;x="', b'<a>;x="\\', b"<", b",", b" ", b";", b"<>;", b",<a>;",
    b"[", b'{"a":', b"{\n", b'<a>;x=\\",', b", ",
)  # fmt: skip


@pytest.mark.parametrize("piece", NONSENSE)
def test_a_million_bytes_of_nonsense_do_not_hang(piece: bytes) -> None:
    def read_nonsense(n: int) -> None:
        for data in (piece * (n // len(piece)), b"<a>" + piece * (n // len(piece))):
            for entry in entries(data):
                assert isinstance(entry, BadRecord)
            TimeMap().detects(data)

    assert growth(read_nonsense, 50_000, 1_000_000) < 5  # 20 if it grew with the square
