"""WARC files of every make, whole and damaged."""

from __future__ import annotations

import gzip
import io
import random
import struct
import zlib
from datetime import UTC, datetime
from pathlib import Path

import pytest
import zstandard
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from conformance_files import files
from making import PACKED, http, imported, last_parts, links, packed, page_record, record
from patience import patience
from recrawl.errors import BadRecord
from recrawl.sources import Context
from recrawl.sources.warc import Warc
from recrawl.web.visit import Visit

HTML = b"<title>T</title><p>words <a href='/x'>link</a>"


def read(data: bytes, **more: object) -> list[Visit | BadRecord]:
    return list(Warc().read(io.BytesIO(data), Context(**more)))  # type: ignore[arg-type]


def visits(data: bytes, **more: object) -> list[Visit]:
    found = read(data, **more)
    assert not [item for item in found if isinstance(item, BadRecord)], found
    return [item for item in found if isinstance(item, Visit)]


def reasons(data: bytes, **more: object) -> list[str]:
    return [item.reason for item in read(data, **more) if isinstance(item, BadRecord)]


def names(data: bytes) -> str:
    return "".join(item.url[-1] for item in read(data) if isinstance(item, Visit))


# -- whole files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("compressed", [False, True])
def test_what_warcio_writes_is_read(version: str, compressed: bool) -> None:
    out = io.BytesIO()
    writer = WARCWriter(out, gzip=compressed, warc_version=version)
    writer.write_record(writer.create_warcinfo_record("x.warc", {"software": "test"}))
    headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html"), ("ETag", '"1"')], protocol="HTTP/1.0")
    response = writer.create_warc_record(
        "http://e.org/page", "response", payload=io.BytesIO(HTML), http_headers=headers
    )
    request_headers = StatusAndHeaders("GET / HTTP/1.0", [("Host", "e.org")], is_http_request=True)
    writer.write_record(response)
    writer.write_record(writer.create_warc_record("http://e.org/page", "request", http_headers=request_headers))
    (visit,) = visits(out.getvalue())
    assert (visit.url, visit.status, visit.links, visit.title, visit.etag) == (
        "http://e.org/page",
        200,
        ["/x"],
        "T",
        '"1"',
    )
    assert visit.payload_digest == response.rec_headers.get_header("WARC-Payload-Digest")
    assert abs((visit.at - datetime.now(UTC)).total_seconds()) < patience(60)


@pytest.mark.parametrize("how", PACKED)
def test_records_arrive_in_order_however_they_are_packed(how: str) -> None:
    found = visits(packed([page_record(i) for i in range(5)], how))
    assert [visit.url for visit in found] == [f"https://e.org/{i}" for i in range(5)]
    assert [visit.links for visit in found] == [[f"/next/{i}"] for i in range(5)]


def test_a_zstd_file_may_begin_with_its_dictionary() -> None:
    records = [page_record(i) for i in range(300)]
    dictionary = zstandard.train_dictionary(4096, records)
    frames = b"".join(zstandard.ZstdCompressor(dict_data=dictionary).compress(item) for item in records)
    plain = dictionary.as_bytes()
    for stored in (plain, zstandard.ZstdCompressor().compress(plain)):
        data = b"\x5d\x2a\x4d\x18" + struct.pack("<I", len(stored)) + stored + frames
        assert len(visits(data)) == 300


def test_plain_and_compressed_parts_may_follow_each_other() -> None:
    parts = [packed([page_record(i)], how) for i, how in enumerate(("plain", "gz", "zst", "plain"))]
    assert names(b"".join(parts)) == "0123"


def test_a_resource_is_a_page_without_headers() -> None:
    (visit,) = visits(record("https://e.org/", HTML, "resource", Content_Type="text/html"))
    assert (visit.status, visit.links, visit.content_bytes) == (200, ["/x"], len(HTML))


