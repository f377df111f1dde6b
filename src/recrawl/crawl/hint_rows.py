"""Rows of the table of hints, and the feeds that pages link to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from html import unescape
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recrawl.errors import BadUrl
from recrawl.history import History
from recrawl.history.hints import HINTS
from recrawl.web.urls import canonical, host

_ALTERNATE = re.compile(rb"<link\b[^>]*\brel\s*=\s*[\"']?alternate\b[^>]*>", re.IGNORECASE)
_HREF = re.compile(rb"\bhref\s*=\s*(?:\"([^\"]+)\"|'([^']+)'|([^\s>]+))", re.IGNORECASE)
_HEAD_BYTES = 64 << 10  # of a page that are searched for feeds


@dataclass(frozen=True, kw_only=True)
class HintRow:
    """One row of the table of hints.

    With a page and a time: the source says that the page changed then. With a page and no time: the page links to that feed.
    Without a page: the source was read.
    """

    kind: str  # sitemap, feed, or nothing: the host has neither
    source: str
    host: str
    page: int | None = None
    read_at: datetime
    changed_at: datetime | None = None


def append_hints(history: History, rows: Iterable[HintRow]) -> None:
    """Add rows to the table of hints."""
    columns: dict[str, list[Any]] = {name: [] for name in HINTS.schema.names}
    for row in rows:
        for name, values in columns.items():
            values.append(getattr(row, name))
    HINTS.append(history.beside, pa.table(columns, schema=HINTS.schema))


def linked_feeds(url: str, body: bytes) -> Iterator[str]:
    """The feeds that a page links to in its head.

    >>> list(linked_feeds("https://e.org/a/", b'<link rel="alternate" type="application/rss+xml" href="feed.xml">'))
    ['https://e.org/a/feed.xml']
    """
    for tag in _ALTERNATE.findall(body[:_HEAD_BYTES]):
        href = _HREF.search(tag)
        if href and (b"rss+xml" in tag or b"atom+xml" in tag):
            try:
                address = next(filter(None, href.groups())).decode("utf-8", "replace")
                yield canonical(unescape(address), url, keep_tracking=True)
            except BadUrl:
                continue


def append_linked_feeds(history: History, feed_and_page: Iterable[tuple[str, int]], now: datetime) -> None:
    """Remember which pages link to which feeds, each pair once."""
    rows = HINTS.read(history.beside)
    linked = rows.filter(pc.and_(pc.is_valid(rows["page"]), pc.is_null(rows["changed_at"])))
    stored = set(zip(linked["source"].to_pylist(), linked["page"].to_pylist(), strict=True))
    new = sorted(set(feed_and_page) - stored)
    append_hints(
        history, (HintRow(kind="feed", source=feed, host=host(feed), page=page, read_at=now) for feed, page in new)
    )
