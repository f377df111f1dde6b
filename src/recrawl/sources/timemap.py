"""TimeMaps (RFC 7089): lists of an archive's copies of one page → visits without links.

Link format, and the JSON of archives: rows below a header row (Wayback), one object (Time Travel, MemGator), or one
object per line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import pairwise
from typing import Any, BinaryIO

import orjson

from recrawl.errors import BadRecord, BadSource
from recrawl.sources.base import Context, Source
from recrawl.sources.cdx import capture_time, payload_digest
from recrawl.web.visit import Visit, parse_at

_URI = re.compile(r"\s*<([^<>]*)>")
_PARAMETER = re.compile(r'\s*;\s*(?:([^\s=;,"<>]+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"<>]*)))?)?', re.DOTALL)
_COMMA = re.compile(r"\s*(?:,\s*|$)")
_NEXT = re.compile(r",\s*(?=<)")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)

#: ``…/web/20260102030405id_/https://e.org/``: where archives put the page's own URL.
_WITHIN = re.compile(r"/\d{4,14}(?:[a-z]{2}_)?/(https?://?.+)", re.DOTALL)
_LINE = re.compile(rb"(?:(\d{4,14})\s+)?(\{.*)", re.DOTALL)
_LIST = re.compile(rb"\[\s*(?:\]\s*$|\[[^\]]*\"timestamp\")")
_OBJECT = re.compile(rb'"original_uri"\s*:|"mementos"\s*:\s*\{|"timemap_index"\s*:')
_LINKS = re.compile(rb"<[^<>]+>\s*;[^<]*\brel\s*=", re.IGNORECASE)

MORE = "timemap has more pages"


class TimeMap(Source):
    """TimeMaps in link format, and in the JSON of archives and aggregators.

    >>> from io import BytesIO
    >>> data = (b'<https://e.org/>; rel="original", <https://a/1>; rel="first memento"; '
    ...         b'datetime="Fri, 02 Jan 2026 00:00:00 GMT"')
    >>> visit, = TimeMap().read(BytesIO(data), Context())
    >>> visit.url, visit.at.isoformat()
    ('https://e.org/', '2026-01-02T00:00:00+00:00')
    """

    name = "timemap"

    def detects(self, head: bytes, filename: str = "") -> bool:
        """Whether a file begins as a TimeMap.

        >>> TimeMap().detects(b'<https://e.org/>; rel="original",'), TimeMap().detects(b"<html><body>")
        (True, False)
        """
        head = _bare(head)
        if head.startswith(b"{"):
            line = head.partition(b"\n")[0]
            return bool(_OBJECT.search(head)) or (b'"datetime"' in line and b'"uri"' in line)
        return bool(_LINKS.match(head) or _LIST.match(head)) or head.startswith(b"!context")

    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        """A visit for each memento, and a `BadRecord` for each entry that cannot be used.

        A map that is one of several pages says so by a `BadRecord` for each of the others: they have to be fetched too.
        """
        for entry in entries(_bare(_all(stream, context.max_body))):
            try:
                yield entry if isinstance(entry, BadRecord) else entry.visit(context.now)
            except BadRecord as problem:
                yield problem


def _all(stream: BinaryIO, limit: int) -> bytes:
    data = stream.read(limit + 1)
    if len(data) > limit:
        raise BadSource(f"it is larger than {limit >> 20} MiB; --max-body takes a larger number")
    return data


@dataclass(frozen=True, slots=True)
class MapEntry:
    """One copy as the map lists it, nothing checked yet."""

    original: Any
    at: Any  # 14 digits, RFC 1123 or ISO 8601
    uri: Any = None  # of the copy
    status: Any = None
    mimetype: Any = None
    digest: Any = None

    def visit(self, now: datetime | None) -> Visit:
        """The visit that the entry shows; raises `BadRecord`."""
        mimetype = self.mimetype if isinstance(self.mimetype, str) and "/" in self.mimetype else None
        revisit = mimetype == "warc/revisit"
        return Visit(
            url=self._url(),
            at=parse_at(_moment(self.at), now=now),
            status=304 if revisit else _status(self.status),
            payload_digest=payload_digest(self.digest) if self.digest and isinstance(self.digest, str) else None,
            content_type=None if revisit else mimetype,
        )

    def _url(self) -> str:
        if isinstance(self.original, str) and self.original:
            return self.original
        within = _WITHIN.search(self.uri) if isinstance(self.uri, str) else None
        if within is None:
            raise BadRecord("no url", f"memento {str(self.uri)[:200]!r} of an unnamed original")
        return within[1]


def _bare(data: bytes) -> bytes:
    return data.removeprefix(b"\xef\xbb\xbf").lstrip()


def entries(data: bytes) -> Iterable[MapEntry | BadRecord]:
    """What a map lists, in any of its formats; a further page of it is a `BadRecord` of the reason `MORE`."""
    if data.startswith(b"<"):
        return _of_links(list(_links(data.decode("utf-8", "replace"))))
    if data[:1] in (b"[", b"{"):
        try:
            return _of_json(orjson.loads(data))
        except ValueError:
            pass  # then every line may be one
    return _of_lines(data)


# Link format


@dataclass(frozen=True, slots=True)
class _Link:
    uri: str
    parameters: Mapping[str, str]

    @property
    def relations(self) -> frozenset[str]:
        return frozenset(self.parameters.get("rel", "").lower().split())


def _links(text: str) -> Iterator[_Link | BadRecord]:
    """The links of a link-format text; commas occur inside URIs and dates, so it is parsed and never split."""
    at = 0
    while at < len(text):
        link, end = _link(text, at)
        comma = _COMMA.match(text, end)
        if link is not None and comma:
            yield link
            at = comma.end()
        else:
            yield BadRecord("not a link", repr(text[at : at + 80]))
            onward = _NEXT.search(text, max(end, at))
            at = onward.end() if onward else len(text)


def _link(text: str, at: int) -> tuple[_Link | None, int]:
    """The link that begins here and where it ends."""
    uri = _URI.match(text, at)
    if uri is None:
        return None, at
    parameters: dict[str, str] = {}
    end = uri.end()
    while parameter := _PARAMETER.match(text, end):
        name, quoted, token = parameter.groups()
        if name:  # the first of a name counts (RFC 8288, section 3)
            value = token or "" if quoted is None else _ESCAPED.sub(r"\1", quoted)
            parameters.setdefault(name.lower(), value)
        end = parameter.end()
    return _Link(uri[1].strip(), parameters), end


def _of_links(links: list[_Link | BadRecord]) -> Iterator[MapEntry | BadRecord]:
    known = [link for link in links if isinstance(link, _Link)]
    original = next((link.uri for link in known if "original" in link.relations), None)
    own = {link.uri for link in known if "self" in link.relations}
    for link in links:
        if isinstance(link, BadRecord):
            yield link
        elif "memento" in link.relations:
            yield MapEntry(original, link.parameters.get("datetime"), link.uri)
        elif "timemap" in link.relations and link.uri not in own and _is_page(link.parameters):
            yield BadRecord(MORE, link.uri[:2000])


def _is_page(parameters: Mapping[str, str]) -> bool:
    """Whether a linked map is a further page, and not this one in another format."""
    in_links = parameters.get("type", "").lower().startswith("application/link-format")
    return in_links or "from" in parameters or "until" in parameters


# JSON


def _of_json(document: Any) -> Iterator[MapEntry | BadRecord]:
    if isinstance(document, list):
        return _of_rows(document)
    if isinstance(document.get("mementos"), dict) or "timemap_index" in document:
        return _of_object(document)
    return iter([_of_record(document, document.get("original_uri"))])


def _of_rows(rows: list[Any]) -> Iterator[MapEntry | BadRecord]:
    """Rows below a header row; the index server ends a page with an empty row and the key of the next page."""
    if not rows:
        return
    header = rows[0]
    if not isinstance(header, list) or "timestamp" not in header:
        yield BadRecord("TimeMap without a header row", repr(header)[:80])
        return
    for before, row in pairwise(rows):
        if before == [] and isinstance(row, list) and len(row) == 1:
            yield BadRecord(MORE, f"resumeKey={str(row[0])[:2000]}")
        elif not isinstance(row, list) or len(row) != len(header):
            if row != []:
                yield BadRecord("row unlike the header", repr(row)[:80])
        else:
            yield _of_record(dict(zip(map(str, header), row, strict=True)), None)


def _of_object(document: Mapping[str, Any]) -> Iterator[MapEntry | BadRecord]:
    mementos, original = document.get("mementos") or {}, document.get("original_uri")
    seen: set[Any] = set()
    for name in ("list", "first", "prev", "next", "last"):
        listed = mementos.get(name) if isinstance(mementos, dict) else None
        for record in listed if isinstance(listed, list) else [listed] if listed else []:
            entry = _of_record(record, original)
            key = repr(record)
            if key not in seen:  # the first and the last are listed twice
                yield entry
            seen.add(key)
    yield from _further_pages(document)


def _further_pages(document: Mapping[str, Any]) -> Iterator[BadRecord]:
    index, pages = document.get("timemap_index"), document.get("pages")
    listed = list(index) if isinstance(index, list) else []
    listed += pages.values() if isinstance(pages, dict) else []
    for page in listed:
        uri = page.get("uri") if isinstance(page, dict) else page
        yield BadRecord(MORE, str(uri)[:2000])


def _of_record(record: Any, original: Any) -> MapEntry | BadRecord:
    """An entry under the names that the index servers and the map servers use."""
    if not isinstance(record, dict):
        return BadRecord("not a memento", repr(record)[:80])
    return MapEntry(
        original=record.get("original") or record.get("url") or original,
        at=record.get("timestamp") or record.get("datetime"),
        uri=record.get("uri"),
        status=record.get("statuscode") or record.get("status"),
        mimetype=record.get("mimetype") or record.get("mime"),
        digest=None if record.get("digest") == "-" else record.get("digest"),
    )


def _of_lines(data: bytes) -> Iterator[MapEntry | BadRecord]:
    """One object per line, with or without its time in front; lines with ``!`` are about the map itself."""
    original: Any = None
    for line in data.splitlines():
        if line.startswith(b"!id"):
            named = _object(line[3:])
            original = named.get("uri") if named else original
        elif line.strip() and not line.startswith(b"!"):
            yield _of_line(line.strip(), original)


def _of_line(line: bytes, original: Any) -> MapEntry | BadRecord:
    parts = _LINE.match(line)
    record = _object(parts[2]) if parts else None
    if parts is None or record is None:
        return BadRecord("not a TimeMap", repr(line[:80]))
    if parts[1]:
        record.setdefault("timestamp", parts[1].decode())
    return _of_record(record, original)


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


# Values


def _moment(value: Any) -> datetime:
    if not isinstance(value, str) or not value:
        raise BadRecord("no time", repr(value)[:80])
    if value.isascii() and value.isdigit():
        return capture_time(value)
    if value[:4].isdigit():
        at: datetime = parse_at(value)
        return at
    try:
        at = parsedate_to_datetime(value)
        return at.replace(tzinfo=at.tzinfo or UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        raise BadRecord("unreadable time", repr(value)[:80]) from None


def _status(value: Any) -> int:
    if value in (None, "", "-"):
        return 200  # an archive keeps what it got; where it does not say, that was a page
    text = str(value)
    if not (text.isascii() and text.isdigit() and len(text) <= 3):
        raise BadRecord("status is not a number", repr(value)[:80])
    return int(text)