def test_a_revisit_means_unchanged_only_if_it_is_of_the_same_page() -> None:
    profile = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    more = {"WARC_Profile": profile, "WARC_Payload_Digest": "sha1:X", "Content_Type": ""}
    same = record("https://e.org/a", b"", "revisit", WARC_Refers_To_Target_URI="https://e.org/a", **more)
    unnamed = record("https://e.org/b", b"", "revisit", **more)
    other = record("https://e.org/c", b"", "revisit", WARC_Refers_To_Target_URI="https://e.org/elsewhere", **more)
    assert [(v.status, v.payload_digest) for v in visits(same + unnamed + other)] == [(304, "sha1:X")] * 2 + [
        (200, "sha1:X")
    ]


def test_a_revisit_of_another_page_shows_no_links_and_no_change(tmp_path: Path) -> None:
    first = record("https://e.org/", http(HTML), at="2026-01-01T00:00:00Z", WARC_Payload_Digest="sha1:A")
    elsewhere = "https://e.org/other"
    more = {"WARC_Refers_To_Target_URI": elsewhere, "WARC_Payload_Digest": "sha1:B"}
    report, history = imported(
        tmp_path, first + record("https://e.org/", b"", "revisit", at="2026-01-02T00:00:00Z", **more)
    )
    assert report.added == 2
    assert links(history) == {"https://e.org/": None}


def test_statuses_redirects_and_304_arrive() -> None:
    moved = record("https://e.org/m", http(b"", "301 Moved", Location="/new"))
    gone = record("https://e.org/g", http(b"<a href=/no>", "404 Not Found"))
    same = record("https://e.org/s", http(b"", "304 Not Modified", ETag='"2"'))
    found = visits(moved + gone + same)
    assert [(v.status, v.links) for v in found] == [(301, ["/new"]), (404, None), (304, None)]
    assert found[2].etag == '"2"'


@pytest.mark.parametrize("mark", [{"WARC_Truncated": "length"}, {"WARC_Segment_Number": "1"}])
def test_nothing_is_concluded_from_a_truncated_record(mark: dict[str, str]) -> None:
    (visit,) = visits(record("https://e.org/", http(HTML), WARC_Payload_Digest="sha1:X", **mark))
    assert (visit.links, visit.text, visit.text_digest, visit.payload_digest) == (None, None, None, None)
    assert visit.note == "truncated in the archive"


def test_target_uris_in_angle_brackets_and_headers_in_any_case_are_read() -> None:
    data = (
        record("<https://e.org/1>", http(HTML))
        .replace(b"WARC-Target-URI", b"warc-target-uri")
        .replace(b"WARC-Date: ", b"WARC-DATE:\r\n ")
    )
    assert [visit.url for visit in visits(data)] == ["https://e.org/1"]


def test_a_page_that_shows_a_warc_record_is_one_page() -> None:
    shown = b"<pre>\r\n\r\n" + page_record(7) + b"</pre><a href='/real'>x</a>"
    for how in PACKED:
        found = visits(packed([page_record(1), record("https://e.org/2", http(shown)), page_record(3)], how))
        assert [visit.url[-1] for visit in found] == ["1", "2", "3"]
        assert (found[1].links or [])[-1] == "/real"


# -- refused records --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (record("dns:e.org", b"x", Content_Type="text/dns"), "not an http or https URL"),
        (record("https://e.org/", b"x", Content_Type="text/dns"), "response record is not HTTP"),
        (record("http://[/", http(HTML)), "not a URL"),
        (record("https://e.org/", http(HTML), at="2026-01-02"), "time without zone"),
        (record("https://e.org/", http(HTML), at="1980-01-02T00:00:00Z"), "time before 1990"),
        (record("https://e.org/", http(HTML), at="2126-01-02T00:00:00Z"), "time in the future"),
        (record("https://e.org/", b"no status line"), "no HTTP status line"),
        (record("https://e.org/", b""), "no HTTP status line"),
        (record("https://e.org/", "HTTP/1.1 ²²² odd\r\n\r\n".encode("latin-1")), "no HTTP status line"),
        (record("https://e.org/", http(b"\x1f\x8b not gzip", Content_Encoding="gzip")), "broken compression"),
        (record("https://e.org/", http(gzip.compress(HTML * 9)[:-9], Content_Encoding="gzip")), "broken compression"),
    ],
)  # fmt: skip
def test_a_record_that_cannot_be_used_is_named_and_the_next_one_read(data: bytes, reason: str) -> None:
    assert reasons(data + page_record(1)) == [reason]
    assert names(data + page_record(1)) == "1"


