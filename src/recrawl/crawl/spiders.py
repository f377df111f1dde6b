"""The two spiders of ``recrawl crawl``: one that fetches the plan, one that goes outwards from seeds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.http import Request, Response

from recrawl.crawl.frontier import Frontier
from recrawl.crawl.record import unseen_failure
from recrawl.crawl.session import Session
from recrawl.errors import BadUrl
from recrawl.urls import canonical, trap
from recrawl.visits import Visit

_PAUSE = 0.02  # seconds between looks at whether there is room for another request


class PlanSpider(scrapy.Spider):
    """Fetches what is planned; everything is recorded on the way, so nothing is left to do here."""

    name = "recrawl"
    handle_httpstatus_all = True

    async def start(self) -> AsyncIterator[Any]:
        """Nothing of its own."""
        nothing: list[Any] = []
        for item in nothing:
            yield item

    def parse(self, response: Response) -> None:
        """The visit is recorded already."""


class SeedSpider(scrapy.Spider):
    """Goes outwards from seeds, the most promising page first."""

    name = "recrawl-first"
    handle_httpstatus_all = True

    def __init__(self, frontier: Frontier, **more: Any) -> None:
        super().__init__(**more)
        self.frontier = frontier

    async def start(self) -> AsyncIterator[Any]:
        """One request after the other, as there is room: what was fetched meanwhile may change which is best."""
        while True:
            url = None if self.crawler.engine.needs_backout() else self.frontier.take()
            if url is not None:
                yield Request(url, callback=self.parse, errback=self.failed, dont_filter=True, cb_kwargs={"page": url})
            elif self.frontier.n_under_way == 0 and not self.crawler.engine.needs_backout():
                return
            else:
                await asyncio.sleep(_PAUSE)

    def parse(self, response: Response, page: str) -> None:
        """Take the links of a page to the frontier; what they are was found out when its visit was recorded."""
        visit = Session.of(self.crawler).done.get(response.request)
        if visit is None or visit.status != 200:
            self.frontier.done(page)
        else:
            self.frontier.done(page, links_of(visit), visit.text or "")

    def failed(self, failure: Any) -> None:
        """A page did not come."""
        unseen_failure(Session.of(self.crawler), failure)
        self.frontier.done(failure.request.cb_kwargs["page"])


def links_of(visit: Visit) -> Iterator[str]:
    """The links that a page showed, in full, without those that look like traps."""
    for href in visit.links or ():
        try:
            link = canonical(href, visit.base)
        except BadUrl:
            continue
        if not trap(link):
            yield link
