"""The planned pages as start requests, before the spider's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Self
from urllib.parse import urlsplit

from scrapy.http import Request

from recrawl.crawl.hints import read_hints
from recrawl.crawl.page_request import PlannedRequest
from recrawl.crawl.planned import Planned
from recrawl.crawl.robots import Robots
from recrawl.crawl.session import Session, logger
from recrawl.crawl.versions import has_asyncio, in_thread
from recrawl.errors import BadOption, RecrawlError

TOP_PRIORITY = 1_000_000  #: of the best planned page: above what spiders use


class PlannedStart:
    """Spider middleware that puts the planned pages before the spider's start requests."""

    def __init__(self, crawler: Any) -> None:
        self.crawler, self.session = crawler, Session.of(crawler)

    @classmethod
    def from_crawler(cls, crawler: Any) -> Self:
        """Scrapy's constructor."""
        return cls(crawler)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """The planned pages, then the spider's own start requests (Scrapy 2.13 and later)."""
        if self._is_crawl():
            if self.session.options.hints and has_asyncio():
                await self._read_hints()
            for request in self.requests(await in_thread(self._plan)):
                yield request
        async for item in start:
            yield item

    def process_start_requests(self, start_requests: Iterable[Request], spider: Any) -> Iterator[Request]:
        """The same for Scrapy before 2.13."""
        if self._is_crawl():
            # All at once: otherwise Scrapy would follow the links of the first ones before it takes the others.
            for request in self.requests(self._plan()):
                self.crawler.engine.crawl(request)
        yield from start_requests

    def requests(self, plan: Planned) -> Iterator[Request]:
        """One request per page, the best first. Its meta holds the page's rank, expected new links and reason."""
        callback = getattr(self.crawler.spider, self.session.options.callback or "", None)
        state = job_state(self.crawler)
        last = state.get("rank", 0) if plan.id and state.get("plan") == plan.id else 0
        for number, (url, row) in enumerate(zip(plan.urls, plan.rows, strict=True)):
            if row.get("rank", number + 1) <= last or not is_allowed(self.crawler, url):
                continue
            state.update(plan=plan.id, rank=row.get("rank", 0))
            yield PlannedRequest(
                url,
                callback=callback,
                priority=TOP_PRIORITY - number,
                dont_filter=True,
                # Scrapy's cache does not know whether the page changed.
                meta={"recrawl": {"plan": plan.id, **row}, "dont_cache": True},
            )

    async def _read_hints(self) -> None:
        """Read the sitemaps and feeds that are due. If that fails, the plan is made without them."""
        middlewares = self.crawler.engine.downloader.middleware.middlewares
        robots = next((middleware for middleware in middlewares if isinstance(middleware, Robots)), None)

        async def sitemaps_of(origin: str) -> list[str]:
            return (await robots.rules(f"{origin}/")).sitemaps if robots else []

        try:
            await read_hints(self.crawler, self.session, sitemaps_of)
        except RecrawlError as error:
            logger.warning("cannot read hints: %s", error)

    def _plan(self) -> Planned:
        try:
            self._check_callback()
            return self.session.begin()
        except RecrawlError as error:  # the spider can work without a plan
            logger.error("no plan: %s", error)
            self.session.plan_failure = str(error)
        except Exception as error:  # a bug here must not stop the spider either
            logger.exception("no plan")
            self.session.plan_failure = f"{type(error).__name__}: {error}"
        self.crawler.stats.set_value("recrawl/plan_failed", self.session.plan_failure)
        return Planned()

    def _check_callback(self) -> None:
        name, spider = self.session.options.callback, self.crawler.spider
        if name is not None and not callable(getattr(spider, name, None)):
            raise BadOption(
                f"RECRAWL_CALLBACK is {name!r}; it must be the name of a method of the spider {spider.name!r}"
            )

    def _is_crawl(self) -> bool:
        """Whether to make a plan: not for ``scrapy fetch``, ``parse``, ``check`` or ``shell``, and not for a first crawl."""
        spider = self.crawler.spider
        starts = (getattr(spider, "start", None), getattr(spider, "start_requests", None))
        is_command = any(getattr(start, "__module__", "").startswith("scrapy.commands.") for start in starts)
        if getattr(spider, "has_own_frontier", False):
            return False
        return not is_command and not self.crawler.settings.getbool("KEEP_ALIVE")  # set by the shell of Scrapy 2.12


def job_state(crawler: Any) -> dict[str, Any]:
    """What went into Scrapy's queue, stored with a JOBDIR: that queue holds what is not fetched yet."""
    state = getattr(crawler.spider, "state", None) if crawler.settings.get("JOBDIR") else None
    return state.setdefault("recrawl", {}) if isinstance(state, dict) else {}


def is_allowed(crawler: Any, url: str) -> bool:
    """Whether the spider's `allowed_domains` include a URL: Scrapy itself does not filter the pages that recrawl chose."""
    domains, host = getattr(crawler.spider, "allowed_domains", None), urlsplit(url).hostname or ""
    if not domains or any(f".{host}".endswith(f".{domain}".lower()) for domain in domains):
        return True
    crawler.stats.inc_value("recrawl/offsite")
    return False
