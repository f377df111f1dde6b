"""If-None-Match and If-Modified-Since, from the last visit of each planned page."""

from __future__ import annotations

from typing import Any, Self

from scrapy.http import Request

from recrawl.crawl.page_request import PlannedPage
from recrawl.crawl.record import is_visit
from recrawl.crawl.session import Session

NAMES = ("If-None-Match", "If-Modified-Since")
ASKED = "recrawl_conditional"  #: in a request's meta: the URL that its validators are about


class Conditional:
    """Scrapy's downloader middleware that asks for planned pages only if they changed.

    What the spider asks for by itself stays as it is: without the page it would scrape nothing and follow no links.
    """

    def __init__(self, crawler: Any) -> None:
        self.session = Session.of(crawler)

    @classmethod
    def from_crawler(cls, crawler: Any) -> Self:
        """As Scrapy makes its parts."""
        return cls(crawler)

    def process_request(self, request: Request, spider: Any = None) -> None:
        """Add the validators of the copy that is kept."""
        if not isinstance(request, PlannedPage) or not is_visit(request):
            return
        if request.meta.get(ASKED, request.url) != request.url:  # it was sent on, with the validators of another page
            for name in NAMES:
                request.headers.pop(name, None)
        if any(name in request.headers for name in NAMES):
            return
        sent = self.session.headers(request.url)
        for name, value in sent.items():
            request.headers[name] = value.encode("latin-1", "replace")
        if sent:
            request.meta[ASKED] = request.url
            self.session.stats.inc_value("recrawl/conditional")
