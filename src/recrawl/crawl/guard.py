"""A Scrapy downloader middleware that lets no request leave the public web."""

from __future__ import annotations

from typing import Any, Self

from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request
from scrapy.statscollectors import StatsCollector
from scrapy.utils.httpobj import urlparse_cached

from recrawl.crawl.addresses import Networks, UnsafeUrl, check_url
from recrawl.crawl.resolver import PublicOnlyResolver, allowed_networks

try:
    from scrapy.exceptions import CannotResolveHostError as HostNotFound
except ImportError:  # before Scrapy 2.15
    from twisted.internet.error import DNSLookupError as HostNotFound  # type: ignore[assignment]


class Guard:
    """Refuses requests to anything but the public web: by their URL, and after the lookup by the address of their host.

    Every request passes, so every hop of a redirect and every robots.txt does. A refusal is an `IgnoreRequest` that says why,
    counted in the stats as ``recrawl/refused`` and ``recrawl/refused/<reason>``. It belongs behind the middlewares that retry
    (550) and that set a proxy (750), and needs `PublicOnlyResolver` as TWISTED_DNS_RESOLVER: without it nothing is fetched.
    """

    ORDER = 760  #: its place among DOWNLOADER_MIDDLEWARES

    def __init__(self, allow: Networks, stats: StatsCollector) -> None:
        self.allow, self.stats = allow, stats

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """As Scrapy makes it."""
        assert crawler.stats is not None  # Scrapy makes it before the middlewares
        return cls(allowed_networks(crawler), crawler.stats)

    def process_request(self, request: Request, spider: Any = None) -> None:
        """Let a request pass, or raise `IgnoreRequest`."""
        try:
            check_url(request.url, self.allow)
        except UnsafeUrl as error:
            raise self._refusal(error) from error
        if request.meta.get("proxy"):
            detail = f"it would look up the host of {request.url[:200]!r} unchecked; set HTTPPROXY_ENABLED to False"
            raise self._refusal(UnsafeUrl("proxy", detail))
        if PublicOnlyResolver.installed() is None:
            wanted = f"{PublicOnlyResolver.__module__}.{PublicOnlyResolver.__qualname__}"
            raise self._refusal(UnsafeUrl("addresses unchecked", f"set TWISTED_DNS_RESOLVER to {wanted!r}"))

    def process_exception(self, request: Request, exception: Exception, spider: Any = None) -> None:
        """Say which address was the reason, where a host was refused and Scrapy only knows that none was found."""
        resolver = PublicOnlyResolver.installed()
        if resolver is None or not isinstance(exception, HostNotFound):
            return
        host = urlparse_cached(request).hostname or ""
        if address := resolver.refused.get(host):
            error = UnsafeUrl("address not public", f"{host} has the address {address}")
            raise self._refusal(error) from exception

    def _refusal(self, error: UnsafeUrl) -> IgnoreRequest:
        self.stats.inc_value("recrawl/refused")
        self.stats.inc_value(f"recrawl/refused/{error.reason}")
        return IgnoreRequest(str(error))
