"""OutbackCDX: an index server that lists captures in CDX lines and shows no copies.

References: OutbackCDX, README and API documentation (National Library of Australia).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self
from urllib.parse import urlencode

from recrawl.errors import ArchiveError, BadRecord, TryAgain
from recrawl.sources.wayback.captures import DOMAIN, EXACT, Capture, IndexPage, IndexRequest, listed, read_lines
from recrawl.sources.wayback.client import Client
from recrawl.sources.wayback.interface import Answer, Interface, get, lines_of, short
from recrawl.sources.wayback.windows import Window, ask_by_time

_KEY_HEADER = "outbackcdx-urlkey"
_N_FIELDS = (6, 7, 9, 10, 11, 14)
_LARGEST_PAGE = 1_000_000  # captures of one page, before the index is given up


@dataclass(frozen=True)
class OutbackCdx(Interface):
    """``/INDEX?url=…`` lists captures; copies are elsewhere, if anywhere.

    Captures of many pages are in the order of their keys. Such questions take no span of time, so they are continued at the last
    key, by a range that begins there.
    """

    name: ClassVar[str] = "outbackcdx"

    @classmethod
    def places(cls, server: str) -> tuple[Self, ...]:
        """The address of an index."""
        return (cls(server, None),)

    def probe(self, url: str) -> str:
        """One capture of the URL."""
        return f"{self.index}?{urlencode({'url': url, 'matchType': 'exact', 'limit': 1})}"

    def recognises(self, answer: Answer) -> bool:
        """The header that it sends with every list, or CDX lines."""
        if answer.status != 200 or answer.is_html:
            return False
        try:
            return _KEY_HEADER in answer.headers or bool(_Listed.of(answer).page.captures)
        except ArchiveError:
            return False

    def ask(self, client: Client, request: IndexRequest) -> IndexPage:
        """One page of captures."""
        if request.match == EXACT:
            return ask_by_time(request, client.clock.now(), lambda *of: self._window(client, request, *of))
        if request.resume_key is None:
            asked = {"url": request.url, "matchType": request.match, "limit": request.page_size}
            found = get(client, f"{self.index}?{urlencode(asked)}", _Listed.of)
            within = _host(found.asked_key) if request.match == DOMAIN else found.asked_key
            return found.as_page(within, "", request.page_size)
        within, key, limit = _position(request.resume_key)
        asked = {"urlkey": key, "matchType": "range", "limit": limit}
        return get(client, f"{self.index}?{urlencode(asked)}", _Listed.of).as_page(within, key, limit)

    def _window(self, client: Client, request: IndexRequest, window: Window, size: int) -> IndexPage:
        asked = {"url": request.url, "matchType": EXACT, "limit": size}
        if request.since or request.until or request.resume_key is not None:
            asked |= {"from": window[0], "to": window[1]}
        return get(client, f"{self.index}?{urlencode(asked)}", _Listed.of).page


@dataclass(frozen=True, slots=True)
class _Listed:
    """The captures of an answer and the key of each line, in order."""

    page: IndexPage
    lines: list[str]
    asked_key: str  # of the question, as the server writes it

    @classmethod
    def of(cls, answer: Answer) -> _Listed:
        lines = list(filter(None, lines_of(answer)))
        captures, bad = read_lines(lines, parse_line)
        if bad and not captures:
            raise TryAgain(f"the index sent something that is not a list of captures: {short(answer.text)}")
        first = lines[0].partition(" ")[0] if lines else ""
        return cls(IndexPage(captures, None, bad), lines, answer.headers.get(_KEY_HEADER, first))

    def as_page(self, within: str, key: str, limit: int) -> IndexPage:
        """The captures whose keys are within the asked one, and where to go on."""
        inside = [line for line in self.lines if _is_within(line, within)]
        captures, bad = read_lines(inside, parse_line)
        if len(self.lines) < limit or len(inside) < len(self.lines):
            return IndexPage(captures, None, bad)
        last = inside[-1].partition(" ")[0]
        if last == key:  # one page fills the whole answer
            limit *= 10
            if limit > _LARGEST_PAGE:
                raise ArchiveError(
                    f"the index lists more than {limit // 10:,} captures of {key!r}; ask for that page alone"
                )
        return IndexPage(captures, f"{within} {last} {limit}", bad)


def parse_line(line: str) -> Capture:
    """One capture: a CDX line of 11 fields, or of another usual number; a status of 0 is an unknown one.

    >>> parse_line("org,e)/ 20260102030405 https://e.org/ warc/revisit 0 AB - - 2248 396 a.warc.gz").is_revisit
    True
    """
    fields = line.split(" ")
    if len(fields) not in _N_FIELDS:
        raise BadRecord("wrong number of CDX fields", line[:200])
    _, at, original, mimetype, status, digest, *_ = fields
    return listed(at, original, mimetype, "-" if status in ("0", "-1") else status, digest)


def _is_within(line: str, within: str) -> bool:
    """Whether a line's key begins with the asked one; after a host, only its paths and subdomains follow."""
    key = line.partition(" ")[0]
    return key.startswith(within) and (")" in within or key[len(within) : len(within) + 1] in (")", ","))


def _host(key: str) -> str:
    return key.partition(")")[0]


def _position(resume_key: str) -> tuple[str, str, int]:
    parts = resume_key.split(" ")
    if len(parts) != 3 or not parts[2].isdigit():
        raise ArchiveError(f"cannot go on from {resume_key[:80]!r}: not a key of the index")
    return parts[0], parts[1], int(parts[2])
