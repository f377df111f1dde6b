"""Readers of what servers send: HTML, robots.txt, sitemaps, feeds, URLs."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

from fuzz import seeds
from fuzz.seeds import words
from fuzz.target import NOW, PAGE, Target
from recrawl.crawl import addresses, feeds, hint_rows, robots, sitemaps
from recrawl.errors import BadUrl
from recrawl.web import html, terms, urls
from recrawl.world import roots


def all_targets() -> Iterator[Target]:
    """Everything that is read from pages and files of websites."""
    pages = [b"\0" + data for data in seeds.samples("html_tree_dat", seeds.HTML)]
    yield Target(name="html", run=_html, seeds=pages, words=words("html", "url"))
    yield Target(name="words", run=_words, seeds=[*seeds.naughty(), "Über 中文字 a1 b".encode()])
    yield Target(name="url", run=_url, seeds=seeds.urls(), words=words("url"))
    rules = [*seeds.samples("robots_real", seeds.ROBOTS), *seeds.samples("robots_rfc9309")]
    yield Target(name="robots", run=_robots, seeds=rules, words=words("http", "url"))
    maps = seeds.samples("sitemaps", seeds.SITEMAP, seeds.INDEX, gzip.compress(seeds.SITEMAP, mtime=0))
    yield Target(name="sitemap", run=_sitemap, seeds=maps, words=words("xml", "url"))
    listed = seeds.samples("feeds", seeds.RSS, seeds.ATOM)
    yield Target(name="feed", run=_feed, seeds=listed, words=words("rss", "atom", "xml"))


TYPES = (
    "text/html",
    "text/html; charset=utf-16",
    None,
    "application/xhtml+xml; charset=x",
    "text/html;charset=shift_jis",
    "a/b",
)


def _html(data: bytes) -> None:
    """The first byte says which type is declared."""
    page = html.page(data[1:], TYPES[(data[0] if data else 0) % len(TYPES)], PAGE, None)
    for href in page.hrefs or ():
        try:
            urls.canonical(href, page.base)
        except BadUrl:
            continue
    terms.count_terms(page.text or "")
    list(hint_rows.linked_feeds(PAGE, data))


def _words(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    counted = terms.count_terms(text)
    assert all(counted.word(i) for i in range(min(len(counted.count), 20)))
    terms.collapsed(text)


def _url(data: bytes) -> None:
    """A canonical URL is its own canonical form, and everything can be asked of it."""
    text = data.decode("utf-8", "surrogateescape" if data[:1] == b"\xed" else "replace")
    found = urls.canonical(text, PAGE)
    assert urls.canonical(found) == found, "canonical twice is not canonical once"
    urls.site(urls.host(found))
    for ask in (urls.page_id, urls.origin, urls.path_depth, urls.domain_depth, urls.top_level_domain, urls.trap):
        ask(found)
    roots.DOMAINS.root_of(found)
    addresses.check_url(found)


def _robots(data: bytes) -> None:
    rules = robots.rules_from(200, data, NOW)
    for agent in ("bot", "Mozilla/5.0 (compatible; x)", "*", ""):
        assert rules.delay(robots.product_token(agent)) >= 0
        for url in (PAGE, "https://e.org/", "https://e.org/a%2Fb?c=*$"):
            assert isinstance(rules.allows(url, agent), bool)
    for sitemap in rules.sitemaps:
        assert isinstance(sitemap, str)


def _sitemap(data: bytes) -> None:
    found = sitemaps.read_sitemap(data, PAGE, now=NOW)
    assert all(urls.host(entry.url) for entry in found.entries)


def _feed(data: bytes) -> None:
    feeds.kind_of(data)
    found = feeds.read_feed(data, PAGE, now=NOW)
    assert all(urls.host(entry.url) for entry in found.entries)
