"""Sitemaps: the pages that a site lists, and when each of them changed.

References: https://www.sitemaps.org/protocol.html; dates by https://www.w3.org/TR/NOTE-datetime.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from recrawl.crawl.xml import Document, local_name, texts
from recrawl.errors import BadUrl, BadXml
from recrawl.web.urls import MAX_LENGTH, canonical, host, origin, site

MAX_ENTRIES = 50_000  #: entries per sitemap that the protocol allows
_TOLERANCE = timedelta(days=1)  # clocks differ, and a date without a zone may come from a zone ahead of UTC
#: No page is older: programs write 0001-01-01 or 1970-01-01 if they do not know the date.
_FIRST_WEB_PAGE = datetime(1990, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Entry:
    """A page or a sitemap that a sitemap or feed lists."""

    url: str  # canonical
    changed_at: datetime | None  # UTC, aware; None: not stated


@dataclass(frozen=True)
class Sitemap:
    """The contents of a sitemap: pages, or further sitemaps if it is an index."""

    entries: list[Entry]
    children: list[Entry]
    skipped: Counter[str]  # reason → how many entries or dates were left out
    fault: str | None = None  # why the file could not be read to its end


def read_sitemap(
    body: bytes, url: str, *, charset: str | None = None, now: datetime | None = None, named_by: str | None = None
) -> Sitemap:
    """Read a sitemap, a sitemap index or a list with one URL per line, compressed or not.

    Only pages of the sitemap's own site count (its registered domain, because many sites keep one sitemap for all their hosts).
    If a robots.txt names a sitemap on another site, pass the URL of that robots.txt as `named_by`: then its site counts.

    >>> body = b"<urlset><url><loc>https://e.org/a</loc><lastmod>2026-03-01</lastmod></url></urlset>"
    >>> read_sitemap(body, "https://e.org/sitemap.xml").entries
    [Entry(url='https://e.org/a', changed_at=datetime.datetime(2026, 3, 1, 0, 0, tzinfo=datetime.timezone.utc))]
    """
    document = Document.of(body, charset)
    pages = Listing(named_by or url, w3c_time, now)
    children = Listing(named_by or url, w3c_time, now, pages.skipped)
    fault = None
    try:
        if document.is_xml:
            _read_xml(document, pages, children)
        else:
            _read_lines(document, pages)
    except BadXml as error:
        if not pages.changed_at and not children.changed_at:
            raise BadXml(f"No sitemap at {url[:200]}: {error}.") from None
        fault = str(error)
    return Sitemap(pages.entries, children.entries, pages.skipped, fault)


def _read_xml(document: Document, pages: Listing, children: Listing) -> None:
    kind = local_name(document.root.tag)
    if kind not in ("urlset", "sitemapindex"):
        raise BadXml(f"it begins with <{kind[:80]}>")
    for element in document.records("url", "sitemap"):
        fields = texts(element)
        listing = pages if local_name(element.tag) == "url" else children
        address = fields.get("loc") or (element.text or "").strip()  # some write the URL without <loc>
        listing.add(address, listing.time(fields.get("lastmod") or _publication_date(element)))


def _publication_date(element: Any) -> str | None:
    """The publication date in Google's news extension of the protocol."""
    for child in element:
        if local_name(child.tag) == "news":
            return texts(child).get("publication_date")
    return None


def _read_lines(document: Document, pages: Listing) -> None:
    data = document.data
    if data[:4].lower() != b"http":
        raise BadXml(document.fault or ("it is neither XML nor a list of URLs" if data else "it is empty"))
    # The last line of a truncated file may be half a URL.
    end = data.rfind(b"\n") + 1 if document.fault else len(data.rstrip())
    for line in re.finditer(rb"[^\r\n]+", data[:end]):
        if pages.n_seen == MAX_ENTRIES:
            pages.skipped[_TOO_MANY] += 1 + data.count(b"\n", line.start(), end)
            break
        pages.add(line[0].decode("utf-8", "replace"))
    if document.fault:
        raise BadXml(document.fault)


# -- what sitemaps and feeds share ------------------------------------------------------------------------------------

_TOO_MANY = f"over {MAX_ENTRIES:,} entries"


