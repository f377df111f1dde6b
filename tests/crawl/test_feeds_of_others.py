"""The sitemaps of crawler-commons and the feeds of feedparser: each is read or refused with a reason, and dates are right."""

from __future__ import annotations

import ast
import gzip
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from conformance_files import files
from recrawl.crawl.feeds import feed_time, kind_of, read_feed
from recrawl.crawl.sitemaps import read_sitemap
from recrawl.errors import BadXml
from recrawl.web.urls import canonical

NOW = datetime(2026, 3, 10, tzinfo=UTC)

# -- sitemaps ---------------------------------------------------------------------------------------------------------

#: The site of each, and how many pages and sitemaps it lists, and how many of these have a date.
SITEMAPS = {
    "do-not-visit.txt": ("www.example.com", 1, 0, 0),
    "extension/hebdenbridgetimes-articles-sitemap.xml": ("www.hebdenbridgetimes.co.uk", 74, 0, 74),
    "extension/pagemaps-sitemap.xml": ("www.example.com", 2, 0, 0),
    "extension/shinpaideshou-news-sitemap.xml": ("shinpaideshou.wordpress.com", 3, 0, 3),
    "extension/sitemap-images.xml": ("www.example.com", 1, 0, 0),
    "extension/sitemap-links.xml": ("www.example.com", 3, 0, 0),
    "extension/sitemap-mobile.xml": ("www.example.com", 3, 0, 0),
    "extension/sitemap-news.xml": ("www.example.org", 2, 0, 2),
    "extension/sitemap-videos-tvshow.xml": (
        "example.org",
        1,
        0,
        0,
    ),  # when a video was published says nothing about a page
    "extension/sitemap-videos.xml": ("www.example.com", 3, 0, 0),
    "sitemap-with-bom.txt": ("www.domain.com", 2, 0, 0),
    "sitemap.badns.xml": ("www.example.com", 2, 0, 0),
    "sitemap.index.xml": ("example.com", 0, 15, 0),  # URLs without <loc>
    "sitemap.ns.xml": ("www.example.com", 2, 0, 0),
    "sitemap.txt": ("www.domain.com", 2, 0, 0),
    "sitemap.txt.gz": ("www.example.com", 5, 0, 0),
    "xmlSitemap.gz": ("www.example.com", 5, 0, 4),
}


def test_of_18_sitemaps_17_are_read_and_a_feed_is_refused(shared_data: Path) -> None:
    bodies = dict(files(shared_data, "sitemaps"))
    with pytest.raises(BadXml, match="it begins with <feed>"):
        read_sitemap(bodies.pop("atom.xml"), "http://www.example.com/sitemap.xml")
    found = {}
    for name, body in bodies.items():
        host = SITEMAPS[name][0]
        sitemap = read_sitemap(body, f"http://{host}/sitemap.xml", now=NOW)
        assert (sitemap.fault, sitemap.skipped) == (None, Counter())
        listed = sitemap.entries + sitemap.children
        n_dated = sum(entry.changed_at is not None for entry in listed)
        found[name] = (host, len(sitemap.entries), len(sitemap.children), n_dated)
    assert found == SITEMAPS


def test_dates_of_sitemaps_are_those_in_the_file(shared_data: Path) -> None:
    body = dict(files(shared_data, "sitemaps"))["xmlSitemap.gz"]
    read = [entry.changed_at for entry in read_sitemap(body, "http://www.example.com/sitemap.xml", now=NOW).entries]
    written = [re.search(rb"<lastmod>(.*?)</lastmod>", part) for part in gzip.decompress(body).split(b"<url>")[1:]]
    stated = [datetime.fromisoformat(match[1].decode()) if match else None for match in written]
    assert read == [time and (time if time.tzinfo else time.replace(tzinfo=UTC)) for time in stated]


# -- feeds ------------------------------------------------------------------------------------------------------------

OUTCOMES = {
    "read": 2_073,
    "read, with a fault: it breaks off": 1,
    "refused: it breaks off": 16,  # without items of this site; most have "</rss" at the end
    "refused: it begins with <channel>": 15,  # the Channel Definition Format of 1997
    "refused: it has no elements": 1,
}


