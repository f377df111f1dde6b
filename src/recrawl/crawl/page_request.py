"""A request for a planned page."""

from __future__ import annotations

from typing import Any

from scrapy import Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request


class Ended(IgnoreRequest):
    """Somebody ended the crawl before the page was asked for: that is no visit."""


class PlannedPage(Request):
    """What recrawl asks for, as opposed to what the spider asks for; retries and redirects of it are of this kind, too.

    On its way to the network it is given an errback, which no queue on disk can hold: it is left out there, and given again.
    """

    def to_dict(self, *, spider: Spider | None = None) -> dict[str, Any]:
        """As a crawl with a JOBDIR keeps it."""
        return super(PlannedPage, self.replace(errback=None)).to_dict(spider=spider)
