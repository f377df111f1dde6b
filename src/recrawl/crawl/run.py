"""Crawls without a Scrapy project: one cycle or many, in one process."""

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
from recrawl.crawl.archive import Archive
from recrawl.crawl.frontier import Frontier
from recrawl.crawl.guard import Guard
from recrawl.crawl.politeness import Politeness
from recrawl.crawl.robots import Robots
from recrawl.crawl.session import Session
from recrawl.crawl.spiders import PlanSpider, SeedSpider

Watch = Callable[[Crawler], None]


@dataclass(frozen=True)
class Manners:
    """How a crawl behaves towards others."""

    user_agent: str
    delay: float = 1.0  # seconds between two requests to a host
    per_host_at_once: int = 1
    at_once: int = 16
    timeout: float = 30.0  # seconds for a page
    max_bytes: int = 10 << 20  # of a page, also once it is unpacked
    max_seconds: float = 0.0  # of a cycle; 0: as long as it takes

    def settings(self) -> dict[str, Any]:
        """As Scrapy takes them."""
        return {
            "USER_AGENT": self.user_agent,
            "DOWNLOAD_DELAY": self.delay,
            "DOWNLOAD_DELAY_JITTER": 0.0,  # never less than the delay
            "RANDOMIZE_DOWNLOAD_DELAY": False,  # the same before Scrapy 2.19
            "CONCURRENT_REQUESTS_PER_DOMAIN": self.per_host_at_once,
            "CONCURRENT_REQUESTS": self.at_once,
            "DOWNLOAD_TIMEOUT": self.timeout,
            "DOWNLOAD_MAXSIZE": self.max_bytes,
            "DOWNLOAD_WARNSIZE": 0,
            "CLOSESPIDER_TIMEOUT": self.max_seconds,
        }


#: What every crawl of ours has beyond the add-on.
OWN: dict[str, Any] = {
    "ADDONS": {Addon: 500},
    "DOWNLOADER_MIDDLEWARES": {
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,  # ours keeps out where robots.txt cannot be read
        Robots: 100,
        Politeness: 595,
        Guard: Guard.ORDER,
        Archive: 990,
    },
    "RETRY_TIMES": 1,
    "REDIRECT_MAX_TIMES": 10,
    "COOKIES_ENABLED": True,  # within one crawl only: some pages send everybody round until a cookie comes back
    "TELNETCONSOLE_ENABLED": False,
    "MEMUSAGE_ENABLED": False,
    "HTTPCACHE_ENABLED": False,
    "HTTPPROXY_ENABLED": False,  # a proxy would look names up, and nobody could check what it found
    "DOWNLOAD_FAIL_ON_DATALOSS": False,  # recorded as cut short
    "LOG_ENABLED": False,
}


@dataclass
class Outcome:
    """What the cycles brought: Scrapy's stats of each, and why each ended."""

    cycles: list[dict[str, Any]] = field(default_factory=list)
    error: BaseException | None = None
    was_killed: bool = False  # by a second Ctrl-C, before the last cycle came to its end


def crawl(
    settings: dict[str, Any],
    manners: Manners,
    *,
    frontier: Frontier | None = None,
    cycles: int = 1,
    every: timedelta = timedelta(0),
    watch: Watch = lambda crawler: None,
    between: Callable[[int], None] = lambda cycle: None,
    after: Callable[[int, dict[str, Any], float | None], None] = lambda cycle, stats, wait: None,
) -> Outcome:
    """Crawl in this process until all cycles are done or somebody interrupts it; once a process, as Scrapy has it.

    `settings`: ``RECRAWL_*``, and whatever else Scrapy is to be told. With a `frontier` the first cycle goes outwards from its
    seeds. `every`: from the start of a cycle to that of the next. `watch` is told each crawler before it starts, `between` each
    cycle before it begins, `after` what each did and in how many seconds the next begins (None: it was the last).
    """
    process = CrawlerProcess({**OWN, **_by_version(), **manners.settings(), **settings})
    outcome = Outcome()
    started_crawlers: list[Crawler] = []

    def has_ended(cycle: int, stats: dict[str, Any], wait: float | None) -> None:
        outcome.cycles.append(stats)
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
                has_ended(cycle, stats, None)
                return
            wait = max(every.total_seconds() - (monotonic() - started), 0.0)
            has_ended(cycle, stats, wait)
            yield _wait(wait)

    whole: Deferred[None] = run()
    whole.addErrback(lambda failure: setattr(outcome, "error", failure.value))
    if not whole.called:
        whole.addBoth(_stop)
        process.start(stop_after_crawl=False)
    if len(started_crawlers) > len(outcome.cycles) and outcome.error is None:
        outcome.was_killed = True
        has_ended(len(outcome.cycles), _killed(started_crawlers[-1]), None)
    return outcome


def _killed(crawler: Crawler) -> dict[str, Any]:
    """What a crawl did that was ended at once, with all its visits written."""
    session = Session.of(crawler)
    session.close("killed")
    return dict(crawler.stats.get_stats()) | {"finish_reason": "killed"}


def _by_version() -> dict[str, Any]:
    """Who looks host names up and who checks certificates: settings that have other names before Scrapy 2.19."""
    resolver = "TWISTED_DNS_RESOLVER" if hasattr(default_settings, "TWISTED_DNS_RESOLVER") else "DNS_RESOLVER"
    found: dict[str, Any] = {resolver: "recrawl.crawl.resolver.PublicOnlyResolver"}
    if hasattr(default_settings, "DOWNLOAD_VERIFY_CERTIFICATES"):
        return found | {"DOWNLOAD_VERIFY_CERTIFICATES": True}
    return found | {
        "DOWNLOADER_CLIENTCONTEXTFACTORY": "scrapy.core.downloader.contextfactory.BrowserLikeContextFactory"
    }


def _wait(seconds: float) -> Deferred[None]:
    from twisted.internet import reactor  # there is none before the first crawler is made

    waited: Deferred[None] = Deferred()
    reactor.callLater(seconds, waited.callback, None)  # type: ignore[arg-type]
    return waited


def _stop(result: Any) -> None:
    from twisted.internet import reactor

    with suppress(ReactorNotRunning):  # Ctrl-C stopped it already
        reactor.stop()  # type: ignore[misc]
