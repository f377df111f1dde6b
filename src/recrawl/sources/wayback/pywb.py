"""The CDX server of pywb, which most national and institutional archives run, and of Common Crawl.

References: pywb documentation, "CDXJ Server API".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self
from urllib.parse import urlencode

import orjson

from recrawl.errors import ArchiveError, BadRecord, TryAgain
from recrawl.sources.wayback.captures import EXACT, Capture, IndexPage, IndexRequest, listed, read_lines
from recrawl.sources.wayback.client import Client
from recrawl.sources.wayback.interface import Answer, Interface, get, lines_of, short
from recrawl.sources.wayback.windows import Window, ask_by_time

_FIELDS = "urlkey,timestamp,url,mime,status,digest,method"
_TYPES = ("text/x-ndjson", "application/x-ndjson", "text/x-cdxj")
_LINES_OF_A_BLOCK = 3000  # in a compressed index (ZipNum), whose pages are counted in blocks
_PAGE_LINES = 100_000  # the server's own limit, above any page of blocks
_NUMBERED = "page "


@dataclass(frozen=True)
class Pywb(Interface):
    """``/COLL/cdx`` lists captures, one JSON object a line; ``/COLL/<time>id_/<url>`` shows them.

    A plain index has no pages: full answers are asked for again in smaller spans of time. A compressed one (ZipNum) has numbered
    pages, and answers with the first alone where none is named, so the number of pages is asked for.
    """

    name: ClassVar[str] = "pywb"

    @classmethod
    def places(cls, server: str) -> tuple[Self, ...]:
        """Below a collection; or the address of the index itself."""
        if server.endswith("/cdx"):
            return (cls(server, server.removesuffix("/cdx")),)
        return (cls(f"{server}/cdx", server), cls(server, None))

    def probe(self, url: str) -> str:
        """One capture of the URL."""
        return self._address({"url": url, "limit": 1})

    def recognises(self, answer: Answer) -> bool:
        """JSON objects with a time, or an empty answer of pywb's own type."""
        if answer.status != 200:
            return False
        if not answer.text.strip():
            return answer.content_type in _TYPES
        try:
            return bool(_page(answer).captures)
        except ArchiveError:
            return False

    def ask(self, client: Client, request: IndexRequest) -> IndexPage:
        """One page of captures."""
        begins = request.resume_key is None
        if (request.resume_key or "").startswith(_NUMBERED):
            return self._numbered(client, request)
        if begins and request.match != EXACT and (n := self._n_pages(client, request)) is not None:
            return self._numbered(client, replace(request, resume_key=f"{_NUMBERED}0 of {n}"))
        page = ask_by_time(request, client.clock.now(), lambda *of: self._window(client, request, *of))
        if begins and page.resume_key is not None and (n := self._n_pages(client, request) or 0) > 1:
            return replace(page, resume_key=f"{_NUMBERED}0 of {n}")
        return page

    def _window(self, client: Client, request: IndexRequest, window: Window, size: int) -> IndexPage:
        bounded = request.since or request.until or request.resume_key is not None
        span = {"from": window[0], "to": window[1]} if bounded else {}
        return get(client, self._address(_asked(request) | span | {"limit": size}), _page)

    def _n_pages(self, client: Client, request: IndexRequest) -> int | None:
        """How many numbered pages there are; None where the index has none."""
        asked = _asked(request) | {"showNumPages": "true", "pageSize": _blocks(request), "limit": 1}
        return get(client, self._address(asked), _number_of_pages)

    def _numbered(self, client: Client, request: IndexRequest) -> IndexPage:
        number, n_pages = _position(request.resume_key or "")
        if number >= n_pages:
            return IndexPage([], None)
        span = {"from": request.since, "to": request.until}
        asked = _asked(request) | {name: value for name, value in span.items() if value is not None}
        asked |= {"page": number, "pageSize": _blocks(request), "limit": _PAGE_LINES}
        page = get(client, self._address(asked), _page)
        following = f"{_NUMBERED}{number + 1} of {n_pages}" if number + 1 < n_pages else None
        return IndexPage(page.captures, following, page.bad)

    def _address(self, asked: dict[str, Any]) -> str:
        # Fuzzy matches are captures of other pages.
        return f"{self.index}?{urlencode(asked | {'output': 'json', 'allowFuzzy': '0', 'fl': _FIELDS})}"


def _asked(request: IndexRequest) -> dict[str, Any]:
    return {"url": request.url, "matchType": request.match}


def _blocks(request: IndexRequest) -> int:
    return max(1, request.page_size // _LINES_OF_A_BLOCK)


def _position(resume_key: str) -> tuple[int, int]:
    number, _, n_pages = resume_key.removeprefix(_NUMBERED).partition(" of ")
    if not (number.isdigit() and n_pages.isdigit()):
        raise ArchiveError(f"cannot go on from {resume_key[:80]!r}: not the number of a page")
    return int(number), int(n_pages)


def _page(answer: Answer) -> IndexPage:
    lines = list(filter(None, lines_of(answer, begins="{")))
    captures, bad = read_lines(lines, parse_line)
    if bad and not captures and not any('"timestamp"' in line for line in lines):
        raise TryAgain(f"the index sent something that is not a list of captures: {short(answer.text)}")
    return IndexPage(captures, None, bad)


def _number_of_pages(answer: Answer) -> int | None:
    if answer.status != 200:
        raise ArchiveError(f"the index answered {answer.status}: {short(answer.text)}")
    try:
        pages = orjson.loads(answer.text.partition("\n")[0] or "{}").get("pages")
    except (ValueError, AttributeError):
        return None
    return pages if isinstance(pages, int) and pages >= 0 else None


def parse_line(line: str) -> Capture:
    """One capture: an object of texts.

    >>> parse_line('{"timestamp": "20260102030405", "url": "https://e.org/", "mime": "warc/revisit", "digest": "AB"}').is_revisit
    True
    """
    try:
        values = orjson.loads(line)
    except ValueError:
        raise BadRecord("index line is not JSON", line[:200]) from None
    if not isinstance(values, dict):
        raise BadRecord("index line is not an object", line[:200])
    if values.get("method") not in (None, "-", "GET"):
        raise BadRecord("capture of another method than GET", line[:200])
    names = (("timestamp",), ("url", "original"), ("mime", "mimetype"), ("status", "statuscode"), ("digest",))
    return listed(*(str(next((values[name] for name in known if name in values), "-")) for known in names))
