"""The plan as start requests, before the spider's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Self
from urllib.parse import urlsplit

from scrapy.http import Request

from recrawl.crawl.page_request import PlannedPage
from recrawl.crawl.planned import Planned
from recrawl.crawl.robots import Robots
from recrawl.crawl.session import Session, logger
from recrawl.crawl.settings import BadSetting
from recrawl.crawl.signals import read_hints
from recrawl.crawl.versions import has_asyncio, in_thread
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
            # All at once: Scrapy would fetch what the first ones lead to before it asks for more.
            for request in self.requests(self._plan()):
                self.crawler.engine.crawl(request)
        yield from start_requests

    def requests(self, plan: Planned) -> Iterator[Request]:
        """One request a page, the best first; each knows its rank and what is expected of it."""
        callback = getattr(self.crawler.spider, self.session.options.callback or "", None)
        state = self._state()
        last = state.get("rank", 0) if plan.id and state.get("plan") == plan.id else 0
        for number, (url, told) in enumerate(zip(plan.urls, plan.told, strict=True)):
            if told.get("rank", number + 1) <= last or not self._is_allowed(url):
                continue
            state.update(plan=plan.id, rank=told.get("rank", 0))
            yield PlannedPage(
                url,
                callback=callback,
                priority=FIRST - number,
                dont_filter=True,
                # Whether a page changed is not found out from a copy that Scrapy's cache has.
                meta={"recrawl": {"plan": plan.id, **told}, "dont_cache": True},
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
            self._check_callback()
            return self.session.begin()
        except RecrawlError as error:  # the spider can do its own work all the same
            logger.error("no plan: %s", error)
            self.session.plan_failure = str(error)
        except Exception as error:  # whatever is wrong, it is not the spider's fault
            logger.exception("no plan")
            self.session.plan_failure = f"{type(error).__name__}: {error}"
        self.crawler.stats.set_value("recrawl/plan_failed", self.session.plan_failure)
        return Planned()

    def _check_callback(self) -> None:
        name, spider = self.session.options.callback, self.crawler.spider
        if name is not None and not callable(getattr(spider, name, None)):
            raise BadSetting("callback", name, f"the name of a method of the spider {spider.name!r}")

    def _is_crawl(self) -> bool:
        """Whether the spider wants a plan: not for the one page of ``scrapy fetch``, ``parse`` or ``check``, nor a first crawl."""
        spider = self.crawler.spider
        starts = (getattr(spider, "start", None), getattr(spider, "start_requests", None))
        is_command = any(getattr(start, "__module__", "").startswith("scrapy.commands.") for start in starts)
        if getattr(spider, "has_own_frontier", False):
            return False
        return not is_command and not self.crawler.settings.getbool("KEEP_ALIVE")  # which is how a shell of 2.12 tells

    def _is_allowed(self, url: str) -> bool:
        """Whether the spider wants pages of that site; Scrapy does not ask, since planned pages are never filtered."""
        domains, host = getattr(self.crawler.spider, "allowed_domains", None), urlsplit(url).hostname or ""
        if not domains or any(f".{host}".endswith(f".{domain}".lower()) for domain in domains):
            return True
        self.crawler.stats.inc_value("recrawl/offsite")
        return False

    def _state(self) -> dict[str, Any]:
        """How far the plan has been handed out, as a crawl with a JOBDIR remembers it: its queue holds what is not fetched."""
        kept = getattr(self.crawler.spider, "state", None) if self.crawler.settings.get("JOBDIR") else None
        return kept.setdefault("recrawl", {}) if isinstance(kept, dict) else {}
