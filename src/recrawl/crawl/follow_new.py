"""The parts of Scrapy that follow new links: one requests them when the plan is done, the other keeps redirects in scope."""

from __future__ import annotations

from typing import Any, Self

from scrapy import signals
from scrapy.exceptions import DontCloseSpider, IgnoreRequest
from scrapy.http import Request

from recrawl.crawl.page_request import FollowedRequest
from recrawl.crawl.session import Session
from recrawl.crawl.start import is_allowed, job_state
from recrawl.errors import BadUrl
from recrawl.web.urls import canonical


class FollowNew:
    """Extension that requests the new links of planned pages, once all planned pages are fetched.

    Not before: only then it is known which of the new links are the best.
    """

    def __init__(self, crawler: Any) -> None:
        self.crawler, self.session = crawler, Session.of(crawler)
        crawler.signals.connect(self.idle, signals.spider_idle)

    @classmethod
    def from_crawler(cls, crawler: Any) -> Self:
        """Scrapy's constructor."""
        return cls(crawler)

    def idle(self) -> None:
        """Nothing is left to fetch: continue with the new links, if there are any."""
        state = job_state(self.crawler)
        queued = set(state.get("followed", ()))  # by an earlier part of this job: its queue on disk holds them
        urls = [url for url in self.session.new_links() if is_allowed(self.crawler, url) and url not in queued]
        state["followed"] = [*queued, *urls]
        callback = getattr(self.crawler.spider, self.session.options.callback or "", None)
        for number, url in enumerate(urls):
            self.crawler.engine.crawl(
                FollowedRequest(
                    url,
                    callback=callback,
                    priority=-number,
                    dont_filter=True,
                    meta={"recrawl": {"followed": True}, "dont_cache": True},
                )
            )
        if urls:
            raise DontCloseSpider


class KeepInScope:
    """Downloader middleware: a followed link may redirect within the scope, and to a page that is not known yet."""

    def __init__(self, crawler: Any) -> None:
        self.session = Session.of(crawler)

    @classmethod
    def from_crawler(cls, crawler: Any) -> Self:
        """Scrapy's constructor."""
        return cls(crawler)

    def process_request(self, request: Request, spider: Any = None) -> None:
        """Drop the target of a redirect that must not be followed; the redirect itself is recorded."""
        before = request.meta.get("redirect_urls")
        if not before or not isinstance(request, FollowedRequest) or self.session.follower is None:
            return
        try:
            may = self.session.follower.may_redirect(canonical(request.url), canonical(before[0]))
        except BadUrl:
            may = False
        if not may:
            self.session.stats.inc_value("recrawl/followed_elsewhere")
            raise IgnoreRequest("a followed link redirects out of scope, or to a known page")