def outcome(body: bytes) -> str:
    try:
        feed = read_feed(body, "http://example.com/feed.xml", now=NOW)
    except BadXml as error:
        return "refused: " + str(error).partition(": ")[2].partition(" after")[0].rstrip(".")
    return f"read, with a fault: {feed.fault.partition(' after')[0]}" if feed.fault else "read"


def test_of_2106_feeds_each_is_read_or_refused_with_a_reason(shared_data: Path) -> None:
    outcomes: Counter[str] = Counter()
    for _, body in files(shared_data, "feeds"):
        outcomes[outcome(body)] += 1
        assert kind_of(body) in ("feed", None)
    assert outcomes == OUTCOMES


@dataclass(frozen=True)
class Expectation:
    """What a comment in a test file of feedparser states: of the feed, or of one of its entries."""

    file: str
    body: bytes
    entry: int | None
    name: str
    value: str | tuple[int, ...]


_CLAUSE = re.compile(
    r"(?:entries\[(\d+)\]|\bfeed)(?:\['(\w+)'\]|\.(\w+)) == "
    r"(?:entries\[1\]\['link'\] == )?(\([\d, ]+\)|'[^']*'|\"[^\"]*\")"
)


def expectations(data: Path, *names: str) -> Iterator[Expectation]:
    for file, body in files(data, "feeds"):
        comment = re.search(rb"Expect:(.*)", body)
        for clause in _CLAUSE.finditer(comment[1].decode("latin-1") if comment else ""):
            name = clause[2] or clause[3]
            if name in names and kind_of(body) == "feed":
                entry = int(clause[1]) if clause[1] else None
                yield Expectation(file, body, entry, name, ast.literal_eval(clause[4]))


#: Where a date is stated twice feedparser takes the last one, recrawl the latest: that is when the page last changed.
LATEST = {"wellformed/atom/entry_created_multiple_values.xml", "wellformed/atom/entry_updated_multiple_values.xml"}


def test_dates_of_feeds_are_those_that_feedparser_expects(shared_data: Path) -> None:
    names = [name + parsed for name in ("updated", "published", "created") for parsed in ("", "_parsed")]
    different, n = set(), 0
    for expected in expectations(shared_data, *names):
        feed = read_feed(_with_links(expected.body), "http://example.com/feed.xml", now=NOW)
        at = {entry.url.rpartition("/")[2]: entry.changed_at for entry in feed.entries}
        n += 1
        if (feed.updated_at if expected.entry is None else at[str(expected.entry)]) != _time(expected.value):
            different.add(expected.file)
    assert n == 36
    assert different == LATEST


def _time(value: str | tuple[int, ...]) -> datetime:
    return feed_time(value) if isinstance(value, str) else datetime(*value[:6], tzinfo=UTC)


def _with_links(body: bytes) -> bytes:
    """The feed with a link in each entry, by its number: in most test files entries have none, and only pages have dates."""
    number = iter(range(1_000))
    return re.sub(rb"<(item|entry)\b[^>]*>", lambda match: match[0] + b"<link>/%d</link>" % next(number), body)


def test_links_of_entries_are_those_that_feedparser_expects(shared_data: Path) -> None:
    n = 0
    for expected in expectations(shared_data, "link"):
        if expected.entry is None or not isinstance(expected.value, str):
            continue
        at = canonical(expected.value)
        feed = read_feed(expected.body, f"{at.partition('://')[0]}://{at.split('/')[2]}/feed.xml", now=NOW)
        assert feed.entries[min(expected.entry, len(feed.entries) - 1)].url == at, expected
        n += 1
    assert n == 21


def test_an_identifier_that_is_no_permalink_is_no_page(shared_data: Path) -> None:
    body = dict(files(shared_data, "feeds"))["wellformed/rss/item_guid_not_permalink.xml"]
    feed = read_feed(body, "http://example.com/feed.xml", now=NOW)
    assert (feed.entries, feed.skipped) == ([], {"without a URL": 1})
