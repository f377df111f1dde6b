"""What the WARC writer leaves behind, read by others."""

from __future__ import annotations

import gzip
import io
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator
from warcio.recordloader import ArcWarcRecord

from making import imported, links, urls
from recrawl.crawl.warc import WarcWriter
from recrawl.errors import BadRecord
from recrawl.sources import Context
from recrawl.sources.warc import Warc
from recrawl.web.visit import Visit

AT = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
HTML = b"<title>T</title><p>words <a href='/x'>link</a>"
TYPE = (b"Content-Type", b"text/html; charset=utf-8")
REQUEST = b"GET /page HTTP/1.1\r\nHost: e.org\r\n\r\n"


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[WarcWriter]:
    with WarcWriter(tmp_path / "warcs") as one:
        yield one


def write(writer: WarcWriter, url: str = "https://e.org/page", body: bytes = HTML, **more: object) -> None:
    given = {"at": AT, "status": 200, "reason": "OK", "headers": [TYPE], **more}
    writer.response(url, body=body, **given)  # type: ignore[arg-type]


def files(writer: WarcWriter) -> list[Path]:
    writer.close()
    return sorted(writer.folder.iterdir())


def records(data: bytes) -> list[tuple[ArcWarcRecord, bytes]]:
    """What warcio reads, with all digests right."""
    found = []
    for record in ArchiveIterator(io.BytesIO(data), check_digests="raise"):
        body = record.raw_stream.read()
        assert record.digest_checker.passed or record.rec_type == "revisit"
        found.append((record, body))
    return found


def written(writer: WarcWriter) -> list[tuple[ArcWarcRecord, bytes]]:
    """The records behind the first one, of the only file."""
    (path,) = files(writer)
    first, *rest = records(path.read_bytes())
    assert first[0].rec_type == "warcinfo"
    return rest


def visits(data: bytes) -> list[Visit]:
    found = list(Warc().read(io.BytesIO(data), Context()))
    assert not [item for item in found if isinstance(item, BadRecord)], found
    return [item for item in found if isinstance(item, Visit)]


# -- records ----------------------------------------------------------------------------------------------------------


def test_a_response_and_its_request_are_read_by_warcio(writer: WarcWriter) -> None:
    write(writer, request=REQUEST, ip="93.184.215.14")
    (response, body), (request, _) = written(writer)
    assert (response.rec_type, request.rec_type, body) == ("response", "request", HTML)
    assert response.rec_headers.protocol == "WARC/1.1"
    assert response.http_headers.get_statuscode() == "200"
    assert response.http_headers.get_header("Content-Length") == str(len(HTML))
    assert response.rec_headers.get_header("WARC-Date") == "2026-01-02T03:04:05.678901Z"
    assert response.rec_headers.get_header("WARC-IP-Address") == "93.184.215.14"
    assert request.http_headers.get_header("Host") == "e.org"
    assert request.rec_headers.get_header("WARC-Target-URI") == "https://e.org/page"
    concurrent = request.rec_headers.get_header("WARC-Concurrent-To")
    assert concurrent == response.rec_headers.get_header("WARC-Record-ID")
    assert concurrent.startswith("<urn:uuid:")


def test_every_record_is_its_own_gzip_member(writer: WarcWriter) -> None:
    write(writer, request=REQUEST)
    (path,) = files(writer)
    data = path.read_bytes()
    iterator = ArchiveIterator(io.BytesIO(data))
    for record in iterator:
        start, length = iterator.get_record_offset(), iterator.get_record_length()
        alone = gzip.decompress(data[start : start + length])
        assert alone.startswith(b"WARC/1.1\r\nWARC-Type: " + record.rec_type.encode())
        assert alone.endswith(b"\r\n\r\n")


def test_the_first_record_says_who_wrote_the_file(tmp_path: Path) -> None:
    writer = WarcWriter(tmp_path, operator="Jane Doe\r\nWARC-Type: x, jane@example.org")
    write(writer)
    (path,) = files(writer)
    (info, block), _ = records(path.read_bytes())
    assert info.rec_headers.get_header("WARC-Filename") == path.name
    assert info.content_type == "application/warc-fields"
    lines = block.decode().splitlines()
    assert lines[0].startswith("software: recrawl/")
    assert lines[-1] == "operator: Jane Doe WARC-Type: x, jane@example.org"


