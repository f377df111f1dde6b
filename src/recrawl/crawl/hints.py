"""Sitemaps and feeds, read on schedule before a plan is made: which known pages they report as changed."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import urljoin

import pyarrow as pa
import pyarrow.compute as pc
from scrapy.http import Request, Response
from scrapy.http.request import NO_CALLBACK

from recrawl.core.times import parse_period
from recrawl.crawl.feeds import kind_of, read_feed
from recrawl.crawl.hint_rows import HintRow, append_hints
from recrawl.crawl.robots import download
from recrawl.crawl.session import Session, logger
from recrawl.crawl.sitemaps import Entry, read_sitemap
from recrawl.crawl.versions import in_thread
from recrawl.errors import BadSource, RecrawlError
from recrawl.history import History
from recrawl.history.hints import HINTS
from recrawl.web.urls import host, page_id

MAX_HOSTS = 200  #: read per cycle, those with most pages first
MIN_PAGES = 5  #: of a host; with fewer, the quality of its hints cannot be learnt
MAX_CHILDREN = 20  #: sitemaps of an index that are read, those that changed last first
MAX_FEEDS = 3  #: read per host, those that most pages link to, which leaves out the feeds of single pages
MAX_SECONDS = 300.0  #: for all hints of a cycle; the rest is read in the next cycle
MAX_CONCURRENT_HOSTS = 8


class KnownHints:
    """What the history knows before a cycle: its pages, the feeds they link to, and the last hints about them."""

    def __init__(self, history: History, now: datetime, every: str) -> None:
        self.pages = set(history.slim_timeline.pages.tolist())
        urls = history.urls_of(history.slim_timeline.pages).to_pylist()
        n_pages = Counter(host(url) for url in urls if url)
        origins = {
            host(url): url.partition("//")[0] + "//" + url.partition("//")[2].partition("/")[0] for url in urls if url
        }
        rows = HINTS.read(history.beside)
        readings = rows.filter(pc.is_null(rows["page"])).select(["host", "read_at"]).to_pylist()
        last_read = {row["host"]: row["read_at"] for row in sorted(readings, key=lambda row: row["read_at"])}
        due = [
            name
            for name, n in n_pages.most_common()
            if n >= MIN_PAGES and (name not in last_read or now - last_read[name] >= parse_period(every))
        ]
        self.due = {name: origins[name] for name in due[:MAX_HOSTS]}  # host → origin
        self.last_read = last_read
        reported = rows.filter(pc.and_(pc.is_valid(rows["page"]), pc.is_valid(rows["changed_at"])))
        self.last_change = _last_changes(reported)
        linked = rows.filter(pc.and_(pc.is_valid(rows["page"]), pc.is_null(rows["changed_at"]))).to_pylist()
        self.feeds: defaultdict[str, set[int]] = defaultdict(set)  # URL → pages that link to it
        for row in linked:
            self.feeds[row["source"]].add(row["page"])


def _last_changes(rows: pa.Table) -> dict[tuple[str, int], int]:
    """The latest change that each kind of source reported for each page, in microseconds."""
    latest = rows.group_by(["kind", "page"]).aggregate([("changed_at", "max")])
    columns = (latest["kind"], latest["page"], latest["changed_at_max"].cast(pa.int64()))
    return {(kind, page): at for kind, page, at in zip(*(column.to_pylist() for column in columns), strict=True)}


async def read_hints(crawler: Any, session: Session, sitemaps_of: Any) -> None:
    """Read the sitemaps and feeds that are due, and store what is new in them. No failure here stops a crawl.

    `sitemaps_of` returns the sitemaps that the robots.txt of an origin names.
    """
    history = session.history.detached()
    known = await in_thread(KnownHints, history, session.now(), session.options.hints_every)
    limit = asyncio.Semaphore(MAX_CONCURRENT_HOSTS)

    async def read_host(name: str, origin: str) -> list[HintRow]:
        async with limit:
            reader = _HostReader(crawler, session, known, name, origin)
            return await reader.read(await sitemaps_of(origin))

    tasks = [asyncio.ensure_future(read_host(name, origin)) for name, origin in known.due.items()]
    done, late = await asyncio.wait(tasks, timeout=MAX_SECONDS) if tasks else (set(), set())
    for task in late:
        task.cancel()
    rows: list[HintRow] = []
    for task in done:
        if error := task.exception():
            logger.warning("cannot read the hints of a host: %s", error)
        else:
            rows += task.result()
    try:
        append_hints(history, rows)
    except RecrawlError as error:
        logger.warning("cannot store hints, they are lost: %s", error)
    session.stats.inc_value("recrawl/hints", sum(row.changed_at is not None for row in rows))


@dataclass(frozen=True)
class _HostReader:
    """Reads the sitemaps and feeds of one host, and returns what they did not report before."""

    crawler: Any
    session: Session
    known: KnownHints
    name: str
    origin: str

    async def read(self, sitemaps: list[str]) -> list[HintRow]:
        """Rows for what is new, and for each source that was read."""
        rows: list[HintRow] = []
        now = self.session.now()
        sources = [urljoin(f"{self.origin}/", sitemap) for sitemap in sitemaps] or [f"{self.origin}/sitemap.xml"]
        for source in sources[:MAX_CHILDREN]:
            rows += await self._sitemap_rows(source, now)
        feeds = self.known.feeds
        by_links = sorted((url for url in feeds if host(url) == self.name), key=lambda url: -len(feeds[url]))
        for source in by_links[:MAX_FEEDS]:
            rows += await self._feed_rows(source, now)
        # A row even for a host that has neither, so that it is not tried again at once.
        return rows or [self._reading("nothing", sources[0], now)]

    async def _sitemap_rows(self, source: str, now: datetime) -> list[HintRow]:
        """Rows from a sitemap and, if it is an index, from those of its sitemaps that are new since the last reading."""
        entries, children = await self._read_sitemap(source, now)
        last_read = self.known.last_read.get(self.name)
        # A date without a time means the beginning of its day: later changes on that day have the same date.
        newer = [
            child
            for child in children
            if not (last_read and child.changed_at) or child.changed_at > last_read - timedelta(days=1)
        ]
        newer.sort(key=lambda child: -(child.changed_at or now).timestamp())
        for child in newer[:MAX_CHILDREN]:
            entries += (await self._read_sitemap(child.url, now))[0]
        if not entries:
            return []
        return [self._reading("sitemap", source, now), *self._changes("sitemap", source, now, entries)]

    async def _read_sitemap(self, url: str, now: datetime) -> tuple[list[Entry], list[Entry]]:
        """The pages that a sitemap lists, and the sitemaps."""
        response = await self._fetch(url)
        if response is None:
            return [], []
        try:
            robots = f"{self.origin}/robots.txt"  # so that a sitemap on another site counts if robots.txt names it
            sitemap = await in_thread(
                partial(read_sitemap, response.body, url, charset=_charset(response), now=now, named_by=robots)
            )
        except BadSource as error:
            self.session.stats.inc_value("recrawl/hints_unreadable")
            logger.info("sitemap %s: %s", url, error)
            return [], []
        return list(sitemap.entries), list(sitemap.children)

    async def _feed_rows(self, url: str, now: datetime) -> list[HintRow]:
        response = await self._fetch(url)
        if response is None or kind_of(response.body) != "feed":
            return []
        try:
            feed = read_feed(response.body, url, charset=_charset(response), now=now)
        except BadSource as error:
            self.session.stats.inc_value("recrawl/hints_unreadable")
            logger.info("feed %s: %s", url, error)
            return []
        rows = [self._reading("feed", url, now), *self._changes("feed", url, now, feed.entries)]
        times = [time for time in (*(entry.changed_at for entry in feed.entries), feed.updated_at) if time is not None]
        if times:  # a page that links to a feed shows what is in it
            changes = (self._change("feed", url, now, page, max(times)) for page in self.known.feeds[url])
            rows += [row for row in changes if row is not None]
        return rows

    def _reading(self, kind: str, source: str, now: datetime) -> HintRow:
        return HintRow(kind=kind, source=source, host=self.name, read_at=now)

    def _changes(self, kind: str, source: str, now: datetime, entries: Iterable[Entry]) -> list[HintRow]:
        """Rows for the known pages that the entries report as changed."""
        rows = []
        for entry in entries:
            page = page_id(entry.url)
            if entry.changed_at is not None and page in self.known.pages:
                row = self._change(kind, source, now, page, entry.changed_at)
                rows += [row] if row else []
        return rows

    def _change(self, kind: str, source: str, now: datetime, page: int, changed_at: datetime) -> HintRow | None:
        """A row for a reported change, unless this or a later one was reported before."""
        changed_us = round(changed_at.timestamp() * 1e6)
        if self.known.last_change.get((kind, page), -1) >= changed_us:
            return None
        self.known.last_change[kind, page] = changed_us
        return HintRow(kind=kind, source=source, host=self.name, page=page, read_at=now, changed_at=changed_at)

    async def _fetch(self, url: str) -> Response | None:
        """The response with status 200, None if there is none."""
        self.session.stats.inc_value("recrawl/hints_read")
        try:
            request = Request(url, callback=NO_CALLBACK, priority=900_000_000, meta={"download_maxsize": 50 << 20})
            response = await download(self.crawler.engine, request)
        except Exception as error:  # whatever the cause, the plan is made without it
            logger.info("no hints from %s: %s", url, error)
            return None
        return response if response.status == 200 else None


def _charset(response: Response) -> str | None:
    text = (response.headers.get("Content-Type") or b"").decode("latin-1").lower()
    return text.partition("charset=")[2].split(";")[0].strip(" \"'") or None
