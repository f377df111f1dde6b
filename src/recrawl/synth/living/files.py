"""The files of every site of a living web besides its pages: robots.txt, sitemaps and a feed of its new articles.

The second site asks for a delay between visits, the third has no robots.txt, that of the fourth can be down, and the sitemap
of the first is an index of two.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from xml.sax.saxutils import escape

from recrawl.synth.living.http import HttpResponse, http_date
from recrawl.synth.living.world import LivingWorld

INDEX_SITE, DELAY_SITE, NO_ROBOTS_SITE, ROBOTS_DOWN_SITE = range(4)
FEED_ITEMS = 30  #: articles in a feed
SITEMAP_ARTICLES = 2_000  #: newest articles in a sitemap, besides all pages
_PARTS = {"/sitemap.xml": ("pages", "articles")}
_PARTS_OF_INDEX = {"/sitemap-pages.xml": ("pages",), "/sitemap-articles.xml": ("articles",)}
_XML = {"Content-Type": "application/xml; charset=utf-8"}
_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


def file_response(world: LivingWorld, origin: str, site: int, path: str, step: int) -> HttpResponse | None:
    """The response to a request for one of the files; None where the path is not one of them.

    >>> from recrawl.synth.living.settings import Living
    >>> world = LivingWorld(Living(sites=2, pages=20, steps=4))
    >>> print(file_response(world, "http://127.0.1.2:80", 1, "/robots.txt", 0).body.decode())
    User-agent: *
    Disallow: /private/
    Crawl-delay: 1
    Sitemap: http://127.0.1.2:80/sitemap.xml
    """
    if path == "/robots.txt":
        return _robots(world, origin, site, step)
    if path == "/feed.xml":
        return HttpResponse(200, _feed(world, origin, site, step), _XML)
    if path == "/sitemap.xml" and site == INDEX_SITE:
        return HttpResponse(200, _index(world, origin, step), _XML)
    parts = (_PARTS_OF_INDEX if site == INDEX_SITE else _PARTS).get(path)
    return parts and HttpResponse(200, _sitemap(world, origin, site, step, parts), _XML)


def lies_in_sitemap(world: LivingWorld, site: int) -> bool:
    """Whether the sitemap says of everything that it has just changed."""
    return site >= world.living.sites - round(world.living.faults.lying_sitemaps * world.living.sites)


def _robots(world: LivingWorld, origin: str, site: int, step: int) -> HttpResponse:
    plain = {"Content-Type": "text/plain"}
    if site == NO_ROBOTS_SITE:
        return HttpResponse(404, b"not found", plain)
    if site == ROBOTS_DOWN_SITE and step < world.living.faults.robots_down:
        return HttpResponse(503, b"down for maintenance", plain)
    delay = [f"Crawl-delay: {world.living.crawl_delay:g}"] if site == DELAY_SITE else []
    lines = ["User-agent: *", "Disallow: /private/", *delay, f"Sitemap: {origin}/sitemap.xml", ""]
    return HttpResponse(200, "\n".join(lines).encode(), plain)


def _sitemap(world: LivingWorld, origin: str, site: int, step: int, parts: Iterable[str]) -> bytes:
    pages, articles = world.numbers_of_site(site, step)
    articles = articles[:SITEMAP_ARTICLES]
    listed = {"pages": (pages, world.states(pages, step)), "articles": (articles, world.since[articles])}
    rows = [row for part in parts for row in zip(*(values.tolist() for values in listed[part]), strict=True)]
    lying = lies_in_sitemap(world, site)
    urls = (
        _entry("url", origin + world.places[number][1], world.time(step if lying else state)) for number, state in rows
    )
    return f'{_HEAD}<urlset xmlns="{_NAMESPACE}">\n{"".join(urls)}</urlset>\n'.encode()


def _index(world: LivingWorld, origin: str, step: int) -> bytes:
    pages, articles = world.numbers_of_site(INDEX_SITE, step)
    newest = {"pages": world.states(pages, step).max(), "articles": world.since[articles].max(initial=0)}
    maps = (_entry("sitemap", f"{origin}/sitemap-{name}.xml", world.time(int(at))) for name, at in newest.items())
    return f'{_HEAD}<sitemapindex xmlns="{_NAMESPACE}">\n{"".join(maps)}</sitemapindex>\n'.encode()


def _entry(tag: str, url: str, modified: datetime) -> str:
    return f"<{tag}><loc>{escape(url)}</loc><lastmod>{modified.isoformat()}</lastmod></{tag}>\n"


def _feed(world: LivingWorld, origin: str, site: int, step: int) -> bytes:
    items = "".join(
        f"<item><title>{escape(world.title(number))}</title><link>{escape(origin + world.places[number][1])}</link>"
        f"<pubDate>{http_date(world.time(int(world.since[number])))}</pubDate></item>\n"
        for number in world.numbers_of_site(site, step)[1][:FEED_ITEMS].tolist()
    )
    title = f"<title>{escape(world.title(int(world.web.site_start[site])))}</title><link>{origin}/</link>"
    channel = f"{title}<description>News</description>\n{items}"
    return f'{_HEAD}<rss version="2.0"><channel>{channel}</channel></rss>\n'.encode()
