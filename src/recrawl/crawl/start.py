"""The plan as start requests, before the spider's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from functools import partial
from typing import Any, Self

from scrapy.http import Request
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.threads import deferToThread

from recrawl.crawl.planned import Planned
from recrawl.crawl.record import unseen_failure
from recrawl.crawl.robots import Robots
from recrawl.crawl.session import Session, logger
from recrawl.crawl.signals import read_hints
from recrawl.errors import RecrawlError

FIRST = 1_000_000  #: priority of the best planned page: above what spiders use


class PlannedStart:
    """Scrapy's spider middleware that puts the planned pages before the spider's start requests."""

    def __init__(self, crawler: Any) -> None:
        self.crawler, self.session = crawler, Session.of(crawler)

    @classmethod
    def from_crawler(cls, crawler: Any) -> Self:
        """As Scrapy makes its parts."""
        return cls(crawler)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """The planned pages, then what the spider starts with (Scrapy 2.13 and later)."""
        if self.session.options.hints and is_asyncio_available():
            await self._read_hints()
        plan = await maybe_deferred_to_future(deferToThread(self._plan))
        for request in self.requests(plan):
            yield request
        async for item in start:
            yield item

    def process_start_requests(self, start_requests: Iterable[Request], spider: Any) -> Iterator[Request]:
        """The same for Scrapy before 2.13."""
        yield from self.requests(self._plan())
        yield from start_requests

    def requests(self, plan: Planned) -> Iterator[Request]:
        """One request a page, the best first; each knows its rank and what is expected of it."""
        callback = self._callback()
        for number, (url, told) in enumerate(zip(plan.urls, plan.told, strict=True)):
            yield Request(
                url,
                callback=callback,
                errback=partial(unseen_failure, self.session),
                priority=FIRST - number,
                dont_filter=True,
                meta={"recrawl": {"plan": plan.id, **told}},
            )

    async def _read_hints(self) -> None:
        """Sitemaps and feeds, where they are due; a plan can be made without them."""
        robots = next(
            (part for part in self.crawler.engine.downloader.middleware.middlewares if isinstance(part, Robots)), None
        )

        async def sitemaps_of(origin: str) -> list[str]:
            return (await robots.rules(f"{origin}/")).sitemaps if robots else []

        try:
            await read_hints(self.crawler, self.session, sitemaps_of)
        except RecrawlError as error:
            logger.warning("hints are not read: %s", error)

    def _plan(self) -> Planned:
        try:
            return self.session.begin()
        except RecrawlError as error:  # the spider can do its own work all the same
            logger.error("no plan: %s", error)
            self.crawler.stats.inc_value("recrawl/plan_failed")
            return Planned()

    def _callback(self) -> Any:
        name = self.session.options.callback
        if name is None:
            return None
        found = getattr(self.crawler.spider, name, None)
        if found is None:
            raise ValueError(
                f"RECRAWL_CALLBACK is {name!r}, but spider {self.crawler.spider.name!r} has no such method"
            )
        return found
