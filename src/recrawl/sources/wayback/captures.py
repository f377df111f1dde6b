"""What an index lists: captures of pages, and how a list is asked for, whatever the server speaks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from recrawl.errors import BadRecord, BadUrl
from recrawl.web.urls import canonical
from recrawl.web.visit import parse_at

REVISIT = "warc/revisit"
EXACT, PREFIX, DOMAIN = "exact", "prefix", "domain"  #: how a URL of a question is meant; the names that servers use
_UNKNOWN = ("", "-", "unk")


@dataclass(frozen=True, slots=True)
class Capture:
    """One line of the index."""

    timestamp: str  # 14 digits, UTC
    original: str  # the URL as it was captured: http and https, with and without www share one index key
    mimetype: str
    status: int | None  # None: not recorded, as in revisits and in TimeMaps
    digest: str | None  # of the payload: base32 SHA-1, or another function's with its name in front
    copy: str | None = None  # the address of the raw copy, where the index names it

    @property
    def key(self) -> tuple[str, str]:
        """What distinguishes captures of one index key."""
        return self.timestamp, self.original

    @property
    def at(self) -> datetime:
        """When it was made."""
        return datetime.strptime(self.timestamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC)

    @property
    def is_revisit(self) -> bool:
        """Whether the archive stored only that the payload is one it already had."""
        return self.mimetype == REVISIT

    @property
    def is_page(self) -> bool:
        """Whether the payload is a page that can have links."""
        return self.status == 200 and self.mimetype.lower().startswith(("text/html", "application/xhtml"))

    @property
    def is_bare(self) -> bool:
        """Whether the index says nothing but the time, as TimeMaps do: what the capture is, only its copy shows."""
        return self.status is None and not self.is_revisit

    @property
    def content_type(self) -> str | None:
        """The type of the payload, where the index states it."""
        return None if self.is_revisit or self.mimetype in _UNKNOWN else self.mimetype


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """A question to the index: which captures of a URL, or of all URLs below it, lie in a span of time."""

    url: str
    match: str = EXACT
    since: str | None = None  # 14 digits, included
    until: str | None = None
    resume_key: str | None = None  # from the page before
    page_size: int = 1000


@dataclass(frozen=True, slots=True)
class IndexPage:
    """One page of the index; `resume_key` is None on the last one."""

    captures: list[Capture]
    resume_key: str | None
    bad: Counter[str] = field(default_factory=Counter)  # lines that cannot be used, by reason

    @property
    def n_lines(self) -> int:
        """How many lines the server sent."""
        return len(self.captures) + self.bad.total()


def read_lines(lines: Iterable[str], parse: Callable[[str], Capture]) -> tuple[list[Capture], Counter[str]]:
    """The captures of all lines, and how many lines cannot be used, by reason."""
    captures: list[Capture] = []
    bad: Counter[str] = Counter()
    for line in lines:
        try:
            captures.append(parse(line))
        except BadRecord as problem:
            bad[problem.reason] += 1
    return captures, bad


def listed(timestamp: str, original: str, mimetype: str, status: str, digest: str) -> Capture:
    """A capture from the texts of an index, checked; raises `BadRecord`.

    >>> listed("20260102030405", "https://e.org/", "text/html", "200", "MOH7IEN2JAEJOHYXIEPEEGHOHG5VI===").digest
    'MOH7IEN2JAEJOHYXIEPEEGHOHG5VI'
    """
    known_digest = None if digest in _UNKNOWN else digest.removeprefix("sha1:").rstrip("=")
    capture = Capture(timestamp, original, mimetype, _status(status), known_digest)
    if capture.is_bare:
        raise BadRecord("capture without status", f"{timestamp} {original[:200]}")
    check(capture)
    return capture


def check(capture: Capture) -> None:
    """Raise `BadRecord` where the time or the URL cannot be used."""
    if len(capture.timestamp) != 14 or not (capture.timestamp.isascii() and capture.timestamp.isdigit()):
        raise BadRecord("unreadable time", capture.timestamp[:80])
    try:
        at = capture.at
    except ValueError:
        raise BadRecord("unreadable time", capture.timestamp) from None
    parse_at(at)
    try:
        canonical(capture.original)
    except BadUrl as error:
        raise BadRecord("not an http URL", capture.original[:200]) from error


def timestamp(at: datetime) -> str:
    """A moment as archives write it.

    >>> timestamp(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    '20260102030405'
    """
    return at.astimezone(UTC).strftime("%Y%m%d%H%M%S")


def moment(digits: str) -> datetime:
    """The moment that 14 digits name."""
    return datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=UTC)


def _status(text: str) -> int | None:
    if text in ("", "-"):
        return None
    if len(text) != 3 or not (text.isascii() and text.isdigit()):
        raise BadRecord("status is not a number", text[:80])
    return int(text)
