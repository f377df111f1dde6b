"""WARC files → visits; a damaged record is named and skipped, and reading goes on with the next one."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from datetime import datetime
from typing import Any, BinaryIO

import zstandard
from fastwarc.warc import ArchiveIterator, WarcRecordType

from recrawl.errors import BadRecord, BadUrl
from recrawl.parse import MAX_BODY
from recrawl.sources.bodies import decoded, too_large
from recrawl.sources.response import response_visit
from recrawl.urls import canonical
from recrawl.visits import Visit, parse_at

GZIP_MAGIC, ZSTD_MAGIC, PLAIN_MAGIC = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"WARC/1."
WANTED = (WarcRecordType.response, WarcRecordType.resource, WarcRecordType.revisit)
_SCAN = 1 << 20


_DAMAGE = (OSError, ValueError, EOFError, MemoryError, RuntimeError)


def read(stream: BinaryIO, *, limit: int = MAX_BODY, now: datetime | None = None) -> Iterator[Visit | BadRecord]:
    """The visits of a seekable WARC stream, plain or compressed by record; bad records are yielded as `BadRecord`."""
    position: int | None = 0
    told = False  # one damaged record can be met twice: behind its predecessor, and by itself
    while position is not None:
        last, failed = position, None
        stream.seek(position)
        records = iter(ArchiveIterator(_From(stream), parse_http=False))
        while failed is None:
            try:
                record = next(records, None)
            except _DAMAGE as error:
                failed = error
                told = told and last == position
                break
            if record is None:
                return
            last, told = position + record.stream_pos, False
            try:
                if record.record_type in WANTED:
                    yield from _record(record, limit, now)
            except _DAMAGE as error:
                failed = error
        resume = next_record(stream, last + 1)
        if not told:
            yield BadRecord("broken WARC record", _where(failed, last, resume))
        told, position = not told, resume


def _where(error: Exception | None, last: int, resume: int | None) -> str:
    what = (str(error).splitlines() or [type(error).__name__])[0]
    return f"{what}, after byte {last:,}" + ("" if resume is None else f"; reading goes on at byte {resume:,}")


def next_record(stream: BinaryIO, start: int) -> int | None:
    """Where the next record begins at or after `start`: a compressed member or a plain line that opens a WARC header."""
    overlap = 16
    stream.seek(start)
    position, block = start, stream.read(_SCAN)
    while block:
        for offset in _candidates(block):
            if _opens_record(stream, position + offset):
                return position + offset
        if len(block) < overlap:
            return None
        position += len(block) - overlap
        stream.seek(position)
        rest = stream.read(_SCAN)
        block = rest if len(rest) > overlap else b""
    return None


def _candidates(block: bytes) -> list[int]:
    found = []
    for magic in (GZIP_MAGIC, ZSTD_MAGIC, b"\n" + PLAIN_MAGIC):
        at = block.find(magic)
        while at >= 0:
            found.append(at + (magic[:1] == b"\n"))
            at = block.find(magic, at + 1)
    return sorted(found)


def _opens_record(stream: BinaryIO, position: int) -> bool:
    stream.seek(position)
    head = stream.read(4096)
    try:
        if head.startswith(GZIP_MAGIC):
            head = zlib.decompressobj(31).decompress(head, 16)
        elif head.startswith(ZSTD_MAGIC):
            head = zstandard.ZstdDecompressor().decompressobj().decompress(head)
    except (zlib.error, zstandard.ZstdError):
        return False
    return head.startswith(PLAIN_MAGIC)


class _From:
    """A stream from its present position on, as a stream of its own that nobody closes: reading may resume behind a bad record."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._start = stream, stream.tell()

    def read(self, size: int = -1) -> bytes:
        return self._stream.read(size)

    def seek(self, position: int, whence: int = 0) -> int:
        return self._stream.seek(position + (self._start if whence == 0 else 0), whence) - self._start

    def tell(self) -> int:
        return self._stream.tell() - self._start

    def close(self) -> None:
        pass


