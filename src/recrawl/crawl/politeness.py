"""Politeness towards hosts: wait as long as they ask, and send nothing more to a host that does not answer."""

from __future__ import annotations

from collections import Counter
from time import time
from typing import Any, Self
from urllib.parse import urlsplit

from scrapy import signals
from scrapy.core import downloader
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request, Response
from twisted.python.failure import Failure

from recrawl.crawl.page_request import CrawlEnded
from recrawl.crawl.session import Session
from recrawl.crawl.versions import repeated
from recrawl.web.http import retry_after

MAX_WAIT = 120.0  #: seconds; a host that asks to wait longer gets no more requests in this cycle
CHECK_SECONDS = 0.25  #: between two checks whether the crawl was stopped
MAX_FAILURES = 8  #: failures in a row after which a host gets no more requests in this cycle
_TOO_LARGE = ("DownloadCancelledError", "CancelledError")  # the host did answer
_now = getattr(downloader, "monotonic", time)  # the clock of Scrapy's slots: another one before Scrapy 2.14


class Politeness:
    """Downloader middleware that waits as hosts demand with 429, 503 and Retry-After."""

    def __init__(self, crawler: Any) -> None:
        self.crawler, self.session = crawler, Session.of(crawler)
        self.closed: dict[str, str] = {}  # host → why it gets no more requests
        self._failures: Counter[str] = Counter()
        self._timer: Any = None
        crawler.signals.connect(self.opened, signals.spider_opened)
        crawler.signals.connect(self.ended, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Any) -> Self:
        """Scrapy's constructor."""
        return cls(crawler)

    def opened(self) -> None:
        """Start to check regularly whether the crawl was stopped."""
        self._timer = repeated(self._drop_if_ended)
        self._timer.start(CHECK_SECONDS, now=False)

    def ended(self) -> None:
        """Stop the timer."""
        if self._timer is not None and self._timer.running:
            self._timer.stop()

    def _drop_if_ended(self) -> None:
        """Drop the requests that wait for their host's delay; otherwise Scrapy would send them before it stops."""
        if not self.crawler.crawling and self.crawler.engine is not None:
            for host in list(self.crawler.engine.downloader.slots):
                drop_waiting(self.crawler, host, "the crawl was ended", CrawlEnded)

    def process_request(self, request: Request, spider: Any = None) -> None:
        """Refuse requests to hosts that get no more; all others wait in the slot of their host."""
        # A redirect keeps the slot of the host it came from, where it would escape the delays of its target.
        request.meta.pop("download_slot", None)
        why = self.closed.get(_host(request))
        if why:
            raise IgnoreRequest(why)

    def process_response(self, request: Request, response: Response, spider: Any = None) -> Response:
        """Wait as long as the host asks."""
        host = _host(request)
        self._failures.pop(host, None)
        if response.status in (429, 503):
            header = (response.headers.get("Retry-After") or b"").decode("latin-1")
            wait = retry_after(header, self.session.now(), self.session.options.retry_wait)
            self.session.stats.inc_value("recrawl/throttled")
            if wait > MAX_WAIT:
                self._close(host, f"host asked to wait: {wait:.0f} s")
            else:
                pause(self.crawler, host, wait)
        return response

    def process_exception(self, request: Request, exception: Exception, spider: Any = None) -> None:
        """Count the failures of a host that does not answer."""
        if isinstance(exception, IgnoreRequest) or type(exception).__name__ in _TOO_LARGE:
            return
        host = _host(request)
        self._failures[host] += 1
        if self._failures[host] >= MAX_FAILURES:
            self._close(host, f"host does not answer: {MAX_FAILURES} failures in a row")

    def _close(self, host: str, why: str) -> None:
        if host not in self.closed:
            self.session.stats.inc_value("recrawl/hosts_left_alone")
            self.closed[host] = why
            drop_waiting(self.crawler, host, why)


def pause(crawler: Any, host: str, seconds: float) -> None:
    """Send nothing to a host for a while, by setting the time of its last request into the future."""
    slot = crawler.engine.downloader.slots.get(host)
    if slot is not None:
        slot.delay = max(slot.delay, 0.05)  # without a delay the slot ignores that time
        slot.lastseen = max(slot.lastseen, _now() + seconds)


def drop_waiting(crawler: Any, host: str, why: str, kind: type[IgnoreRequest] = IgnoreRequest) -> None:
    """Refuse the requests to a host that have passed the middlewares and wait in its slot."""
    slot = crawler.engine.downloader.slots.get(host)
    while slot is not None and slot.queue:
        waiting = slot.queue.popleft()[1]
        waiting.errback(Failure(kind(why)))  # type: ignore[no-untyped-call]


def set_min_delay(crawler: Any, host: str, delay: float) -> None:
    """Keep at least `delay` seconds between two requests to a host, and send only one at a time."""
    fetcher = crawler.engine.downloader
    settings = fetcher.per_slot_settings.get(host, {})
    delay = max(delay, settings.get("delay", fetcher.settings.getfloat("DOWNLOAD_DELAY")))
    fetcher.per_slot_settings[host] = {**settings, "delay": delay, "concurrency": 1}
    slot = fetcher.slots.get(host)
    if slot is not None:
        slot.delay, slot.concurrency = max(slot.delay, delay), 1


def _host(request: Request) -> str:
    return urlsplit(request.url).hostname or ""
