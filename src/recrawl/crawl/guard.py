"""A Scrapy downloader middleware that allows requests to the public web only."""

from __future__ import annotations

from typing import Any, Self

from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request
from scrapy.statscollectors import StatsCollector
from scrapy.utils.httpobj import urlparse_cached

from recrawl.crawl.addresses import Networks, check_url
from recrawl.crawl.resolver import PublicOnlyResolver, allowed_networks
from recrawl.errors import UnsafeUrl

try:
    from scrapy.exceptions import CannotResolveHostError as HostNotFound
except ImportError:  # before Scrapy 2.15
    from twisted.internet.error import DNSLookupError as HostNotFound  # type: ignore[assignment]


class Guard:
    """Refuses requests to anything but the public web: by their URL, and after the DNS lookup by the address of their host.

    It sees every request, including each hop of a redirect and robots.txt. A refusal is an `IgnoreRequest` that says why,
    counted in the stats as ``recrawl/refused`` and ``recrawl/refused/<reason>``. Its place is behind the middlewares for retries
    (550) and proxies (750). It needs `PublicOnlyResolver` as TWISTED_DNS_RESOLVER and refuses everything without it.
    """

    ORDER = 760  #: its place among DOWNLOADER_MIDDLEWARES

    def __init__(self, allow: Networks, stats: StatsCollector) -> None:
        self.allow, self.stats = allow, stats

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Scrapy's constructor."""
        assert crawler.stats is not None  # Scrapy creates it before the middlewares
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
            resolver = f"{PublicOnlyResolver.__module__}.{PublicOnlyResolver.__qualname__}"
            raise self._refusal(UnsafeUrl("addresses unchecked", f"set TWISTED_DNS_RESOLVER to {resolver!r}"))

    def process_exception(self, request: Request, exception: Exception, spider: Any = None) -> None:
        """Name the address for which the resolver refused a host: Scrapy only knows that the host was not found."""
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