def _record(record: Any, limit: int, now: datetime | None) -> Iterator[Visit | BadRecord]:
    try:
        kind = record.record_type
        headers = record.headers
        url = canonical((headers.get("WARC-Target-URI") or "").strip("<> "))
        at = parse_at(headers.get("WARC-Date"), now=now)
        digest = headers.get("WARC-Payload-Digest") or None
        if kind == WarcRecordType.revisit:
            yield _revisit(record, url, at, digest)
        elif kind == WarcRecordType.resource:
            yield _with_digest(response_visit(url, at, 200, _resource_headers(headers), _body(record, limit)), digest, headers)
        else:
            yield _response(record, url, at, digest, limit)
    except BadRecord as error:
        yield BadRecord(error.reason, error.detail or f"record at byte {record.stream_pos:,}")
    except BadUrl as error:
        reason, _, detail = str(error).partition(": ")
        yield BadRecord(reason, detail)


def _response(record: Any, url: str, at: datetime, digest: str | None, limit: int) -> Visit:
    if not str(record.headers.get("Content-Type") or "application/http").lower().startswith("application/http"):
        raise BadRecord("response record is not HTTP", url)
    raw, status, headers = _http(_body(record, limit + (1 << 20)), url)
    if status == 304:
        return Visit(url=url, at=at, status=304, etag=headers.get("etag"), last_modified=headers.get("last-modified"))
    body = decoded(raw, headers, limit) if 200 <= status < 400 else b""
    return _with_digest(response_visit(url, at, status, headers, body), digest, record.headers)


def _revisit(record: Any, url: str, at: datetime, digest: str | None) -> Visit:
    """Unchanged, if it refers to the same page; equal to *another* page's copy says nothing about this page's past."""
    refers_to = (record.headers.get("WARC-Refers-To-Target-URI") or "").strip("<> ")
    try:
        same_page = not refers_to or canonical(refers_to) == url
    except BadUrl:
        same_page = False
    return Visit(url=url, at=at, status=304 if same_page else 200, payload_digest=digest)


def _with_digest(visit: Visit, digest: str | None, headers: Any) -> Visit:
    from dataclasses import replace

    if headers.get("WARC-Truncated"):
        # The rest of the page was never stored: what it does not show may still be there.
        return replace(visit, links=None, text=None, text_digest=None, text_bytes=None, note="truncated in the archive")
    return replace(visit, payload_digest=digest)


def _body(record: Any, limit: int) -> bytes:
    if record.content_length > limit:
        raise BadRecord(too_large(limit), f"{record.content_length:,} bytes at byte {record.stream_pos:,}")
    body: bytes = record.reader.read(record.content_length)
    if len(body) < record.content_length:
        raise BadRecord("record cut off", f"{len(body):,} of {record.content_length:,} bytes")
    if b"\r\n\r\nWARC/1." in body:
        # The declared length reaches into the next record, which the scan for the next valid header will find.
        raise ValueError("the declared length of a record reaches into the next one")
    return body


def _http(block: bytes, url: str) -> tuple[bytes, int, dict[str, str]]:
    """Body, status and lower-case headers of a stored response."""
    end = block.find(b"\r\n\r\n", 0, 1 << 20)
    head, body = (block[:end], block[end + 4 :]) if end >= 0 else _lenient(block)
    lines = head.decode("latin-1").splitlines()
    words = lines[0].split(None, 2) if lines else []
    if len(words) < 2 or not words[0].upper().startswith("HTTP/") or not words[1][:3].isdigit():
        raise BadRecord("no HTTP status line", f"{lines[0][:60] if lines else ''!r} for {url[:200]}")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers.setdefault(name.strip().lower(), value.strip())
    return body, int(words[1][:3]), headers


def _lenient(block: bytes) -> tuple[bytes, bytes]:
    head, _, body = block.partition(b"\n\n")
    return head, body


def _resource_headers(headers: Any) -> dict[str, str]:
    return {"content-type": headers.get("Content-Type") or ""}
