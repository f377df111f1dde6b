"""Capture indexes → visits: a history of digests without links.

CDX with any header, or without one in 7, 9 and 11 fields; CDXJ; the JSON lines of index servers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, BinaryIO

import orjson

from recrawl.errors import BadRecord
from recrawl.sources.base import Context, Cut, Source
from recrawl.web.visit import Visit, parse_at

#: The letters of a CDX header that are used here.
LETTERS = {"b": "timestamp", "a": "url", "m": "mime", "s": "status", "k": "digest"}
HEADERS = {
    11: "N b a m s k r M S V g",
    10: "N b a m s k r M V g",
    9: "N b a m s k r V g",
    7: "N b a m s k S",
    6: "N b a m s k",
}
_PLAIN = re.compile(rb"^\S+ \d{4,14} \S+ \S+ (\d{3}|-) \S+")
_JSON = re.compile(rb"^\S+ \d{4,14} \{")
_LINE = re.compile(rb'^\{.*"timestamp"\s*:\s*"\d{4,14}"', re.DOTALL)


class Cdx(Source):
    """CDX indexes, with or without a header line that names the fields."""

    name = "cdx"
    cut = Cut.LINES

    def detects(self, head: bytes, filename: str = "") -> bool:
        """Whether a file begins with a CDX header or a capture."""
        return head.lstrip(b"\xef\xbb\xbf").startswith((b" CDX ", b"CDX ")) or bool(_PLAIN.match(head))

    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        """A visit per capture; the first line of the file names the fields if it is a header."""
        first = context.first_line
        letters = first.decode("utf-8-sig", "replace").split()[1:] if _is_header(first) else None
        n_fields = len(letters) if letters else len(first.split())
        for line in context.lines(stream):
            if _is_header(line):
                continue
            for fields in _split_joined(line.decode("utf-8", "replace").split(), n_fields):
                try:
                    yield _visit(_values(letters or _letters(fields), fields), context.now)
                except BadRecord as error:
                    yield error


def _values(letters: list[str], fields: list[str]) -> dict[str, str]:
    """The fields that are used, by name."""
    if len(fields) != len(letters):
        raise BadRecord("wrong number of CDX fields", f"{len(fields)} instead of {len(letters)}")
    by_letter = zip(letters, fields, strict=True)
    return {LETTERS[letter]: value for letter, value in by_letter if letter in LETTERS and value != "-"}


def _split_joined(fields: list[str], n: int) -> list[list[str]]:
    """One capture, or the two of a line whose end was lost between the blocks of a ZipNum index.

    The last field of the first is then joined with the first field of the second. Neither is used.
    """
    return [fields[:n], fields[n - 1 :]] if n in (9, 10, 11) and len(fields) == 2 * n - 1 else [fields]


def _is_header(line: bytes) -> bool:
    """Whether a line names the fields of a CDX file."""
    return line.lstrip(b"\xef\xbb\xbf").lstrip().startswith(b"CDX ")


def _letters(fields: list[str]) -> list[str]:
    if len(fields) not in HEADERS:
        raise BadRecord("wrong number of CDX fields", f"{len(fields)}; known without a header: 6, 7, 9, 10, 11")
    return HEADERS[len(fields)].split()


class Cdxj(Source):
    """CDXJ indexes: ``key time {json}``, or one JSON object per line with a timestamp, as index servers send it."""

    name = "cdxj"
    cut = Cut.LINES

    def detects(self, head: bytes, filename: str = "") -> bool:
        """Whether a file begins with a capture and JSON, with a JSON object that has a timestamp, or with a CDXJ header."""
        line = head.partition(b"\n")[0]
        has_timestamp = _LINE.match(line) and b'"at"' not in line
        return bool(_JSON.match(line) or has_timestamp) or line.startswith((b"!OpenWayback-CDXJ", b"!meta"))

    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        """A visit per capture."""
        for line in context.lines(stream):
            if line.startswith(b"!"):
                continue
            try:
                head, _, rest = line.partition(b"{")
                values = orjson.loads(b"{" + rest)
                words = head.split()
                if words:
                    values["timestamp"] = words[-1].decode("ascii", "replace")
                stated = {name: value for name, value in values.items() if value not in (None, "", "-")}
                yield _visit(stated, context.now)
            except ValueError as error:
                yield error if isinstance(error, BadRecord) else BadRecord("not CDXJ", repr(line[:80]))


def _visit(values: Mapping[str, Any], now: datetime | None) -> Visit:
    url = values.get("url") or values.get("original")
    if not isinstance(url, str):
        raise BadRecord("no url", repr(url))
    mime = str(values.get("mime") or values.get("mimetype") or "")
    digest = values.get("digest")
    return Visit(
        url=url,
        at=parse_at(capture_time(str(values.get("timestamp", ""))), now=now),
        status=304 if mime == "warc/revisit" else _status(values.get("status") or values.get("statuscode")),
        payload_digest=payload_digest(str(digest)) if digest else None,
        content_type=mime if "/" in mime and mime != "warc/revisit" else None,
    )


def capture_time(digits: str) -> datetime:
    """The moment of a 14-digit time; missing digits mean the beginning of the period.

    >>> capture_time("20160225042329").isoformat(), capture_time("2016").isoformat()
    ('2016-02-25T04:23:29+00:00', '2016-01-01T00:00:00+00:00')
    """
    try:
        if not digits.isdigit() or not 4 <= len(digits) <= 14:
            raise ValueError
        return datetime.strptime(digits + "00000101000000"[len(digits) :], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise BadRecord("unreadable time", repr(digits[:40])) from None


def payload_digest(digest: str) -> str:
    """A digest with its algorithm, as WARC records write it.

    >>> payload_digest("B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A")
    'sha1:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A'
    """
    return digest if ":" in digest else f"sha1:{digest}"


def _status(value: Any) -> int:
    if value is None:
        return 200  # not recorded: captures are kept of answers
    text = str(value)
    if not (text.isascii() and text.isdigit() and len(text) <= 3):
        raise BadRecord("unreadable status", repr(value)[:40])
    return int(text)
