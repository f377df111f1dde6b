"""The visit record as JSON lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

import orjson

from recrawl.errors import BadRecord
from recrawl.web.visit import FIELDS, Visit, from_record

KNOWN = FIELDS - {"base"}  #: what a record may hold; anything else is counted as unknown


def looks_like(head: bytes) -> bool:
    """Whether a file begins as JSON lines of objects."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")


def read(
    lines: Iterable[bytes], first_line: bytes, *, unknown: Counter[str] | None = None, now: datetime | None = None
) -> Iterator[Visit | BadRecord]:
    """Visits of JSON lines; fields that a visit does not have are counted in `unknown`."""
    for line in lines:
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            yield BadRecord("not JSON", f"{str(error)[:80]} in {line[:60]!r}")
            continue
        if not isinstance(record, dict):
            yield BadRecord("not a JSON object", repr(line[:60]))
            continue
        if unknown is not None and not record.keys() <= KNOWN:
            unknown.update(record.keys() - KNOWN)
        try:
            yield from_record(record, now=now)
        except BadRecord as error:
            yield error