def test_the_import_reads_what_was_written(writer: WarcWriter, tmp_path: Path) -> None:
    write(writer, headers=[TYPE, (b"ETag", b'"1"')], request=REQUEST)
    write(writer, "https://e.org/other", at=AT + timedelta(hours=1))
    write(writer, "https://e.org/gone", b"gone", status=404, reason="Not Found")
    digest = written(writer)[0][0].rec_headers.get_header("WARC-Payload-Digest")
    (path,) = files(writer)
    page, *_ = visits(path.read_bytes())
    assert (page.url, page.at, page.status, page.links, page.title) == ("https://e.org/page", AT, 200, ["/x"], "T")
    assert (page.etag, page.payload_digest) == ('"1"', digest)
    report, history = imported(tmp_path, path)
    assert (report.added, report.skipped) == (3, {})
    assert urls(history) == ["https://e.org/gone", "https://e.org/other", "https://e.org/page"]
    assert links(history)["https://e.org/page"] == ["https://e.org/x"]


def test_a_response_with_status_304_is_a_revisit(writer: WarcWriter) -> None:
    write(writer)
    later = AT + timedelta(days=1)
    digest = "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    writer.not_modified(
        "https://e.org/page",
        later,
        headers=[(b"ETag", b'"1"'), (b"Content-Length", b"99")],
        refers_to_at=AT,
        request=REQUEST,
        payload_digest=digest,
    )
    _, (revisit, body), (request, _) = written(writer)
    headers = revisit.rec_headers
    assert (revisit.rec_type, body, request.rec_type) == ("revisit", b"", "request")
    assert headers.get_header("WARC-Profile") == "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
    assert headers.get_header("WARC-Refers-To-Date") == "2026-01-02T03:04:05.678901Z"
    assert headers.get_header("WARC-Refers-To-Target-URI") == "https://e.org/page"
    assert revisit.http_headers.get_statuscode() == "304"
    assert revisit.http_headers.get_header("Content-Length") == "99"
    (path,) = files(writer)
    _, visit = visits(path.read_bytes())
    assert (visit.status, visit.at, visit.payload_digest) == (304, later, digest)


def test_a_revisit_need_not_know_what_it_refers_to(writer: WarcWriter) -> None:
    writer.not_modified("https://e.org/page", AT, headers=[])
    ((revisit, _),) = written(writer)
    assert revisit.rec_headers.get_header("WARC-Refers-To-Date") is None
    (path,) = files(writer)
    assert [visit.status for visit in visits(path.read_bytes())] == [304]


def test_a_truncated_body_is_marked(writer: WarcWriter) -> None:
    write(writer, truncated="length")
    ((response, _),) = written(writer)
    assert response.rec_headers.get_header("WARC-Truncated") == "length"
    (path,) = files(writer)
    assert [visit.note for visit in visits(path.read_bytes())] == ["truncated in the archive"]


def test_an_unknown_reason_for_truncation_is_an_error_and_writes_nothing(writer: WarcWriter) -> None:
    with pytest.raises(ValueError, match="'size'; it must be None or one of length, time"):
        write(writer, truncated="size")
    assert not writer.folder.exists()


