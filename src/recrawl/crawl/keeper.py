"""Scrapy's extension that sees to it that visits reach the history in time, and all of them at the end."""

from __future__ import annotations

from typing import Any, Self

from scrapy import signals

from recrawl.crawl.session import Session
from recrawl.crawl.versions import in_thread, repeated


class Keeper:
    """Flushes every few seconds while the spider is open, and on close."""

    def __init__(self, crawler: Any) -> None:
        self.session = Session.of(crawler)
        self._timer: Any = None
        crawler.signals.connect(self.opened, signals.spider_opened)
        crawler.signals.connect(self.closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Any) -> Self:
        """As Scrapy makes its parts."""
        return cls(crawler)

    def opened(self) -> None:
        """The crawl begins."""
        self._timer = repeated(self.session.flush)
        self._timer.start(self.session.options.flush_seconds, now=False)

    async def closed(self, reason: str) -> None:
        """The crawl ended: all visits are written before Scrapy goes on."""
        if self._timer is not None and self._timer.running:
            self._timer.stop()
        await in_thread(self.session.close, reason)
