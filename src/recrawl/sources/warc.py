"""WARC files → visits; a damaged record is named and skipped, and reading goes on with the next one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import BinaryIO

from recrawl.errors import BadRecord, BadUrl
from recrawl.sources import ache
from recrawl.sources.base import Context, Cut, Source
from recrawl.sources.bodies import checked, decoded, too_large
from recrawl.sources.framing import Record, RecordFilter, looks_like, next_record, records
from recrawl.sources.response import response_visit
from recrawl.web.urls import canonical
from recrawl.web.visit import Visit, parse_at

WANTED = frozenset(("response", "resource", "revisit"))
_STATUS = re.compile(r"HTTP/\S*\s+([0-9]{3})", re.IGNORECASE)
_HEADER = re.compile(r"^([^\s:][^:\r\n]*):([^\r\n]*)", re.MULTILINE)
HTTP_HEADERS = 1 << 20  #: bytes that a response may have before its body


class Warc(Source):
    """WARC files, plain or compressed by gzip or zstd, record by record or as a whole."""

    name = "warc"
    cut = Cut.RECORDS
    raw = True
    visits_are = "response, resource and revisit records"

    def detects(self, head: bytes, filename: str = "") -> bool:
        """Whether a file begins with a WARC record, or with the dictionary of a zstd WARC file."""
        return looks_like(head)

    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        """The visits of a seekable stream; damaged records are skipped and named."""
        limit = context.max_body
        wanted = RecordFilter(WANTED, limit + HTTP_HEADERS, too_large(limit), context.passed_over)

        def on_end(position: int) -> None:
            context.end = position

        for record in records(stream, wanted, context.start, context.stop, on_end):
            visit = record if isinstance(record, BadRecord) else _visit(record, limit, context.now)
            if isinstance(record, BadRecord) or isinstance(visit, BadRecord) or not ache.is_in_warc(record.headers):
                yield visit
            else:
                yield from ache.from_warc(visit, record.headers)

    def next_record(self, stream: BinaryIO, position: int) -> int | None:
        """Where the next record, or the next compressed member that holds one, begins."""
        return next_record(stream, position)


def _visit(record: Record, limit: int, now: datetime | None) -> Visit | BadRecord:
    headers = record.headers
    try:
        url = canonical(headers.get("warc-target-uri", "").strip("<> "), keep_tracking=True)
        at = parse_at(headers.get("warc-date"), now=now)
        kind = headers["warc-type"].lower()
        if kind == "revisit":
            return _revisit(headers, url, at)
        if kind == "resource":
            body = checked(record.block, limit)
            digest = headers.get("warc-payload-digest")
            visit = response_visit(url, at, 200, {"content-type": headers.get("content-type", "")}, body, digest)
        else:
            visit = _response(record, url, at, limit)
        return _cut_off(visit) if headers.get("warc-truncated") or headers.get("warc-segment-number") else visit
    except BadRecord as error:
        return BadRecord(
            error.reason, error.detail or f"{headers.get('warc-target-uri')!r:.200} at byte {record.position:,}"
        )
    except BadUrl as error:
        reason, _, detail = str(error).partition(": ")
        return BadRecord(reason, detail)


def _response(record: Record, url: str, at: datetime, limit: int) -> Visit:
    if not record.headers.get("content-type", "application/http").lower().startswith("application/http"):
        raise BadRecord("response record is not HTTP", url)
    raw, status, headers = _http(record.block, url, without_status=200 if ache.is_in_warc(record.headers) else None)
    body = decoded(raw, headers, limit) if 200 <= status < 400 and status != 304 else b""
    return response_visit(url, at, status, headers, body, record.headers.get("warc-payload-digest"))


def _revisit(headers: Mapping[str, str], url: str, at: datetime) -> Visit:
    """Unchanged, if it refers to the same page; equal to *another* page's copy says nothing about this page's past."""
    refers_to = headers.get("warc-refers-to-target-uri", "").strip("<> ")
    try:
        same_page = not refers_to or canonical(refers_to, keep_tracking=True) == url
    except BadUrl:
        same_page = False
    digest = headers.get("warc-payload-digest")
    return Visit(url=url, at=at, status=304 if same_page else 200, payload_digest=digest or None)


def _cut_off(visit: Visit) -> Visit:
    """The visit of a page whose rest is not here: what it does not show may still be there."""
    note = "truncated in the archive"
    return replace(visit, links=None, text=None, text_digest=None, text_bytes=None, payload_digest=None, note=note)


def _http(block: bytes, url: str, without_status: int | None) -> tuple[bytes, int, dict[str, str]]:
    """Body, status and lower-case headers of a stored response; `without_status`: what a missing status line means."""
    end = block.find(b"\r\n\r\n", 0, 1 << 20)
    head, body = (block[:end], block[end + 4 :]) if end >= 0 else _lenient(block)
    text = head.decode("latin-1")
    status = _STATUS.match(text)
    if not status and without_status is None:
        raise BadRecord("no HTTP status line", f"{text[:60]!r} for {url[:200]}")
    headers: dict[str, str] = {}
    for name, value in _HEADER.findall(text):
        headers.setdefault(name.rstrip().lower(), value.strip())
    return body, int(status[1]) if status else without_status or 0, headers


def _lenient(block: bytes) -> tuple[bytes, bytes]:
    head, _, body = block.partition(b"\n\n")
    return head, body