def test_headers_stay_as_received_except_those_of_the_transfer(writer: WarcWriter) -> None:
    sent = [
        (b"Server", b"x"),
        (b"content-length", b"3"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Set-Cookie", b"a=1"),
        (b"Set-Cookie", b"b=2"),
        (b"Content-Length", b"4"),
        (b"Content-Encoding", b"gzip"),
    ]
    body = gzip.compress(HTML)
    write(writer, headers=[*sent, TYPE], body=body)
    ((response, stored),) = written(writer)
    assert stored == body
    assert response.http_headers.headers == [
        ("Server", "x"),
        ("Content-Length", str(len(body))),
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
        ("Content-Encoding", "gzip"),
        ("Content-Type", "text/html; charset=utf-8"),
    ]
    (path,) = files(writer)
    assert visits(path.read_bytes())[0].links == ["/x"]


def test_an_empty_body_is_stored(writer: WarcWriter) -> None:
    write(writer, body=b"", status=301, reason="", headers=[(b"Location", b"/new")])
    ((response, body),) = written(writer)
    assert (body, response.http_headers.get_header("Content-Length")) == (b"", "0")
    assert response.rec_headers.get_header("WARC-Payload-Digest") == "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
    (path,) = files(writer)
    assert visits(path.read_bytes())[0].links == ["/new"]


def test_no_header_can_end_the_headers(writer: WarcWriter) -> None:
    odd = [(b"X-A", b"1\r\n\r\n<p>not the body"), (b"X-B\r\nSet-Cookie", b"c"), (b" X-C", b"\r\n folded"), (b"", b"")]
    write(writer, headers=[*odd, TYPE], reason="OK\r\nX-D: 1")
    ((response, body),) = written(writer)
    assert body == HTML
    assert response.http_headers.statusline == "200 OK X-D: 1"
    assert response.http_headers.get_header("X-A") == "1 <p>not the body"
    assert response.http_headers.get_header("X-C") == "folded"
    assert response.http_headers.get_header("Set-Cookie") is None
    assert response.http_headers.get_header("X-D") is None


@given(
    headers=st.lists(st.tuples(st.binary(max_size=12), st.binary(max_size=30)), max_size=6),
    body=st.binary(max_size=200),
    reason=st.text(max_size=10),
)
def test_any_bytes_come_back(
    tmp_path_factory: pytest.TempPathFactory, headers: list[tuple[bytes, bytes]], body: bytes, reason: str
) -> None:
    writer = WarcWriter(tmp_path_factory.mktemp("any"))
    write(writer, headers=headers, body=body, reason=reason, request=body)
    write(writer, "https://e.org/after")
    (path,) = files(writer)
    data = path.read_bytes()
    raw = [(one.rec_type, one.raw_stream.read()) for one in ArchiveIterator(io.BytesIO(data), no_record_parse=True)]
    assert [kind for kind, _ in raw] == ["warcinfo", "response", "request", "response"]
    assert raw[1][1].split(b"\r\n\r\n", 1)[1] == raw[2][1] == body
    read = [item.url for item in Warc().read(io.BytesIO(data), Context()) if isinstance(item, Visit)]
    assert read[-1] == "https://e.org/after"


@pytest.mark.parametrize(
    ("url", "stored"),
    [
        ("https://e.org/a b", "https://e.org/a%20b"),
        ("https://e.org/é?ü", "https://e.org/%C3%A9?%C3%BC"),
        ("https://e.org/\r\nWARC-Type: x", "https://e.org/%0D%0AWARC-Type:%20x"),
        ("https://e.org/<b>", "https://e.org/%3Cb%3E"),
        ("https://e.org/%C3%A9%", "https://e.org/%C3%A9%"),
        ("https://e.org/\ud800", "https://e.org/%3F"),
    ],
)
def test_a_url_is_escaped_where_it_would_break_its_line(writer: WarcWriter, url: str, stored: str) -> None:
    write(writer, url)
    ((response, body),) = written(writer)
    assert (response.rec_headers.get_header("WARC-Target-URI"), response.rec_type, body) == (stored, "response", HTML)


def test_times_are_written_in_utc(writer: WarcWriter) -> None:
    write(writer, at=datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=5))))
    ((response, _),) = written(writer)
    assert response.rec_headers.get_header("WARC-Date") == "2026-01-01T22:00:00Z"
    with pytest.raises(ValueError, match="has no time zone"):
        write(writer, at=datetime(2026, 1, 2))


# -- files ------------------------------------------------------------------------------------------------------------


def test_a_file_is_open_until_it_is_finished(tmp_path: Path) -> None:
    with WarcWriter(tmp_path, prefix="a/b ü") as writer:
        assert not list(tmp_path.iterdir())
        write(writer)
        (path,) = tmp_path.iterdir()
        assert path.name.endswith("-00000.warc.gz.open")
        assert len(records(path.read_bytes())) == 2  # readable while it grows
    (finished,) = tmp_path.iterdir()
    assert finished.name == path.name.removesuffix(".open")
    assert finished.name.startswith("a-b-")
    writer.close()


