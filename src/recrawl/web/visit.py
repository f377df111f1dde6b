"""One fetch of one page and its outcome: the record that everything else is made from.

The record's fields are the columns of JSONL, CSV and Parquet input; `from_record` turns one of them into a `Visit`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any

from recrawl.errors import BadRecord

EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)  # there was no web before
MAX_WEIGHT = 1e12  #: of one page against another; sums of many more would lose digits
MAX_FLOAT32 = 3.4028234663852886e38  #: vectors are kept in 32 bits; a larger number would become infinite
CLOCK_SKEW = timedelta(days=1)  # how far ahead of ours another machine's clock may be


class Outcome(IntEnum):
    """What a status says about the page."""

    OK = 0  # a copy was seen (2xx, 3xx)
    UNCHANGED = 1  # 304, or an archive's revisit record: same as the last known copy
    GONE = 2  # 404, 410
    FAILED = 3  # anything else: says nothing about change

    @classmethod
    def of(cls, status: int) -> Outcome:
        """The outcome of an HTTP status; 0 means that there was no answer at all.

        >>> Outcome.of(200), Outcome.of(304), Outcome.of(410), Outcome.of(0)
        (<Outcome.OK: 0>, <Outcome.UNCHANGED: 1>, <Outcome.GONE: 2>, <Outcome.FAILED: 3>)
        """
        if status == 304:
            return cls.UNCHANGED
        if status in (404, 410):
            return cls.GONE
        return cls.OK if 200 <= status < 400 else cls.FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a source states of a page instead of showing it, on its own scale; None where it says nothing.

    >>> Given(n_internal=12, n_external=3, stand_ins=True).trustrank is None
    True
    """

    n_internal: int | None = None  # outlinks
    n_external: int | None = None
    n_inlinks_internal: int | None = None
    n_inlinks_external: int | None = None
    trustrank: float | None = None
    path_depth: int | None = None
    domain_depth: int | None = None
    stand_ins: bool = False  # the source knows no links; those of the visit are made up: only how many are new is true


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One fetch of one page.

    >>> Visit(url="https://example.org/", at=datetime(2026, 1, 2, tzinfo=UTC), links=["https://example.org/a"]).status
    200
    """

    url: str  # as written; canonicalised when it enters the history
    at: datetime  # UTC, aware
    status: int = 200
    links: Sequence[str] | None = None  # outlinks; None: not known
    base: str | None = None  # what relative links are resolved against; None: all links are absolute
    text: str | None = None  # visible text
    terms: Mapping[str, int] | None = None  # word → count, instead of text
    html: str | None = None  # instead of links and text
    text_digest: str | None = None  # of the visible text without its links
    payload_digest: str | None = None  # of the bytes, as archives record it
    content_bytes: int | None = None
    text_bytes: int | None = None
    text_quality: float | None = None  # 0 to 1
    etag: str | None = None
    last_modified: str | None = None
    content_type: str | None = None
    title: str | None = None
    relevance: float | None = None  # 0 to 1
    importance: float | None = None  # 0 or more: how much the page matters from now on; None: as before, at first 1
    baseline: bool = False
    note: str | None = None
    vector: Sequence[float] | None = None  # semantic vector, where the data brings one
    given: Given | None = None  # what a source states of the page's links and ranks; not a field of records


FIELDS = frozenset(field.name for field in fields(Visit))


def from_record(record: Mapping[str, Any], *, now: datetime | None = None) -> Visit:
    """A visit from one decoded record; raises `BadRecord` with the reason it cannot be used.

    Unknown fields are ignored here; the importer counts them.

    >>> from_record({"url": "https://example.org/", "at": 1767312000}).at.isoformat()
    '2026-01-02T00:00:00+00:00'
    """
    url = record.get("url")
    if not isinstance(url, str) or not url:
        raise BadRecord("no url", repr(url)[:80])
    values: dict[str, Any] = {"url": url, "at": parse_at(record.get("at"), now=now)}
    for name, value in record.items():
        convert = _CONVERT.get(name)
        if convert is not None and value is not None and value != "":
            values[name] = convert(name, value)
    return Visit(**values)


def parse_at(value: Any, *, now: datetime | None = None) -> datetime:
    """When a visit was made: ISO 8601 with a zone, or epoch seconds. Refuses times without a zone, before 1990 or in the future.

    >>> parse_at("2026-01-02T01:00:00+01:00").isoformat()
    '2026-01-02T00:00:00+00:00'
    """
    at = _moment(value)
    if at < EARLIEST:
        raise BadRecord("time before 1990", str(value)[:80])
    if at > (now or datetime.now(UTC)) + CLOCK_SKEW:
        raise BadRecord("time in the future", str(value)[:80])
    return at


def _moment(value: Any) -> datetime:
    try:
        if isinstance(value, str):
            text = value.strip()
            if _is_number(text):
                return datetime.fromtimestamp(float(text), UTC)
            at = datetime.fromisoformat(text)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        elif isinstance(value, datetime):
            at = value
        else:
            raise BadRecord("no time", repr(value)[:80])
        if at.tzinfo is None:
            raise BadRecord("time without zone", str(value)[:80])
        return at.astimezone(UTC)
    except (ValueError, OverflowError, OSError) as error:
        if isinstance(error, BadRecord):
            raise
        raise BadRecord("unreadable time", str(value)[:80]) from error


def _is_number(text: str) -> bool:
    return text.removeprefix("-").replace(".", "", 1).isdigit() and len(text) > 8


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadRecord(f"{name} is not a text", repr(value)[:80])
    return value


def _integer(name: str, value: Any) -> int:
    try:
        number = float(value)  # tables write whole numbers as 200.0 where some are missing
        if not number.is_integer() or isinstance(value, bool):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise BadRecord(f"{name} is not a whole number", repr(value)[:80]) from None
    return int(number)


def _size(name: str, value: Any) -> int:
    number = _integer(name, value)
    if not 0 <= number < 1 << 62:
        raise BadRecord(f"{name} out of range", repr(value)[:80])
    return number


def _status(name: str, value: Any) -> int:
    number = _integer(name, value)
    if not 0 <= number <= 999:
        raise BadRecord("status out of range", repr(value)[:80])
    return number


def _share(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number <= 1:
        raise BadRecord(f"{name} not between 0 and 1", repr(value)[:80])
    return number


def checked_weight(name: str, value: Any) -> float:
    """A number from 0 up; anything else is refused.

    >>> checked_weight("importance", "2.5")
    2.5
    """
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise BadRecord(f"{name} is not a number from 0 up", repr(value)[:80])
    if number > MAX_WEIGHT:
        raise BadRecord(f"{name} is above {MAX_WEIGHT:g}", repr(value)[:80])
    return number + 0.0  # -0 is 0


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, str) and value.lower() in ("true", "false", "0", "1"):
        return value.lower() in ("true", "1")
    if value in (True, False, 0, 1):
        return bool(value)
    raise BadRecord(f"{name} is neither true nor false", repr(value)[:80])


def _links(name: str, value: Any) -> Sequence[str]:
    if isinstance(value, str):  # a CSV cell: URLs hold no white space
        return value.split()
    if not isinstance(value, list | tuple) or not set(map(type, value)) <= {str}:
        raise BadRecord("links is not a list of texts", repr(value)[:80])
    return value


def _vector(name: str, value: Any) -> Sequence[float]:
    if not isinstance(value, list | tuple) or not all(isinstance(x, int | float) for x in value):
        raise BadRecord("vector is not a list of numbers", repr(value)[:80])
    if not all(-MAX_FLOAT32 <= x <= MAX_FLOAT32 for x in value):  # NaN is not, either
        raise BadRecord("vector holds a number out of range", repr(value)[:80])
    return value


def _terms(name: str, value: Any) -> Mapping[str, int]:
    if isinstance(value, list) and all(isinstance(pair, tuple) for pair in value):  # a Parquet map
        value = dict(value)
    if not isinstance(value, dict) or not set(map(type, value)) <= {str}:
        raise BadRecord("terms is not an object", repr(value)[:80])
    counts = value.values()
    if not set(map(type, counts)) <= {int} or min(counts, default=1) < 1 or max(counts, default=1) >= 1 << 31:
        raise BadRecord("terms holds a count that is not a positive whole number", repr(value)[:80])
    return value


_CONVERT = {
    "status": _status, "links": _links, "text": _text, "terms": _terms, "html": _text, "text_digest": _text,
    "payload_digest": _text, "content_bytes": _size, "text_bytes": _size, "text_quality": _share, "etag": _text,
    "last_modified": _text, "content_type": _text, "title": _text, "relevance": _share, "baseline": _flag, "note": _text,
    "vector": _vector, "importance": checked_weight,
}  # fmt: skip
