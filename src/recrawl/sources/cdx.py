"""Capture indexes → visits: a history of digests without links.

CDX with any header, or without one in 7, 9 and 11 fields; CDXJ; the JSON lines of index servers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from recrawl.errors import BadRecord
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


def looks_like_cdx(head: bytes) -> bool:
    """Whether a file begins as a CDX index, with or without its header line."""
    return head.lstrip(b"\xef\xbb\xbf").startswith((b" CDX ", b"CDX ")) or bool(_PLAIN.match(head))


def looks_like_cdxj(head: bytes) -> bool:
    """Whether a file begins as CDXJ or as an index server's JSON lines."""
    line = head.partition(b"\n")[0]
    return bool(_JSON.match(line) or (_LINE.match(line) and b'"at"' not in line)) or line.startswith(
        (b"!OpenWayback-CDXJ", b"!meta")
    )


def read_cdx(lines: Iterable[bytes], first_line: bytes, *, now: datetime | None = None) -> Iterator[Visit | BadRecord]:
    """Visits of CDX lines; `first_line` is that of the file and tells the fields if it is a header."""
    letters = first_line.decode("utf-8-sig", "replace").split()[1:] if looks_like_header(first_line) else None
    n_first = len(first_line.split())
    for line in lines:
        if looks_like_header(line):
            continue
        for fields in _parted(line.decode("utf-8", "replace").split(), len(letters) if letters else n_first):
            try:
                names = letters or _letters(fields)
                if len(fields) != len(names):
                    raise BadRecord("wrong number of CDX fields", f"{len(fields)} instead of {len(names)}")
                named = zip(names, fields, strict=True)
                yield _visit({LETTERS[name]: field for name, field in named if name in LETTERS and field != "-"}, now)
            except BadRecord as error:
                yield error


def _parted(fields: list[str], n: int) -> list[list[str]]:
    """One capture, or the two of a line whose end was lost between the blocks of a ZipNum index.

    The last field of the first has then grown together with the first of the second. Neither is used.
    """
    return [fields[:n], fields[n - 1 :]] if n in (9, 10, 11) and len(fields) == 2 * n - 1 else [fields]


def looks_like_header(line: bytes) -> bool:
    """Whether a line names the fields of a CDX file."""
    return line.lstrip(b"\xef\xbb\xbf").lstrip().startswith(b"CDX ")


def _letters(fields: list[str]) -> list[str]:
    if len(fields) not in HEADERS:
        raise BadRecord("wrong number of CDX fields", f"{len(fields)}; known without a header: 6, 7, 9, 10, 11")
    return HEADERS[len(fields)].split()


def read_cdxj(lines: Iterable[bytes], first_line: bytes, *, now: datetime | None = None) -> Iterator[Visit | BadRecord]:
    """Visits of CDXJ lines: ``key time {json}``, or one JSON object a line with a timestamp."""
    for line in lines:
        if line.startswith(b"!"):
            continue
        try:
            head, _, rest = line.partition(b"{")
            values = orjson.loads(b"{" + rest)
            words = head.split()
            if words:
                values["timestamp"] = words[-1].decode("ascii", "replace")
            yield _visit({name: value for name, value in values.items() if value not in (None, "", "-")}, now)
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
