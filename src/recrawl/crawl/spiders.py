"""The two spiders of ``recrawl crawl``: one that fetches the plan, one that goes outwards from seeds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import scrapy
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request, Response

from recrawl.crawl.first import FirstCrawl
from recrawl.crawl.frontier import Frontier
from recrawl.crawl.record import unseen_failure
from recrawl.crawl.session import Session
from recrawl.crawl.unfinished import NOT_KEPT
from recrawl.crawl.versions import in_thread
from recrawl.errors import BadUrl, RecrawlError
from recrawl.history import History
from recrawl.urls import canonical, trap
from recrawl.visits import Visit

_PAUSE = 0.02  # seconds between looks at whether there is room for another request


class PlanSpider(scrapy.Spider):
    """Fetches what is planned; everything is recorded on the way, so nothing is left to do here."""

    name = "recrawl"

    async def start(self) -> AsyncIterator[Any]:
        """Nothing of its own."""
        nothing: list[Any] = []
        for item in nothing:
            yield item

    def parse(self, response: Response) -> None:
        """The visit is recorded already."""


class SeedSpider(scrapy.Spider):
    """Goes outwards from seeds, the most promising page first.

    Where a page redirects to is one more page that was found: it must be allowed, and waits for its turn.
    """

    name = "recrawl-first"
    has_own_frontier = True  # no plan is made for it

    def __init__(self, frontier: Frontier, **more: Any) -> None:
        super().__init__(**more)
        self.frontier = frontier
        self.first: FirstCrawl | None = None

    async def start(self) -> AsyncIterator[Any]:
        """One request after the other, as there is room: what was fetched meanwhile may change which is best."""
        await self._begin()
        while True:
            url = None if self.crawler.engine.needs_backout() else self.frontier.take()
            if url is not None:
                yield self._request(url)
            elif self.frontier.n_under_way == 0 and not self.crawler.engine.needs_backout():
                return
            else:
                await asyncio.sleep(_PAUSE)

    async def _begin(self) -> None:
        """Take up a first crawl that was cut short; one that cannot be noted is crawled all the same."""
        session = Session.of(self.crawler)
        self.first = FirstCrawl(History.open(session.history.store.folder), self.frontier)
        try:
            n_before = await in_thread(self.first.begin, session.now(), session.options.resume, session.is_alone())
        except RecrawlError as error:
            session.note(f"{NOT_KEPT}, the next one begins anew: {error}")
            n_before = 0
        self.frontier.renewing = self._renew  # type: ignore[method-assign]
        if n_before:
            session.note(f"going on with a first crawl that was cut short: {n_before:,} pages were fetched before")

    def _renew(self, work: Callable[[], Any]) -> None:
        """Ranks of many pages take seconds to work out: the crawl goes on meanwhile."""

        async def renewed() -> None:
            self.frontier.renewed(await in_thread(work))

        self._renewal = asyncio.ensure_future(renewed())  # kept, or it might be forgotten before it has ended

    def closed(self, reason: str) -> None:
        """A crawl that came to its end is not gone on with."""
        if self.first is not None and reason == "finished":
            self.first.end()

    def _request(self, url: str, **meta: Any) -> Request:
        meta |= {"dont_redirect": True, "handle_httpstatus_all": True}
        cb_kwargs = {"page": url}
        return Request(url, self.parse, errback=self.failed, dont_filter=True, cb_kwargs=cb_kwargs, meta=meta)

    def parse(self, response: Response, page: str) -> Iterator[Request]:
        """Take the links of a page to the frontier; what they are was found out when its visit was recorded."""
        session = Session.of(self.crawler)
        visit, target = session.done.get(response.request), _target(response)
        if target == page:  # perhaps it only wanted to set a cookie
            if not response.meta.get("again"):
                yield self._request(page, again=True)
                return
            session.failed(page, "too many redirects")
        if target is not None:
            self.frontier.done(page, [target])
        elif visit is None or visit.status != 200:
            self.frontier.done(page)
        else:
            self.frontier.done(page, links_of(visit), visit.text or "")

    def failed(self, failure: Any) -> None:
        """A page did not come. One that nobody asked for, since robots.txt forbids it, was not visited either."""
        page = failure.request.cb_kwargs["page"]
        if failure.check(IgnoreRequest):
            self.frontier.not_asked(page)
            return
        unseen_failure(Session.of(self.crawler), failure)
        self.frontier.done(page)


def _target(response: Response) -> str | None:
    """Where a redirect leads."""
    location = response.headers.get("Location")
    if not 300 <= response.status < 400 or not location:
        return None
    try:
        return canonical(location.decode("utf-8", "replace"), response.url)
    except BadUrl:
        return None


def links_of(visit: Visit) -> Iterator[str]:
    """The links that a page showed, in full, without those that look like traps."""
    for href in visit.links or ():
        try:
            link = canonical(href, visit.base)
        except BadUrl:
            continue
        if not trap(link):
            yield link
