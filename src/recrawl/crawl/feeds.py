"""Feeds (RSS 0.9x, 1.0 and 2.0, and Atom), read for one thing: which pages are new or changed, and since when.

References: https://www.rssboard.org/rss-specification; RFC 4287 (Atom); RFC 822 and RFC 3339 for the dates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_tz
from typing import Any, Literal

from recrawl.crawl.sitemaps import Entry, Listing, w3c_time
from recrawl.crawl.xml import Document, local_name
from recrawl.errors import BadUrl, BadXml
from recrawl.web.urls import canonical

#: Elements with the time of an entry or a feed, in all versions (Atom 0.3 had "modified", "issued" and "created").
_TIMES = ("updated", "modified", "pubdate", "date", "published", "issued", "created", "lastbuilddate")
_XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_RDF_ABOUT = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}about"
_RSS_1 = re.compile(r"//purl\.org/(rss|net/rss)|//my\.netscape\.com/rdf|//channel\.netscape\.com/rdf")
_URL_LINE = re.compile(rb"https?://[^\s<>]+[ \t]*(?:[\r\n]|\Z)", re.IGNORECASE)  # a URL alone on its line


@dataclass(frozen=True)
class ParsedFeed:
    """The pages that a feed lists."""

    entries: list[Entry]
    updated_at: datetime | None  # UTC, aware: the latest time that the feed gives for itself
    skipped: Counter[str]  # reason → how many entries or dates were left out
    fault: str | None = None  # why the file could not be read to its end


def kind_of(body: bytes) -> Literal["sitemap", "feed"] | None:
    """Whether a body is a sitemap or a feed, by its first element; a plain list of URLs is a sitemap.

    >>> kind_of(b"<rss version='2.0'/>"), kind_of(b"<urlset/>"), kind_of(b"<html>")
    ('feed', 'sitemap', None)
    """
    document = Document.of(body, max_bytes=1 << 16)
    if not document.is_xml:
        return "sitemap" if _URL_LINE.match(document.data) else None
    try:
        root = document.root
    except BadXml:
        return None
    if local_name(root.tag) in ("urlset", "sitemapindex"):
        return "sitemap"
    return "feed" if _is_feed(root) else None


def _is_feed(root: Any) -> bool:
    if local_name(root.tag) == "rdf":  # RDF is not only used for feeds
        return any(_RSS_1.search(space) for space in root.nsmap.values())
    return local_name(root.tag) in ("rss", "feed")


def read_feed(body: bytes, url: str, *, charset: str | None = None, now: datetime | None = None) -> ParsedFeed:
    """Read a feed. As in sitemaps, only pages of its own site count. Entries without a date have `changed_at` None.

    >>> item = b"<item><link>/a</link><pubDate>Sun, 01 Mar 2026 10:00:00 +0100</pubDate></item>"
    >>> feed = read_feed(b"<rss><channel>" + item + b"</channel></rss>", "https://e.org/feed")
    >>> feed.entries[0].url, feed.entries[0].changed_at.isoformat()
    ('https://e.org/a', '2026-03-01T09:00:00+00:00')
    """
    document = Document.of(body, charset)
    listing = Listing(url, feed_time, now)
    feed_times: list[datetime] = []
    fault = None
    try:
        _read(document, listing, feed_times)
    except BadXml as error:
        if not listing.changed_at:
            raise BadXml(f"No feed at {url[:200]}: {error}.") from None
        fault = str(error)
    return ParsedFeed(listing.entries, max(feed_times, default=None), listing.skipped, fault)


def _read(document: Document, listing: Listing, feed_times: list[datetime]) -> None:
    root = document.root
    if not _is_feed(root):
        raise BadXml(f"it begins with <{local_name(root.tag)[:80]}>")
    for element in document.records("item", "entry", *_TIMES):
        if local_name(element.tag) in ("item", "entry"):
            address, base = _address(element, listing.source)
            listing.add(address, max(_times(element, listing), default=None), base)
        elif local_name(element.getparent().tag) in ("channel", "feed"):
            feed_times += _times([element], listing)


def _times(elements: Iterable[Any], listing: Listing) -> list[datetime]:
    times = (listing.time((element.text or "").strip()) for element in elements if local_name(element.tag) in _TIMES)
    return [time for time in times if time]


def _address(entry: Any, url: str) -> tuple[str | None, str]:
    """The page that an entry is about, as written, and the base URL that resolves it."""
    for element, address in _addresses(entry):
        if address:
            return address.strip(), _base(element, url)
    return None, url


def _addresses(entry: Any) -> Iterator[tuple[Any, str | None]]:
    """Everything that may be the URL of an entry's page, the best first."""
    for child in entry:
        if local_name(child.tag) == "link" and child.get("rel", "alternate") == "alternate":
            yield child, child.get("href") or (child.text or "").strip()
    for child in entry:
        if local_name(child.tag) == "guid" and child.get("isPermaLink", "true").lower() != "false":
            yield child, _absolute(child.text)
    yield entry, _absolute(entry.get(_RDF_ABOUT))


def _absolute(text: str | None) -> str | None:
    """An identifier that is a URL: many guids count as permalinks only because the feed does not deny it."""
    return text if text and re.match(r"\s*https?://", text, re.IGNORECASE) else None


def _base(element: Any, url: str) -> str:
    """The feed's URL, resolved against every xml:base from the outermost element inwards. Invalid bases are ignored."""
    bases = [ancestor.get(_XML_BASE) for ancestor in (element, *element.iterancestors())]
    for base in filter(None, reversed(bases)):
        with suppress(BadUrl):
            url = canonical(base, url, keep_tracking=True)
    return url


#: Offsets in hours of time zones that feeds use and RFC 822 does not define.
_ZONES = {
    "CET": 1, "MEZ": 1, "CEST": 2, "MESZ": 2, "BST": 1, "WET": 0, "WEST": 1, "EET": 2, "EEST": 3, "MSK": 3, "IST": 5.5,
    "SGT": 8, "HKT": 8, "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11, "NZST": 12, "NZDT": 13, "AKST": -9, "AKDT": -8, "HST": -10,
}  # fmt: skip


def feed_time(text: str) -> datetime:
    """A date of RFC 822 or RFC 3339, in the spellings that feeds use. Without a known zone it is UTC.

    >>> feed_time("Sun, 1 March 26 10:00 CET").isoformat(), feed_time("2026-03-01T10:00Z").isoformat()
    ('2026-03-01T09:00:00+00:00', '2026-03-01T10:00:00+00:00')
    """
    text = text.strip()
    if text[:4].isdigit():
        return w3c_time(text)
    parts = _parts(re.sub(r"\b(?:GMT|UTC)(?=[+-]\d)", "", text[:100]))
    if parts is None:
        raise ValueError(f"not a date: {text[:100]!r}; write it like Sun, 01 Mar 2026 10:00:00 GMT")
    year, month, day, hour, minute, second = parts[:6]
    zone = text.upper().split()[-1]
    offset = timedelta(hours=_ZONES[zone]) if zone in _ZONES else timedelta(seconds=parts[9])
    try:
        return datetime(year, month, day, hour, minute, min(second, 59), tzinfo=timezone(offset)).astimezone(UTC)
    except OverflowError:
        raise ValueError(f"not a date: {text[:100]!r}; a number in it is too large") from None


def _parts(text: str) -> Any:
    try:
        return parsedate_tz(text)
    except (ValueError, TypeError, IndexError):  # raised for some malformed dates, depending on the Python version
        return None