@pytest.mark.parametrize("how", PACKED)
def test_a_body_over_the_limit_is_named_and_the_next_one_read(how: str) -> None:
    data = packed([page_record(0), record("https://e.org/1", http(b"x" * 3_000_000)), page_record(2)], how)
    assert reasons(data, max_body=1 << 20) == ["body over 1 MiB"]
    assert [v.url[-1] for v in read(data, max_body=1 << 20) if isinstance(v, Visit)] == ["0", "2"]
    assert names(data) == "012"


# -- damage -----------------------------------------------------------------------------------------------------------

TRUE = len(http(b"<p>page number %d <a href='/next/%d'>next</a>" % (2, 2)))
LIES = [TRUE - 10, 0, TRUE + 5, TRUE + 333, TRUE + 700, 10**9, 10**12, 10**18, 10**30, -5, "abc", ""]


@pytest.mark.parametrize("how", PACKED)
@pytest.mark.parametrize("kind", ["response", "request", "warcinfo"])
@pytest.mark.parametrize("length", LIES)
def test_a_length_that_lies_costs_its_own_record_only(how: str, kind: str, length: object) -> None:
    if how == "one gz" and isinstance(length, int) and length in (10**9, 10**12):
        pytest.skip("behind a length that reaches over the end of a file in one member, nothing can be found any more")
    records = [page_record(i) for i in range(6)]
    records[2] = page_record(2, kind=kind, length=length)
    data = packed(records, how)
    assert names(data) == "01345"
    assert reasons(data) == ["broken WARC record"]


@pytest.mark.parametrize("how", ["plain", "gz", "zst"])
def test_of_a_truncated_file_all_whole_records_arrive(how: str) -> None:
    ends, data = [], b""
    for i in range(5):
        data += packed([page_record(i)], how)
        ends.append(len(data))
    for cut in range(ends[1] + 20, ends[3], 17):
        whole = sum(end <= cut for end in ends)
        found = names(data[:cut])
        # What a plain record lacks at the end may be no more than the empty lines behind it.
        assert found in ("01234"[:whole], "01234"[: whole + 1] if how == "plain" and ends[whole] - cut <= 4 else "")


@pytest.mark.parametrize("how", ["plain", "gz", "zst"])
def test_flipped_bits_in_one_record_cost_no_other_record(how: str) -> None:
    records = [packed([page_record(i)], how) for i in range(5)]
    rng = random.Random(1)
    for _ in range(300):
        damaged = bytearray(records[2])
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        found = read(b"".join([*records[:2], bytes(damaged), *records[3:]]))
        urls = [item.url for item in found if isinstance(item, Visit)]
        assert {f"https://e.org/{i}" for i in (0, 1, 3, 4)} <= set(urls)
        if how == "gz" and bytes(damaged[10:]) != records[2][10:]:
            # The checksum shows it: nothing wrong gets in.
            assert "https://e.org/2" not in urls
            assert any(isinstance(item, BadRecord) for item in found)


def test_a_bad_gzip_member_costs_its_own_record_only() -> None:
    bad = bytearray(gzip.compress(page_record(2)))
    bad[30:40] = b"\xff" * 10
    data = b"".join([packed([page_record(0), page_record(1)], "gz"), bytes(bad), packed([page_record(3)], "gz")])
    assert names(data) == "013"
    assert reasons(data) == ["broken WARC record"]