def test_a_full_file_is_followed_by_the_next(tmp_path: Path) -> None:
    with WarcWriter(tmp_path, max_bytes=3000) as writer:
        for i in range(20):
            write(writer, f"https://e.org/{i}", request=REQUEST)
    paths = sorted(tmp_path.iterdir())
    assert len(paths) > 2
    assert all(path.stat().st_size <= 3000 for path in paths)
    kinds = [[record.rec_type for record, _ in records(path.read_bytes())] for path in paths]
    assert all(kind[0] == "warcinfo" and kind[1::2] == ["response"] * (len(kind) // 2) for kind in kinds)
    found = [visit.url for path in paths for visit in visits(path.read_bytes())]
    assert found == [f"https://e.org/{i}" for i in range(20)]


def test_a_response_larger_than_the_limit_gets_its_own_file(tmp_path: Path) -> None:
    with WarcWriter(tmp_path, max_bytes=10) as writer:
        write(writer)
        write(writer)
    assert [len(records(path.read_bytes())) for path in sorted(tmp_path.iterdir())] == [2, 2]


def test_two_writers_in_one_folder_use_different_files(tmp_path: Path) -> None:
    for _ in range(2):
        with WarcWriter(tmp_path) as first, WarcWriter(tmp_path) as second:
            write(first)
            write(second)
    assert [len(records(path.read_bytes())) for path in sorted(tmp_path.iterdir())] == [2] * 4


def test_wherever_a_file_is_cut_the_records_before_are_whole(writer: WarcWriter) -> None:
    for i in range(4):
        write(writer, f"https://e.org/{i}")
    (path,) = files(writer)
    data = path.read_bytes()
    iterator = ArchiveIterator(io.BytesIO(data))
    ends = [iterator.get_record_offset() + iterator.get_record_length() for _ in iterator]
    for cut in range(len(data)):
        whole = sum(end <= cut for end in ends) - 1
        found = [item for item in Warc().read(io.BytesIO(data[:cut]), Context()) if isinstance(item, Visit)]
        assert [visit.url for visit in found] == [f"https://e.org/{i}" for i in range(whole)]


ENDLESS = """
import sys, os
from datetime import UTC, datetime
from pathlib import Path
from recrawl.crawl.warc import WarcWriter
writer, i = WarcWriter(Path(sys.argv[1])), 0
while True:
    body = os.urandom(20_000)
    writer.response(f"https://e.org/{i}", datetime.now(UTC), status=200, reason="OK", headers=[], body=body)
    i += 1
    print(i, flush=True)
"""


def test_a_killed_process_leaves_all_that_it_wrote(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ENDLESS, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    acknowledged = [int(process.stdout.readline()) for _ in range(20)]
    process.send_signal(signal.SIGKILL)
    acknowledged += [int(line) for line in process.stdout.read().splitlines()]
    process.wait()
    (path,) = tmp_path.iterdir()
    found = [item.url for item in Warc().read(path.open("rb"), Context()) if isinstance(item, Visit)]
    assert found[: acknowledged[-1]] == [f"https://e.org/{i}" for i in range(acknowledged[-1])]


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """The system takes a part of a write and then refuses the rest, as with a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_write_that_fails_is_an_error_and_leaves_the_file_readable(tmp_path: Path) -> None:
    writer = WarcWriter(tmp_path)
    write(writer, "https://e.org/1")
    (path,) = tmp_path.iterdir()
    before = path.read_bytes()
    with files_no_larger_than(len(before) + 100), pytest.raises(OSError, match="too large"):
        write(writer, "https://e.org/2", request=REQUEST)
    assert path.read_bytes() == before
    write(writer, "https://e.org/3")  # there is room again
    (path,) = files(writer)
    assert [visit.url for visit in visits(path.read_bytes())] == ["https://e.org/1", "https://e.org/3"]


def test_a_file_whose_first_record_fails_is_removed(tmp_path: Path) -> None:
    writer = WarcWriter(tmp_path)
    with files_no_larger_than(10), pytest.raises(OSError, match="too large"):
        write(writer)
    assert not list(tmp_path.iterdir())
    write(writer)
    assert len(written(writer)) == 1
