"""No host gets more than it can bear: waits that it asks for are kept, and one that does not answer is left alone."""

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

from recrawl.crawl.page_request import Ended
from recrawl.crawl.session import Session
from recrawl.crawl.versions import repeated
from recrawl.sources.wayback.client import retry_after

MAX_WAIT = 120.0  #: seconds that a host may ask to wait; with more it is left alone for this cycle
LOOK = 0.25  #: seconds between two looks at whether somebody ended the crawl
MAX_FAILURES = 8  #: in a row without any answer: the host is left alone for this cycle
_ANSWERED = ("DownloadCancelledError", "CancelledError")  # of answers that were too large: no sign of a dead host
_now = getattr(downloader, "monotonic", time)  # the clock of the slots, which was another one before Scrapy 2.14


class Politeness:
    """Scrapy's downloader middleware that keeps to what hosts ask for with 429, 503 and Retry-After."""

    def __init__(self, crawler: Any) -> None:
        self.crawler, self.session = crawler, Session.of(crawler)
        self.closed: dict[str, str] = {}  # host → why it is left alone
        self._failures: Counter[str] = Counter()
        self._timer: Any = None
        crawler.signals.connect(self.opened, signals.spider_opened)
        crawler.signals.connect(self.ended, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Any) -> Self:
        """As Scrapy makes its parts."""
        return cls(crawler)

    def opened(self) -> None:
        """The crawl begins: from now on look whether somebody ends it."""
        self._timer = repeated(self._drop_if_ended)
        self._timer.start(LOOK, now=False)

    def ended(self) -> None:
        """Nothing is left to look after."""
        if self._timer is not None and self._timer.running:
            self._timer.stop()

    def _drop_if_ended(self) -> None:
        """Scrapy waits for all requests that it has taken up; those that wait for their host's delay are not sent any more."""
        if not self.crawler.crawling and self.crawler.engine is not None:
            for host in list(self.crawler.engine.downloader.slots):
                give_up(self.crawler, host, "the crawl was ended", Ended)

    def process_request(self, request: Request, spider: Any = None) -> None:
        """Leave hosts alone that asked for it, and let everybody else wait in the queue of their own host."""
        # A redirect comes with the slot of the host that sent it on: there it would escape the delays of its target.
        request.meta.pop("download_slot", None)
        why = self.closed.get(_host(request))
        if why:
            raise IgnoreRequest(why)

    def process_response(self, request: Request, response: Response, spider: Any = None) -> Response:
        """Wait as long as the host asks for."""
        host = _host(request)
        self._failures.pop(host, None)
        if response.status in (429, 503):
            asked = (response.headers.get("Retry-After") or b"").decode("latin-1")
            wait = retry_after(asked, self.session.now(), self.session.options.retry_wait)
            self.session.stats.inc_value("recrawl/throttled")
            if wait > MAX_WAIT:
                self._close(host, f"host asked to wait: {wait:.0f} s")
            else:
                pause(self.crawler, host, wait)
        return response

    def process_exception(self, request: Request, exception: Exception, spider: Any = None) -> None:
        """Count hosts that do not answer."""
        if isinstance(exception, IgnoreRequest) or type(exception).__name__ in _ANSWERED:
            return
        host = _host(request)
        self._failures[host] += 1
        if self._failures[host] >= MAX_FAILURES:
            self._close(host, f"host does not answer: {MAX_FAILURES} failures in a row")

    def _close(self, host: str, why: str) -> None:
        if host not in self.closed:
            self.session.stats.inc_value("recrawl/hosts_left_alone")
            self.closed[host] = why
            give_up(self.crawler, host, why)


def pause(crawler: Any, host: str, seconds: float) -> None:
    """Send nothing to a host for a while: its slot believes that its last request lies ahead."""
    slot = crawler.engine.downloader.slots.get(host)
    if slot is not None:
        slot.delay = max(slot.delay, 0.05)  # without a delay the slot does not look at the time
        slot.lastseen = max(slot.lastseen, _now() + seconds)


def give_up(crawler: Any, host: str, why: str, kind: type[IgnoreRequest] = IgnoreRequest) -> None:
    """Refuse the requests to a host that passed the middlewares already and wait in its slot for their turn."""
    slot = crawler.engine.downloader.slots.get(host)
    while slot is not None and slot.queue:
        waiting = slot.queue.popleft()[1]
        waiting.errback(Failure(kind(why)))  # type: ignore[no-untyped-call]


def hold_to(crawler: Any, host: str, delay: float) -> None:
    """Never less than so many seconds between two requests to a host, and never two at once."""
    slots = crawler.engine.downloader
    known = slots.per_slot_settings.get(host, {})
    delay = max(delay, known.get("delay", slots.settings.getfloat("DOWNLOAD_DELAY")))
    slots.per_slot_settings[host] = {**known, "delay": delay, "concurrency": 1}
    slot = slots.slots.get(host)
    if slot is not None:
        slot.delay, slot.concurrency = max(slot.delay, delay), 1


def _host(request: Request) -> str:
    return urlsplit(request.url).hostname or ""
