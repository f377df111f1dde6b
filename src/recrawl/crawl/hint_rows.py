"""Rows of the table of hints, and the feeds that pages name."""

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
from recrawl.urls import canonical, host

_ALTERNATE = re.compile(rb"<link\b[^>]*\brel\s*=\s*[\"']?alternate\b[^>]*>", re.IGNORECASE)
_HREF = re.compile(rb"\bhref\s*=\s*(?:\"([^\"]+)\"|'([^']+)'|([^\s>]+))", re.IGNORECASE)
_HEAD = 64 << 10  # bytes of a page in which feeds are looked for


@dataclass(frozen=True)
class Row:
    """One row of the table of hints."""

    kind: str
    source: str
    host: str
    page: int | None
    read_at: datetime
    changed_at: datetime | None


def keep(history: History, rows: Iterable[Row]) -> None:
    """Add rows to the table of hints."""
    columns: dict[str, list[Any]] = {name: [] for name in HINTS.schema.names}
    for row in rows:
        for name, values in columns.items():
            values.append(getattr(row, name))
    HINTS.append(history.store.folder, pa.table(columns, schema=HINTS.schema))


def feeds_of(url: str, body: bytes) -> Iterator[str]:
    """The feeds that a page names in its head.

    >>> list(feeds_of("https://e.org/a/", b'<link rel="alternate" type="application/rss+xml" href="feed.xml">'))
    ['https://e.org/a/feed.xml']
    """
    for tag in _ALTERNATE.findall(body[:_HEAD]):
        href = _HREF.search(tag)
        if href and (b"rss+xml" in tag or b"atom+xml" in tag):
            try:
                spelled = next(filter(None, href.groups())).decode("utf-8", "replace")
                yield canonical(unescape(spelled), url, keep_tracking=True)
            except BadUrl:
                continue


def keep_feeds(history: History, found: Iterable[tuple[str, int]], now: datetime) -> None:
    """Remember which pages name which feeds, each once."""
    rows = HINTS.read(history.store.folder)
    named = rows.filter(pc.and_(pc.is_valid(rows["page"]), pc.is_null(rows["changed_at"])))
    known = set(zip(named["source"].to_pylist(), named["page"].to_pylist(), strict=True))
    new = sorted(set(found) - known)
    keep(history, (Row("feed", feed, host(feed), page, now, None) for feed, page in new))
