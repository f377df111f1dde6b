"""Scrapy's extension that writes visits into the history in time, and all of them at the end."""

from __future__ import annotations

from typing import Any, Self

from scrapy import signals

from recrawl.crawl.session import Session
from recrawl.crawl.versions import in_thread, repeated


class SessionLifecycle:
    """Flushes the session every few seconds while the spider is open, and closes it with the spider."""

    def __init__(self, crawler: Any) -> None:
        self.session = Session.of(crawler)
        self._timer: Any = None
        crawler.signals.connect(self.opened, signals.spider_opened)
        crawler.signals.connect(self.closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Any) -> Self:
        """Scrapy's constructor."""
        return cls(crawler)

    def opened(self) -> None:
        """Start the timer when the spider opens."""
        self._timer = repeated(self.session.flush)
        self._timer.start(self.session.options.flush_seconds, now=False)

    async def closed(self, reason: str) -> None:
        """Write all visits before Scrapy closes the spider."""
        if self._timer is not None and self._timer.running:
            self._timer.stop()
        await in_thread(self.session.close, reason)
