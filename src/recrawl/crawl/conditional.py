"""If-None-Match and If-Modified-Since, from the last visit of each page."""

from __future__ import annotations

from typing import Any, Self

from scrapy.http import Request

from recrawl.crawl.record import is_visit
from recrawl.crawl.session import Session


class Conditional:
    """Scrapy's downloader middleware that asks for a page only if it changed; what the request already says stays."""

    def __init__(self, crawler: Any) -> None:
        self.session = Session.of(crawler)

    @classmethod
    def from_crawler(cls, crawler: Any) -> Self:
        """As Scrapy makes its parts."""
        return cls(crawler)

    def process_request(self, request: Request, spider: Any = None) -> None:
        """Add the validators of the copy that is kept."""
        if request.method != "GET" or not is_visit(request) or request.body:
            return
        if "If-None-Match" in request.headers or "If-Modified-Since" in request.headers:
            return
        sent = self.session.headers(request.url)
        for name, value in sent.items():
            request.headers[name] = value.encode("latin-1", "replace")
        if sent:
            self.session.stats.inc_value("recrawl/conditional")
