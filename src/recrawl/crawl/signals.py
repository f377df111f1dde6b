"""Sitemaps and feeds, read on schedule before a plan is made, and what they say of known pages."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import urljoin

import pyarrow as pa
import pyarrow.compute as pc
from scrapy.http import Request, Response
from scrapy.http.request import NO_CALLBACK

from recrawl.crawl.feeds import kind_of, read_feed
from recrawl.crawl.hint_rows import Row, keep
from recrawl.crawl.robots import download
from recrawl.crawl.session import Session, logger
from recrawl.crawl.sitemaps import Entry, read_sitemap
from recrawl.crawl.versions import in_thread
from recrawl.errors import BadSource, RecrawlError
from recrawl.history import History
from recrawl.history.hints import HINTS
from recrawl.panel import parse_period
from recrawl.urls import host, page_id

MAX_HOSTS = 200  #: read in a cycle: those with most pages first
MIN_PAGES = 5  #: of a host: with fewer there is nothing to learn what its hints are worth from
MAX_CHILDREN = 20  #: sitemaps of an index that are read: those that changed last
MAX_FEEDS = 3  #: of a host: those that most pages name, which leaves the feed of each single page out
MAX_SECONDS = 300.0  #: for all hints of a cycle; what did not come by then is read in the next
AT_ONCE = 8


class Known:
    """What the history knows before a cycle: pages, where their hosts' hints come from, and what these said last."""

    def __init__(self, history: History, now: datetime, every: str) -> None:
        self.pages = set(history.slim_timeline.pages.tolist())
        urls = history.urls_of(history.slim_timeline.pages).to_pylist()
        n_pages = Counter(host(url) for url in urls if url)
        origins = {
            host(url): url.partition("//")[0] + "//" + url.partition("//")[2].partition("/")[0] for url in urls if url
        }
        rows = HINTS.read(history.store.folder)
        readings = rows.filter(pc.is_null(rows["page"])).select(["host", "read_at"]).to_pylist()
        last_read = {row["host"]: row["read_at"] for row in sorted(readings, key=lambda row: row["read_at"])}
        due = [
            name
            for name, n in n_pages.most_common()
            if n >= MIN_PAGES and (name not in last_read or now - last_read[name] >= parse_period(every))
        ]
        self.due = {name: origins[name] for name in due[:MAX_HOSTS]}
        self.last_read = last_read
        claimed = rows.filter(pc.and_(pc.is_valid(rows["page"]), pc.is_valid(rows["changed_at"])))
        self.last_claim = _newest(claimed)
        named = rows.filter(pc.and_(pc.is_valid(rows["page"]), pc.is_null(rows["changed_at"]))).to_pylist()
        self.feeds: defaultdict[str, set[int]] = defaultdict(set)  # URL → pages that name it
        for row in named:
            self.feeds[row["source"]].add(row["page"])


def _newest(rows: pa.Table) -> dict[tuple[str, int], int]:
    """The latest time of change that each kind of source gave each page, in microseconds."""
    latest = rows.group_by(["kind", "page"]).aggregate([("changed_at", "max")])
    columns = (latest["kind"], latest["page"], latest["changed_at_max"].cast(pa.int64()))
    return {(kind, page): at for kind, page, at in zip(*(column.to_pylist() for column in columns), strict=True)}


async def read_hints(crawler: Any, session: Session, sitemaps_of: Any) -> None:
    """Read the sitemaps and feeds that are due, and keep what is new in what they say. Nothing that goes wrong here stops a crawl.

    `sitemaps_of` tells which sitemaps a host's robots.txt names.
    """
    history = History.open(session.history.store.folder)
    known = await in_thread(Known, history, session.now(), session.options.hints_every)
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(name: str, origin: str) -> list[Row]:
        async with limit:
            return await _of_host(crawler, session, known, name, origin, await sitemaps_of(origin))

    tasks = [asyncio.ensure_future(one(name, origin)) for name, origin in known.due.items()]
    done, late = await asyncio.wait(tasks, timeout=MAX_SECONDS) if tasks else (set(), set())
    for task in late:
        task.cancel()
    rows: list[Row] = []
    for task in done:
        if error := task.exception():
            logger.warning("hints of a host could not be read: %s", error)
        else:
            rows += task.result()
    try:
        keep(history, rows)
    except RecrawlError as error:
        logger.warning("hints are lost: %s", error)
    session.stats.inc_value("recrawl/hints", sum(row.changed_at is not None for row in rows))