def test_a_member_that_lacks_its_checksum_is_broken() -> None:
    data = gzip.compress(page_record(1))[:-8]
    assert reasons(data) == ["broken WARC record"]


def test_what_lies_between_records_is_passed_over() -> None:
    data = page_record(1) + b"\r\n\r\n\r\n" + b"garbage\r\n" * 100 + page_record(2) + b"\0" * 500
    assert names(data) == "12"
    assert set(reasons(data)) == {"broken WARC record"}


def test_a_header_without_end_is_broken() -> None:
    assert reasons(b"WARC/1.0\r\nWARC-Type: response\r\n" + b"X-Long: y\r\n" * 200_000) == ["broken WARC record"]
    endless = b"WARC/1.0\r\n" + b"a" + b" " * 900_000 + b"\r\n\r\n"
    assert reasons(endless) == ["broken WARC record"]


def test_bombs_in_members_are_passed_over_without_filling_the_memory() -> None:
    import tracemalloc

    zeros = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = record("https://e.org/bomb", b"", length=1 << 28).removesuffix(b"\r\n\r\n")
    bomb = (
        zeros.compress(head)
        + b"".join(zeros.compress(bytes(1 << 20)) for _ in range(1 << 8))
        + zeros.compress(b"\r\n\r\n")
        + zeros.flush()
    )
    data = packed([page_record(0)], "gz") + bomb + packed([page_record(1)], "gz")
    tracemalloc.start()
    assert names(data) == "01"
    assert reasons(data) == ["body over 32 MiB"]
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()


# -- pieces -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["plain", "gz", "zst"])
def test_cutting_a_file_into_pieces_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr("recrawl.sources.chunks.LARGEST", 700)
    report, history = imported(tmp_path, packed([page_record(i) for i in range(10)], how))
    assert (report.added, report.skipped) == (10, {})
    assert last_parts(history) == "0123456789"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_cut_inside_a_page_that_shows_records_is_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr("recrawl.sources.chunks.LARGEST", 500)
    shown = b"<pre>\r\n\r\n" + b"".join(page_record(i) for i in (6, 7, 8)) + b"</pre>"
    data = b"".join([page_record(1), record("https://e.org/2", http(shown)), page_record(3), page_record(4)])
    report, history = imported(tmp_path, data, workers=workers)
    assert (report.added, report.skipped) == (4, {})
    assert last_parts(history) == "1234"


# -- files without visits ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("how", ["plain", "gz"])
def test_a_file_of_requests_says_what_it_holds_and_why_nothing_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, workers: int
) -> None:
    monkeypatch.setattr("recrawl.sources.chunks.LARGEST", 500)
    asked = [record(f"https://e.org/{i}", b"GET / HTTP/1.0\r\n\r\n", "request") for i in range(5)]
    others = [record("", b"software: x", "warcinfo"), record("", b"?", "\x1b[31m")]
    mixed = packed([*asked, page_record(1)], how)
    report, _ = imported(tmp_path, packed([*asked, *others], how), mixed, workers=workers)
    assert (report.read, report.added, report.skipped) == (1, 1, {})
    (note,) = report.notes
    assert note == (
        f"{tmp_path / 'input-0'}: nothing was read. Visits are response, resource and revisit records; "
        "it holds only 5 request records, 1 warcinfo record, 1 other record."
    )


def test_the_odd_files_of_jwarc_are_read_or_say_why_not(shared_data: Path, tmp_path: Path) -> None:
    found = dict(files(shared_data, "warc_more"))
    (cc, info) = (found[f"org/netpreserve/jwarc/{name}.warc.gz"] for name in ("cc", "gzip_extra_sl"))
    report, _ = imported(tmp_path, cc, info)
    assert (report.read, report.added, report.skipped, report.failed_inputs) == (1, 1, {}, [])
    (note,) = report.notes
    assert note.endswith("it holds only 1 warcinfo record.")
