"""Crawls without a Scrapy project: one cycle or several, in one process."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import Any

from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.settings import default_settings
from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.error import ReactorNotRunning

from recrawl.crawl.addon import Addon
from recrawl.crawl.archive import WarcMiddleware
from recrawl.crawl.frontier import Frontier
from recrawl.crawl.guard import Guard
from recrawl.crawl.politeness import Politeness
from recrawl.crawl.robots import Robots
from recrawl.crawl.session import Session
from recrawl.crawl.spiders import PlanSpider, SeedSpider

Watch = Callable[[Crawler], None]


@dataclass(frozen=True, kw_only=True)
class FetchSettings:
    """Who fetches, how fast, and how much."""

    user_agent: str
    delay: float = 1.0  # seconds between two requests to a host
    host_concurrency: int = 1  # requests to one host at a time
    concurrency: int = 16  # requests at a time
    timeout: float = 30.0  # seconds per page
    max_bytes: int = 10 << 20  # of a page, before and after decompression
    max_seconds: float = 0.0  # of a cycle; 0: no limit

    def to_scrapy(self) -> dict[str, Any]:
        """The same as settings of Scrapy."""
        return {
            "USER_AGENT": self.user_agent,
            "DOWNLOAD_DELAY": self.delay,
            "DOWNLOAD_DELAY_JITTER": 0.0,  # never less than the delay
            "RANDOMIZE_DOWNLOAD_DELAY": False,  # the same before Scrapy 2.19
            "CONCURRENT_REQUESTS_PER_DOMAIN": self.host_concurrency,
            "CONCURRENT_REQUESTS": self.concurrency,
            "DOWNLOAD_TIMEOUT": self.timeout,
            "DOWNLOAD_MAXSIZE": self.max_bytes,
            "DOWNLOAD_WARNSIZE": 0,
            "CLOSESPIDER_TIMEOUT": self.max_seconds,
        }


#: Scrapy's settings for every crawl without a project.
SCRAPY_SETTINGS: dict[str, Any] = {
    "ADDONS": {Addon: 500},
    "DOWNLOADER_MIDDLEWARES": {
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,  # replaced by `Robots`
        Robots: 100,
        Politeness: 595,
        Guard: Guard.ORDER,
        WarcMiddleware: 990,
    },
    "RETRY_TIMES": 1,
    "REDIRECT_MAX_TIMES": 10,
    "COOKIES_ENABLED": True,  # within one crawl only: some pages redirect to themselves until a cookie is sent back
    "TELNETCONSOLE_ENABLED": False,
    "MEMUSAGE_ENABLED": False,
    "HTTPCACHE_ENABLED": False,
    "HTTPPROXY_ENABLED": False,  # a proxy would look up host names, and their addresses could not be checked
    "DOWNLOAD_FAIL_ON_DATALOSS": False,  # recorded as cut short
    "LOG_ENABLED": False,
}


@dataclass
class CrawlResult:
    """The result of a crawl: Scrapy's stats of each cycle, which include why it ended."""

    cycles: list[dict[str, Any]] = field(default_factory=list)
    error: BaseException | None = None
    was_killed: bool = False  # by a second Ctrl-C, before the last cycle finished


def crawl(
    settings: dict[str, Any],
    fetch: FetchSettings,
    *,
    frontier: Frontier | None = None,
    cycles: int = 1,
    every: timedelta = timedelta(0),
    watch: Watch = lambda crawler: None,
    between: Callable[[int], None] = lambda cycle: None,
    after: Callable[[int, dict[str, Any], float | None], None] = lambda cycle, stats, wait: None,
) -> CrawlResult:
    """Crawl in this process until all cycles are done or the user interrupts it. Scrapy allows this once per process.

    `settings`: ``RECRAWL_*`` and any other settings of Scrapy. With a `frontier`, the first cycle crawls outwards from its
    seeds. `every`: time from the start of a cycle to the start of the next. `watch` gets each crawler before it starts, `between`
    the number of each cycle before it begins, and `after` the stats of each cycle and the seconds until the next one begins (None
    after the last).
    """
    process = CrawlerProcess({**SCRAPY_SETTINGS, **_by_version(), **fetch.to_scrapy(), **settings})
    result = CrawlResult()
    started_crawlers: list[Crawler] = []

    def end_cycle(cycle: int, stats: dict[str, Any], wait: float | None) -> None:
        result.cycles.append(stats)
        after(cycle, stats, wait)

    @inlineCallbacks
    def run() -> Generator[Deferred[Any], Any, None]:
        for cycle in range(cycles):
            started = monotonic()
            between(cycle)
            is_first = frontier is not None and cycle == 0
            crawler = process.create_crawler(SeedSpider if is_first else PlanSpider)
            watch(crawler)
            started_crawlers.append(crawler)
            yield process.crawl(crawler, **({"frontier": frontier} if is_first else {}))
            stats = dict(crawler.stats.get_stats())
            if cycle + 1 == cycles or stats.get("finish_reason") == "shutdown":
                end_cycle(cycle, stats, None)
                return
            wait = max(every.total_seconds() - (monotonic() - started), 0.0)
            end_cycle(cycle, stats, wait)
            yield _wait(wait)

    all_cycles: Deferred[None] = run()
    all_cycles.addErrback(lambda failure: setattr(result, "error", failure.value))
    if not all_cycles.called:
        all_cycles.addBoth(_stop)
        process.start(stop_after_crawl=False)
    if len(started_crawlers) > len(result.cycles) and result.error is None:
        result.was_killed = True
        end_cycle(len(result.cycles), _killed(started_crawlers[-1]), None)
    return result


def _killed(crawler: Crawler) -> dict[str, Any]:
    """Write all visits of a crawl that was ended at once, and return its stats."""
    session = Session.of(crawler)
    session.close("killed")
    return dict(crawler.stats.get_stats()) | {"finish_reason": "killed"}


def _by_version() -> dict[str, Any]:
    """The DNS resolver and the check of certificates: settings that have other names before Scrapy 2.19."""
    resolver = "TWISTED_DNS_RESOLVER" if hasattr(default_settings, "TWISTED_DNS_RESOLVER") else "DNS_RESOLVER"
    settings: dict[str, Any] = {resolver: "recrawl.crawl.resolver.PublicOnlyResolver"}
    if hasattr(default_settings, "DOWNLOAD_VERIFY_CERTIFICATES"):
        return settings | {"DOWNLOAD_VERIFY_CERTIFICATES": True}
    return settings | {
        "DOWNLOADER_CLIENTCONTEXTFACTORY": "scrapy.core.downloader.contextfactory.BrowserLikeContextFactory"
    }


def _wait(seconds: float) -> Deferred[None]:
    from twisted.internet import reactor  # exists only after the first crawler is created

    waited: Deferred[None] = Deferred()
    reactor.callLater(seconds, waited.callback, None)  # type: ignore[arg-type]
    return waited


def _stop(result: Any) -> None:
    from twisted.internet import reactor

    with suppress(ReactorNotRunning):  # Ctrl-C has stopped it
        reactor.stop()  # type: ignore[misc]
