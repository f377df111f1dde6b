"""Requests for pages that recrawl chose itself, as opposed to the spider's own."""

from __future__ import annotations

from typing import Any

from scrapy import Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request


class CrawlEnded(IgnoreRequest):
    """The crawl was stopped before the page was requested, so there is no visit to record."""


class PageRequest(Request):
    """A request for a page that recrawl chose; its retries and redirects are of this class, too.

    On its way to the network it gets an errback. A queue on disk cannot store that, so it is left out there and set again later.
    """

    def to_dict(self, *, spider: Spider | None = None) -> dict[str, Any]:
        """The form in which a crawl with a JOBDIR stores it."""
        return super(PageRequest, self.replace(errback=None)).to_dict(spider=spider)


class PlannedRequest(PageRequest):
    """A request for a planned page."""


class FollowedRequest(PageRequest):
    """A request for a page that was found on a planned one."""
