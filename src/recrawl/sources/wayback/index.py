"""The index of the archive: which captures of a URL there are (the CDX server of the Internet Archive)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import httpx

from recrawl.errors import ArchiveError, BadRecord, BadUrl, TryAgain
from recrawl.sources.bodies import decoded
from recrawl.sources.wayback.client import Client, content_encoding
from recrawl.web.urls import canonical
from recrawl.web.visit import parse_at

PAGE_SIZE = 1000  # captures in one answer
_LARGEST = 64 << 20  # bytes of one answer, far above any page of captures
REVISIT = "warc/revisit"
_ERROR_HEADER = "x-archive-wayback-runtime-error"


@dataclass(frozen=True, slots=True)
class Capture:
    """One line of the index."""

    timestamp: str  # 14 digits, UTC
    original: str  # the URL as it was captured: http and https, with and without www share one index key
    mimetype: str
    status: int | None  # None: not recorded, as in revisits
    digest: str | None  # base32 SHA-1 of the payload

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


@dataclass(frozen=True, slots=True)
class IndexPage:
    """One page of the index; `resume_key` is None on the last one."""

    captures: list[Capture]
    resume_key: str | None
    bad: Counter[str] = field(default_factory=Counter)  # lines that cannot be used, by reason


def ask_index(
    client: Client, url: str, since: str | None, until: str | None, resume_key: str | None, page_size: int
) -> IndexPage:
    """One page of the captures of exactly this URL.

    Without `collapse`, which would drop unchanged captures: that a page did not change is half of its history.
    """
    parameters: dict[str, Any] = {"url": url, "matchType": "exact", "limit": page_size, "showResumeKey": "true"}
    optional = {"from": since, "to": until, "resumeKey": resume_key}
    parameters |= {name: value for name, value in optional.items() if value is not None}
    address = f"{client.base_url}/cdx/search/cdx?{urlencode(parameters)}"
    answer = client.ask(address, client.index_pace, lambda response: _read(client, response, page_size))
    if answer.resume_key is not None and not answer.captures:
        raise ArchiveError(f"the index does not advance: no captures before resume key {answer.resume_key!r}")
    return answer


def _read(client: Client, response: httpx.Response, page_size: int) -> IndexPage:
    body = client.raw_body(response, _LARGEST)
    if body is None:
        raise TryAgain(f"the index sent more than {_LARGEST >> 20} MiB")
    try:
        text = decoded(body, content_encoding(response), _LARGEST).decode("utf-8", "replace")
    except BadRecord as error:
        raise TryAgain(f"the index sent a broken body: {error}") from error
    if complaint := response.headers.get(_ERROR_HEADER):
        raise ArchiveError(f"the index refused: {_short(complaint)}")
    if response.status_code != 200:
        raise ArchiveError(f"the index answered {response.status_code}: {_short(text)}")
    answer = parse_answer(text)
    if answer.resume_key is None and len(answer.captures) + answer.bad.total() >= page_size:
        # A full page is always followed by a key, even when the next one turns out to be empty.
        raise TryAgain("the index sent a full page without a resume key")
    return answer


def parse_answer(text: str) -> IndexPage:
    r"""The captures of one answer: a line each, and after a blank line the key to go on with.

    An empty text is a true "no captures"; anything that is not an index raises: no error passes for an empty answer.

    >>> answer = parse_answer("org,e)/ 20260102030405 https://e.org/ text/html 200 ABC 123\n\norg%2Ce%29%2F+20260102\n")
    >>> answer.captures[0].at.isoformat(), answer.resume_key
    ('2026-01-02T03:04:05+00:00', 'org%2Ce%29%2F+20260102')
    """
    lines = text.split("\n")
    for line in lines:
        if line.startswith(("<", "{", "[", "org.archive.", "java.")):
            raise TryAgain(f"the index sent an error instead of captures: {_short(line)}")
    if lines.pop():
        raise TryAgain("the index sent a truncated answer: its last line does not end")
    resume_key = None
    if len(lines) > 1 and not lines[-2]:
        resume_key = lines.pop()
    captures: list[Capture] = []
    bad: Counter[str] = Counter()
    for line in filter(None, lines):
        try:
            captures.append(parse_line(line))
        except BadRecord as problem:
            bad[problem.reason] += 1
    if bad and not captures:
        raise TryAgain(f"the index sent something that is not a list of captures: {_short(text)}")
    return IndexPage(captures, resume_key, bad)


def parse_line(line: str) -> Capture:
    """One capture: url key, timestamp, original URL, MIME type, status, digest, length.

    >>> parse_line("com,dw)/ 20191001012455 http://www.dw.com/ warc/revisit - 3I42H3S6 432").is_revisit
    True
    """
    fields = line.split(" ")
    if len(fields) != 7:
        raise BadRecord("index line without 7 fields", line[:200])
    _, timestamp, original, mimetype, status, digest, _ = fields
    capture = Capture(timestamp, original, mimetype, _status(status), None if digest == "-" else digest)
    if capture.status is None and not capture.is_revisit:
        raise BadRecord("capture without status", line[:200])
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


def _status(text: str) -> int | None:
    if text == "-":
        return None
    if len(text) != 3 or not (text.isascii() and text.isdigit()):
        raise BadRecord("status is not a number", text[:80])
    return int(text)


def _short(text: str) -> str:
    return repr(" ".join(text[:400].split())[:160])
