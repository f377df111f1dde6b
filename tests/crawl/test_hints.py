"""Sitemaps and feeds as a crawl reads them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.compute as pc
import pytest

from crawl.crawling import HttpResponse, Sites, crawled
from recrawl.crawl.hint_rows import linked_feeds
from recrawl.history import History
from recrawl.history.hints import HINTS
from recrawl.web.urls import page_id

pytestmark = pytest.mark.slow  # each crawl is a process

N = 8
NOW = datetime.now(UTC)
YESTERDAY = (NOW - timedelta(days=1)).isoformat()


def xml(text: str) -> HttpResponse:
    return HttpResponse(200, text.encode(), {"Content-Type": "application/xml"})


def urlset(sites: Sites, site: int, changed: dict[int, str]) -> HttpResponse:
    pages = "".join(
        f"<url><loc>{sites.url(f'/{i}', site)}</loc><lastmod>{at}</lastmod></url>" for i, at in changed.items()
    )
    return xml(f"<urlset>{pages}</urlset>")


def rss(sites: Sites, site: int) -> HttpResponse:
    item = f"<item><link>{sites.url('/0', site)}</link><pubDate>{NOW:%a, %d %b %Y %H:%M:%S} GMT</pubDate></item>"
    return xml(f"<rss><channel>{item}</channel></rss>")


def with_feeds(i: int) -> HttpResponse:
    """Like a blog: a feed of all pages, and one with the comments of each page."""
    links = "".join(
        f'<link rel="alternate" type="application/rss+xml" href="{href}">'
        for href in ("/feed.xml", f"/{i}/comments.xml")
    )
    return HttpResponse(200, f"<head>{links}</head><a href='/{i + 1}'>on</a>".encode(), {"Content-Type": "text/html"})


@pytest.fixture(scope="module")
def hints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Three sites: a relative sitemap URL in robots.txt, an index whose dates have no time, and a site with neither."""
    history = tmp_path_factory.mktemp("hints") / "h"
    with Sites({}, {}, {}) as sites:
        plain = {"Content-Type": "text/plain"}
        sites.answers[0] |= {
            "/robots.txt": HttpResponse(200, b"Sitemap: /map.xml", plain),
            "/map.xml": urlset(sites, 0, {0: YESTERDAY, 1: "nonsense", 2: "2020-01-01"}),
            "/feed.xml": rss(sites, 0),
            **{f"/{i}": with_feeds(i) for i in range(N)},
        }
        child = f"<sitemap><loc>{sites.url('/part.xml', 1)}</loc><lastmod>{NOW:%Y-%m-%d}</lastmod></sitemap>"
        sites.answers[1] |= {
            "/robots.txt": HttpResponse(200, f"Sitemap: {sites.url('/index.xml', 1)}".encode(), plain),
            "/index.xml": xml(f"<sitemapindex>{child}</sitemapindex>"),
            "/part.xml": urlset(sites, 1, {0: YESTERDAY}),
        }
        sites.answers[2] |= {"/sitemap.xml": HttpResponse(404, b"no")}
        pages = [sites.url(f"/{i}", site) for site in range(3) for i in range(N)]
        crawled(history, plan=pages, RECRAWL_HINTS=True)
        sites.log.clear()
        later = crawled(history, RECRAWL_HINTS=True, RECRAWL_BUDGET="3", cycles=2, hours=[1, 1.5])
        sites.answers[1]["/part.xml"] = urlset(sites, 1, {0: YESTERDAY, 3: NOW.isoformat()})
        crawled(history, RECRAWL_HINTS=True, RECRAWL_BUDGET="3", hours=[26])
        yield {"sites": sites, "history": History.open(history), "later": later, "log": [got.path for got in sites.log]}


def changed_pages(hints: dict[str, Any], kind: str, site: int) -> set[int]:
    rows = HINTS.read(hints["history"].beside)
    rows = rows.filter(pc.and_(pc.equal(rows["kind"], kind), pc.is_valid(rows["changed_at"])))
    known = {page_id(hints["sites"].url(f"/{i}", site)): i for i in range(N)}
    return {known[number] for number in rows["page"].to_pylist() if number in known}


def test_a_sitemap_with_a_relative_url_is_read(hints: dict[str, Any]) -> None:
    assert changed_pages(hints, "sitemap", 0) == {0, 2}  # nonsense is not a date


def test_a_change_later_on_the_day_of_the_index_is_read(hints: dict[str, Any]) -> None:
    assert changed_pages(hints, "sitemap", 1) == {0, 3}


def test_a_feed_counts_for_the_pages_that_link_to_it_and_feeds_of_single_pages_are_not_read(
    hints: dict[str, Any],
) -> None:
    assert changed_pages(hints, "feed", 0) == set(range(N))
    assert hints["log"].count("/feed.xml") == 2
    assert sum(path.endswith("comments.xml") for path in hints["log"]) <= 4  # two more feeds per reading


def test_sitemaps_and_feeds_are_read_once_per_day(hints: dict[str, Any]) -> None:
    assert [cycle["summary"]["hints_read"] > 0 for cycle in hints["later"]["cycles"]] == [True, False]


def test_a_host_without_sitemap_and_feed_differs_from_one_that_reports_no_change(hints: dict[str, Any]) -> None:
    rows = HINTS.read(hints["history"].beside)
    host = hints["sites"].url("/", 2).split("/")[2].split(":")[0]
    of_host = rows.filter(pc.equal(rows["host"], host))
    assert set(of_host["kind"].to_pylist()) == {"nothing"}


def test_linked_feeds_are_found_in_every_spelling() -> None:
    head = b"""<LINK REL=alternate TYPE='application/atom+xml' HREF='/a.xml'><link rel="alternate" hreflang="de" href="/de">
    <link href="b.xml?x=1&amp;y=2" rel="alternate" type="application/rss+xml"><link rel=alternate type=application/rss+xml>"""
    assert list(linked_feeds("https://e.org/x/", head)) == ["https://e.org/a.xml", "https://e.org/x/b.xml?x=1&y=2"]
