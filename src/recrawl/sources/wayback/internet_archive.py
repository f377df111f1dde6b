"""The CDX server of the Internet Archive: pages of captures, each with the key of the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self
from urllib.parse import urlencode

from recrawl.errors import ArchiveError, BadRecord, TryAgain
from recrawl.sources.wayback.captures import Capture, IndexPage, IndexRequest, listed, read_lines
from recrawl.sources.wayback.client import Client
from recrawl.sources.wayback.interface import Answer, Interface, get, short, whole_lines

_ERROR_HEADER = "x-archive-wayback-runtime-error"


@dataclass(frozen=True)
class InternetArchive(Interface):
    """``/cdx/search/cdx`` lists captures, ``/web/<time>id_/<url>`` shows them."""

    name: ClassVar[str] = "internet-archive"

    @classmethod
    def places(cls, server: str) -> tuple[Self, ...]:
        """The paths of web.archive.org."""
        return (cls(f"{server}/cdx/search/cdx", f"{server}/web"),)

    def probe(self, url: str) -> str:
        """One capture of the URL."""
        return f"{self.index}?{urlencode({'url': url, 'matchType': 'exact', 'limit': 1, 'showResumeKey': 'true'})}"

    def recognises(self, answer: Answer) -> bool:
        """Seven fields a line; an empty answer only as plain text, since other servers have empty pages, too."""
        if _ERROR_HEADER in answer.headers:
            return True
        if answer.status != 200 or answer.is_html:
            return False
        try:
            return bool(parse_answer(answer.text).captures) or answer.content_type == "text/plain"
        except ArchiveError:
            return False

    def ask(self, client: Client, request: IndexRequest) -> IndexPage:
        """One page of captures.

        Without `collapse`, which would drop unchanged captures: that a page did not change is half of its history.
        """
        parameters: dict[str, Any] = {"url": request.url, "matchType": request.match}
        parameters |= {"limit": request.page_size, "showResumeKey": "true"}
        optional = {"from": request.since, "to": request.until, "resumeKey": request.resume_key}
        parameters |= {name: value for name, value in optional.items() if value is not None}
        page = get(client, f"{self.index}?{urlencode(parameters)}", lambda answer: _page(answer, request.page_size))
        if page.resume_key is not None and not page.n_lines:
            raise ArchiveError(f"the index does not advance: no captures before resume key {page.resume_key!r}")
        return page


def _page(answer: Answer, page_size: int) -> IndexPage:
    if complaint := answer.headers.get(_ERROR_HEADER):
        raise ArchiveError(f"the index refused: {short(complaint)}")
    if answer.status != 200:
        raise ArchiveError(f"the index answered {answer.status}: {short(answer.text)}")
    page = parse_answer(answer.text)
    if page.resume_key is None and page.n_lines >= page_size:
        # A full page is always followed by a key, even when the next one turns out to be empty.
        raise TryAgain("the index sent a full page without a resume key")
    return page


def parse_answer(text: str) -> IndexPage:
    r"""The captures of one answer: a line each, and after a blank line the key to go on with.

    An empty text is a true "no captures"; anything that is not an index raises: no error passes for an empty answer.

    >>> answer = parse_answer("org,e)/ 20260102030405 https://e.org/ text/html 200 ABC 123\n\norg%2Ce%29%2F+20260102\n")
    >>> answer.captures[0].at.isoformat(), answer.resume_key
    ('2026-01-02T03:04:05+00:00', 'org%2Ce%29%2F+20260102')
    """
    lines = whole_lines(text)
    resume_key = None
    if len(lines) > 1 and not lines[-2]:
        resume_key = lines.pop()
    captures, bad = read_lines(filter(None, lines), parse_line)
    if bad and not captures:
        raise TryAgain(f"the index sent something that is not a list of captures: {short(text)}")
    return IndexPage(captures, resume_key, bad)


def parse_line(line: str) -> Capture:
    """One capture: url key, timestamp, original URL, MIME type, status, digest, length.

    >>> parse_line("com,dw)/ 20191001012455 http://www.dw.com/ warc/revisit - 3I42H3S6 432").is_revisit
    True
    """
    fields = line.split(" ")
    if len(fields) != 7:
        raise BadRecord("index line without 7 fields", line[:200])
    return listed(*fields[1:6])