async def _of_host(
    crawler: Any, session: Session, known: Known, name: str, origin: str, sitemaps: list[str]
) -> list[Row]:
    """What the sources of a host say that they did not say before."""
    rows: list[Row] = []
    at, older = session.now(), known.last_read.get(name)
    named = [urljoin(f"{origin}/", sitemap) for sitemap in sitemaps] or [f"{origin}/sitemap.xml"]
    for source in named[:MAX_CHILDREN]:
        entries, children = await _sitemap(crawler, session, source, origin, at)
        # Dates without a time of day mean its beginning: what changed later that day has the same.
        newer = [
            one for one in children if not (older and one.changed_at) or one.changed_at > older - timedelta(days=1)
        ]
        newer.sort(key=lambda child: -(child.changed_at or at).timestamp())
        for child in newer[:MAX_CHILDREN]:
            entries += (await _sitemap(crawler, session, child.url, origin, at))[0]
        if entries:
            rows += [Row("sitemap", source, name, None, at, None)]
            rows += _claims(known, "sitemap", source, name, at, entries)
    feeds = sorted((url for url in known.feeds if host(url) == name), key=lambda url: -len(known.feeds[url]))
    for source in feeds[:MAX_FEEDS]:
        rows += await _feed(crawler, session, known, source, name, known.feeds[source], at)
    return rows or [Row("nothing", named[0], name, None, at, None)]  # so that it is not asked again at once


async def _sitemap(
    crawler: Any, session: Session, url: str, origin: str, now: datetime
) -> tuple[list[Entry], list[Entry]]:
    response = await _fetched(crawler, session, url)
    if response is None:
        return [], []
    try:
        robots = f"{origin}/robots.txt"  # which vouches for a sitemap that lies elsewhere
        found = await in_thread(
            partial(read_sitemap, response.body, url, charset=_charset(response), now=now, named_by=robots)
        )
    except BadSource as error:
        session.stats.inc_value("recrawl/hints_unreadable")
        logger.info("sitemap %s: %s", url, error)
        return [], []
    return list(found.entries), list(found.children)


async def _feed(
    crawler: Any, session: Session, known: Known, url: str, name: str, pages: set[int], now: datetime
) -> list[Row]:
    response = await _fetched(crawler, session, url)
    if response is None or kind_of(response.body) != "feed":
        return []
    try:
        found = read_feed(response.body, url, charset=_charset(response), now=now)
    except BadSource as error:
        session.stats.inc_value("recrawl/hints_unreadable")
        logger.info("feed %s: %s", url, error)
        return []
    rows = [Row("feed", url, name, None, now, None), *_claims(known, "feed", url, name, now, found.entries)]
    times = [entry.changed_at for entry in found.entries if entry.changed_at] + [found.updated_at or datetime.min]
    newest = max((time for time in times if time.tzinfo), default=None)
    if newest is not None:  # a page that names a feed shows what is in it
        rows += [row for page in pages if (row := _claim(known, "feed", url, name, now, page, newest))]
    return rows


def _claims(known: Known, kind: str, source: str, name: str, at: datetime, entries: Iterable[Entry]) -> list[Row]:
    found = []
    for entry in entries:
        page = page_id(entry.url)
        if entry.changed_at is not None and page in known.pages:
            row = _claim(known, kind, source, name, at, page, entry.changed_at)
            found += [row] if row else []
    return found


def _claim(
    known: Known, kind: str, source: str, name: str, at: datetime, page: int, changed_at: datetime
) -> Row | None:
    """A row, if it says anything new."""
    us = round(changed_at.timestamp() * 1e6)
    if known.last_claim.get((kind, page), -1) >= us:
        return None
    known.last_claim[kind, page] = us
    return Row(kind, source, name, page, at, changed_at)


async def _fetched(crawler: Any, session: Session, url: str) -> Response | None:
    """A source's body; None where it does not come."""
    session.stats.inc_value("recrawl/hints_read")
    try:
        request = Request(url, callback=NO_CALLBACK, priority=900_000_000, meta={"download_maxsize": 50 << 20})
        response = await download(crawler.engine, request)
    except Exception as error:  # whatever it is, the plan is made without it
        logger.info("no hints from %s: %s", url, error)
        return None
    return response if response.status == 200 else None


def _charset(response: Response) -> str | None:
    text = (response.headers.get("Content-Type") or b"").decode("latin-1").lower()
    return text.partition("charset=")[2].split(";")[0].strip(" \"'") or None
