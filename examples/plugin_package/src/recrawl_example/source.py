"""The ``crawl.log`` of Heritrix, read as visits: when each page was fetched, its status and the digest of its content."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import BinaryIO

from recrawl.errors import BadRecord
from recrawl.sources import Context, Cut, Source
from recrawl.web.visit import Visit, parse_at

#: The first columns: time, status, size and URI.
_LINE = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\s+-?\d+\s+(\d+|-)\s+[a-z]+:")
_FETCH_TIME = re.compile(r"(\d{14})(\d{3})\+\d+")  # start of the fetch and its duration in milliseconds
_NOT_PAGES = re.compile(r"dns:|whois:|https?://[^/]+/robots\.txt$")


class HeritrixLog(Source):
    r"""One line per fetch: time, status, size, URI, discovery path, referrer, MIME type, thread, fetch time, digest, …

    A log has no links, so it shows which pages changed and when, but not what is new on them. Statuses below 0 are Heritrix's own
    codes for failures; the visit then has status 0 and a note with the code.

    >>> from io import BytesIO
    >>> line = b"2026-01-05T10:00:01.250Z 200 5120 https://e.org/ - - text/html #007 20260105100001000+200 sha1:AAAA - -\n"
    >>> [(visit.url, visit.status, visit.payload_digest) for visit in HeritrixLog().read(BytesIO(line), Context())]
    [('https://e.org/', 200, 'sha1:AAAA')]
    """

    name = "heritrix-log"
    cut = Cut.LINES

    def detects(self, head: bytes, filename: str = "") -> bool:
        """Whether a file begins with a line of a crawl log."""
        return bool(_LINE.match(head))

    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        """A visit per line; lookups and robots.txt are skipped and counted."""
        for line in context.lines(stream):
            try:
                yield _visit(line.decode("utf-8", "replace").split(), context.now)
            except BadRecord as error:
                yield error


def _visit(fields: list[str], now: datetime | None) -> Visit:
    if len(fields) < 10:
        raise BadRecord("too few columns", f"{len(fields)} instead of 10 or more")
    logged_at, status, size, url, _, _, mime, _, fetch_time, digest = fields[:10]
    if _NOT_PAGES.match(url):
        raise BadRecord("not a page", url[:80])
    if not re.fullmatch(r"-?\d{1,6}", status):
        raise BadRecord("status is not a number", status[:80])
    code = int(status)
    return Visit(
        url=url,
        at=parse_at(_started_at(fetch_time) or logged_at, now=now),
        status=max(code, 0),
        content_bytes=int(size) if size.isdecimal() else None,
        content_type=None if mime == "-" else mime,
        payload_digest=None if digest == "-" else digest,
        note=f"heritrix status {code}" if code < 0 else None,
    )


def _started_at(fetch_time: str) -> datetime | None:
    """When the fetch began; the time at the beginning of the line is that of its end."""
    match = _FETCH_TIME.fullmatch(fetch_time)
    if match is None:
        return None
    try:
        return datetime.strptime(match[1], "%Y%m%d%H%M%S").replace(microsecond=int(match[2]) * 1000, tzinfo=UTC)
    except ValueError as error:
        raise BadRecord("unreadable time", fetch_time[:80]) from error
