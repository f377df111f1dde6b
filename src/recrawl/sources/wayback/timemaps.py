"""Plain Memento: TimeMaps and their pages. They list when a page was captured, and little else.

References: RFC 7089, sections 3.2 and 5.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import ClassVar, Self
from urllib.parse import urljoin, urlsplit

import orjson

from recrawl.errors import ArchiveError, BadRecord, TryAgain
from recrawl.sources.timemap import MORE, MapEntry, TimeMap, entries
from recrawl.sources.wayback.captures import EXACT, Capture, IndexPage, IndexRequest, check, listed, timestamp
from recrawl.sources.wayback.client import Client
from recrawl.sources.wayback.interface import Answer, Interface, get, short

_LINK_FORMAT = "application/link-format"
#: ``…/20260102030405mp_/https://e.org/``: the address of a copy, in the frame of the archive.
_COPY = re.compile(r"^(.*?/)(\d{14})(?:[a-z]{2}_)?/(https?://?.+)$", re.DOTALL)


@dataclass(frozen=True)
class TimeMaps(Interface):
    """``/timemap/link/<url>`` lists when a page was captured; other pages of the list are named by links."""

    name: ClassVar[str] = "timemap"
    matches: ClassVar[tuple[str, ...]] = (EXACT,)

    @classmethod
    def places(cls, server: str) -> tuple[Self, ...]:
        """The usual paths; an address that names a TimeMap is taken as it is."""
        if "timemap" in urlsplit(server).path:
            return (cls(server, None),)
        return (cls(f"{server}/timemap/link", None), cls(f"{server}/timemap", None))

    def probe(self, url: str) -> str:
        """The map of the URL."""
        return f"{self.index}/{url.replace('#', '%23')}"

    def recognises(self, answer: Answer) -> bool:
        """A map, or an answer in its format that there is none."""
        if answer.status == 404:
            return answer.content_type == _LINK_FORMAT
        return answer.status == 200 and TimeMap().detects(answer.text.encode())

    def ask(self, client: Client, request: IndexRequest) -> IndexPage:
        """One page of the map; the resume key names the pages that are left, and those that were read."""
        left, read = _position(request.resume_key) if request.resume_key else ([self.probe(request.url)], [])
        address, *left = left
        found = get(client, address, _entries)
        captures, bad = _captures(found, request)
        read = [*read, address]
        for problem in found:
            if isinstance(problem, BadRecord) and problem.reason == MORE:
                page = urljoin(address, problem.detail)
                if _server(page) != _server(self.index):
                    bad["page of a TimeMap on another server"] += 1
                elif page not in read and page not in left:
                    left.append(page)
        return IndexPage(captures, orjson.dumps([left, read]).decode() if left else None, bad)

    def copy_address(self, capture: Capture) -> str | None:
        """As the map names it; copies on other servers (of an aggregator) are left alone."""
        is_here = capture.copy is not None and _server(capture.copy) == _server(self.index)
        return capture.copy if is_here else None


def _server(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    return parts.scheme, parts.netloc


def _entries(answer: Answer) -> list[MapEntry | BadRecord]:
    if answer.status == 404:
        return []
    if answer.status != 200:
        raise ArchiveError(f"the archive answered {answer.status} for a TimeMap: {short(answer.text)}")
    data = answer.text.encode()
    if not TimeMap().detects(data):
        raise TryAgain(f"the archive sent something that is not a TimeMap: {short(answer.text)}")
    return list(entries(data))


def _captures(found: list[MapEntry | BadRecord], request: IndexRequest) -> tuple[list[Capture], Counter[str]]:
    captures: list[Capture] = []
    bad: Counter[str] = Counter()
    for entry in found:
        try:
            if isinstance(entry, BadRecord):
                raise entry
            capture = _capture(entry)
        except BadRecord as problem:
            bad[problem.reason] += problem.reason != MORE
            continue
        if (request.since or "") <= capture.timestamp <= (request.until or "~"):
            captures.append(capture)
    return captures, +bad


def _capture(entry: MapEntry) -> Capture:
    """A capture; the address of its copy without the archive's frame, where the archive writes addresses as Wayback does."""
    at = timestamp(entry.visit(None).at)
    copy = _COPY.match(entry.uri) if isinstance(entry.uri, str) else None
    original = copy[3] if copy else entry.original
    raw = f"{copy[1]}{copy[2]}id_/{copy[3]}" if copy else None
    if entry.status is not None or entry.mimetype is not None:
        texts = (str(value or "-") for value in (original, entry.mimetype, entry.status, entry.digest))
        return replace(listed(at, *texts), copy=raw)
    capture = Capture(at, str(original), "-", None, entry.digest if isinstance(entry.digest, str) else None, copy=raw)
    check(capture)
    return capture


def _position(resume_key: str) -> tuple[list[str], list[str]]:
    try:
        left, read = orjson.loads(resume_key)
        if left and all(isinstance(page, str) for page in (*left, *read)):
            return left, read
    except (ValueError, TypeError):
        pass
    raise ArchiveError(f"cannot go on from {resume_key[:80]!r}: not a list of TimeMaps")
