"""The two spiders of ``recrawl crawl``: one fetches the plan, the other crawls outwards from seeds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import scrapy
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request, Response

from recrawl.crawl.first import FirstCrawl
from recrawl.crawl.frontier import Frontier
from recrawl.crawl.page_links import links_of
from recrawl.crawl.record import unseen_failure
from recrawl.crawl.session import Session
from recrawl.crawl.unfinished import NOT_KEPT
from recrawl.crawl.versions import in_thread
from recrawl.errors import BadUrl, RecrawlError
from recrawl.web.urls import canonical

_PAUSE = 0.02  # seconds between two checks whether another request may be sent


class PlanSpider(scrapy.Spider):
    """Fetches the planned pages. The middlewares record them, so nothing is left to do here."""

    name = "recrawl"

    async def start(self) -> AsyncIterator[Any]:
        """No start requests: the middleware `PlannedStart` adds the planned pages."""
        no_requests: list[Any] = []
        for request in no_requests:
            yield request

    def parse(self, response: Response) -> None:
        """Nothing to do: the visit is already recorded."""


class SeedSpider(scrapy.Spider):
    """Crawls outwards from seeds, the page with the highest score first.

    The target of a redirect is a page like any other that was found: it must be allowed, and waits for its turn.
    """

    name = "recrawl-first"
    has_own_frontier = True  # no plan is made for it

    def __init__(self, frontier: Frontier, **more: Any) -> None:
        super().__init__(**more)
        self.frontier = frontier
        self.first: FirstCrawl | None = None

    async def start(self) -> AsyncIterator[Any]:
        """One request at a time, when there is room for it: pages fetched meanwhile may change which one is best."""
        await self._begin()
        while True:
            url = None if self.crawler.engine.needs_backout() else self.frontier.take()
            if url is not None:
                yield self._request(url)
            elif self.frontier.n_in_progress == 0 and not self.crawler.engine.needs_backout():
                return
            else:
                await asyncio.sleep(_PAUSE)

    async def _begin(self) -> None:
        """Resume an interrupted first crawl. If this crawl cannot be noted down for later, it runs all the same."""
        session = Session.of(self.crawler)
        self.first = FirstCrawl(session.history.detached(), self.frontier)
        try:
            n_before = await in_thread(self.first.begin, session.now(), session.options.resume, session.is_alone())
        except RecrawlError as error:
            session.note(f"{NOT_KEPT}, the next one starts from the seeds again: {error}")
            n_before = 0
        self.frontier.run_update = self._update_scores  # type: ignore[method-assign]
        if n_before:
            session.note(f"continuing an interrupted first crawl: {n_before:,} pages are already fetched")

    def _update_scores(self, task: Callable[[], Any]) -> None:
        """Compute new scores in a thread: for many pages that takes seconds, and the crawl goes on meanwhile."""

        async def update() -> None:
            self.frontier.apply_update(await in_thread(task))

        self._update = asyncio.ensure_future(update())  # a reference, or it may be garbage-collected before it is done

    def closed(self, reason: str) -> None:
        """A crawl that finished by itself is not resumed."""
        if self.first is not None and reason == "finished":
            self.first.end()

    def _request(self, url: str, **meta: Any) -> Request:
        meta |= {"dont_redirect": True, "handle_httpstatus_all": True}
        cb_kwargs = {"page": url}
        return Request(url, self.parse, errback=self.failed, dont_filter=True, cb_kwargs=cb_kwargs, meta=meta)

    def parse(self, response: Response, page: str) -> Iterator[Request]:
        """Add the links of a page to the frontier. They were extracted when its visit was recorded."""
        session = Session.of(self.crawler)
        visit, target = session.done.get(response.request), _target(response)
        if target == page:  # perhaps only to set a cookie
            if not response.meta.get("again"):
                yield self._request(page, again=True)
                return
            session.record_failure(page, "too many redirects")
        if target is not None:
            self.frontier.done(page, [target])
        elif visit is None or visit.status != 200:
            self.frontier.done(page)
        else:
            self.frontier.done(page, links_of(visit), visit.text or "")

    def failed(self, failure: Any) -> None:
        """A page could not be fetched. If robots.txt forbids it, it was not even requested."""
        page = failure.request.cb_kwargs["page"]
        if failure.check(IgnoreRequest):
            self.frontier.not_requested(page)
            return
        unseen_failure(Session.of(self.crawler), failure)
        self.frontier.done(page)


def _target(response: Response) -> str | None:
    """The target of a redirect; None for any other response."""
    location = response.headers.get("Location")
    if not 300 <= response.status < 400 or not location:
        return None
    try:
        return canonical(location.decode("utf-8", "replace"), response.url)
    except BadUrl:
        return None