class Listing:
    """The pages that a sitemap or feed lists: each once, only of its own site, and only with plausible times.

    >>> pages = Listing("https://e.org/sitemap.xml", w3c_time)
    >>> for url in ("https://e.org/a", "https://www.e.org/b", "https://other.org/", "https://e.org/a#top"):
    ...     pages.add(url, pages.time("31 February"))
    >>> [entry.url for entry in pages.entries], dict(pages.skipped)
    (['https://e.org/a', 'https://www.e.org/b'], {'date that cannot be read': 4, 'of another site': 1, 'named twice': 1})
    """

    def __init__(
        self,
        source: str,
        read_time: Callable[[str], datetime],
        now: datetime | None = None,
        skipped: Counter[str] | None = None,
    ) -> None:
        self.source, self.read_time = canonical(source, keep_tracking=True), read_time
        self.latest = (now or datetime.now(UTC)) + _TOLERANCE
        self.skipped: Counter[str] = Counter() if skipped is None else skipped
        self.n_seen = 0
        self.changed_at: dict[str, datetime | None] = {}  # URL → when it changed, in the order of the source
        self._is_own: dict[str, bool] = {}  # by origin, which most entries share

    @property
    def entries(self) -> list[Entry]:
        """The pages in the order of the source."""
        return [Entry(url, changed_at) for url, changed_at in self.changed_at.items()]

    def add(self, address: str | None, changed_at: datetime | None = None, base: str | None = None) -> None:
        """Add an entry, or count why it is left out. Of two entries for one page the later change counts."""
        self.n_seen += 1
        try:
            url = self._checked(address, base)
        except BadUrl as error:
            self.skipped[str(error)] += 1
            return
        earlier = self.changed_at.setdefault(url, changed_at)
        if changed_at and (earlier is None or changed_at > earlier):
            self.changed_at[url] = changed_at

    def _checked(self, address: str | None, base: str | None) -> str:
        if self.n_seen > MAX_ENTRIES:
            raise BadUrl(_TOO_MANY)
        if not address:
            raise BadUrl("without a URL")
        if len(address) > MAX_LENGTH:
            raise BadUrl(f"URL over {MAX_LENGTH:,} characters")
        try:
            url = canonical(address, base)
        except BadUrl:
            raise BadUrl("not a URL") from None
        if not self._is_own_site(url):
            raise BadUrl("of another site")
        if url in self.changed_at:
            self.skipped["named twice"] += 1
        return url

    def _is_own_site(self, url: str) -> bool:
        url_origin = origin(url)
        if url_origin not in self._is_own:
            self._is_own[url_origin] = site(host(url)) == site(host(self.source))
        return self._is_own[url_origin]

    def time(self, text: str | None) -> datetime | None:
        """The time that an entry states; None, and counted, if it is unreadable or not plausible."""
        if not text:
            return None
        try:
            at = self.read_time(text)
        except (ValueError, OverflowError):
            self.skipped["date that cannot be read"] += 1
            return None
        if at > self.latest or at < _FIRST_WEB_PAGE:
            self.skipped["date in the future" if at > self.latest else "date before the web"] += 1
            return None
        return at


_TIME = re.compile(
    r"\d{4}(?:-\d\d(?:-\d\d(?:[T ]\d\d:[0-5]\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:Z|[+-]\d\d(?::?\d\d)?))?)?)?)?", re.ASCII
)


def w3c_time(text: str) -> datetime:
    """A W3C date in any precision, as the beginning of the year, month, day, minute or second that it names.

    A page visited later on the day of its ``lastmod`` therefore does not count as changed. Without a zone the date is UTC.

    >>> w3c_time("2026-03-01T10:30:00.25+01:00").isoformat(), w3c_time("2026").isoformat()
    ('2026-03-01T09:30:00.250000+00:00', '2026-01-01T00:00:00+00:00')
    """
    text = text.strip().upper()
    if not _TIME.fullmatch(text):
        raise ValueError(f"not a W3C date: {text[:100]!r}; write it like 2026-03-01T10:30:00Z")
    day, clock = text[:10], text[11:].replace(" ", "").replace(":60", ":59")  # a leap second
    day += "-01" * ((10 - len(day)) // 3)
    at = datetime.fromisoformat(f"{day}T{clock}" if clock else day)
    try:
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except OverflowError:  # in UTC it is before the year 1 or after 9999
        raise ValueError(f"not a W3C date: {text[:100]!r}; in UTC its year is not one of 1 to 9999") from None
