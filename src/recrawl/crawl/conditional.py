"""If-None-Match and If-Modified-Since, from the last visit of each planned page."""

from __future__ import annotations

from typing import Any, Self

from scrapy.http import Request

from recrawl.crawl.page_request import PlannedRequest
from recrawl.crawl.record import is_visit
from recrawl.crawl.session import Session

NAMES = ("If-None-Match", "If-Modified-Since")
VALIDATED_URL = "recrawl_conditional"  #: in a request's meta: the URL that its validators belong to


class ConditionalRequests:
    """Downloader middleware that requests planned pages only if they changed.

    The spider's own requests stay as they are: without the page it could scrape nothing and follow no links.
    """

    def __init__(self, crawler: Any) -> None:
        self.session = Session.of(crawler)

    @classmethod
    def from_crawler(cls, crawler: Any) -> Self:
        """Scrapy's constructor."""
        return cls(crawler)

    def process_request(self, request: Request, spider: Any = None) -> None:
        """Add the validators of the page's last stored copy."""
        if not isinstance(request, PlannedRequest) or not is_visit(request):
            return
        if request.meta.get(VALIDATED_URL, request.url) != request.url:  # redirected, with another page's validators
            for name in NAMES:
                request.headers.pop(name, None)
        if any(name in request.headers for name in NAMES):
            return
        validators = self.session.validators_of(request.url)
        for name, value in validators.items():
            request.headers[name] = value.encode("latin-1", "replace")
        if validators:
            request.meta[VALIDATED_URL] = request.url
            self.session.stats.inc_value("recrawl/conditional")
