"""robots.txt by RFC 9309: if it is unreachable nothing may be fetched, if it does not exist everything may."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request, Response
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from recrawl.crawl.page_request import CrawlEnded
from recrawl.crawl.politeness import set_min_delay
from recrawl.crawl.record import TOO_MANY_REDIRECTS, reason
from recrawl.crawl.robots_txt import RobotsTxt
from recrawl.crawl.session import Session, logger
from recrawl.web.html import as_utf8

MAX_HOSTS = 10_000  #: whose rules are kept in memory
MAX_BYTES = 500 << 10  #: of a robots.txt that are read, the least that RFC 9309, 2.5 demands
MAX_AGE = timedelta(hours=24)  #: of stored rules (RFC 9309, 2.4)
MAX_AGE_UNREACHABLE = timedelta(minutes=30)  #: after which an unreachable robots.txt is tried again
MAX_DELAY = 60.0  #: seconds; a longer Crawl-delay is reduced to this, and counted in the stats


@dataclass(frozen=True)
class Rules:
    """The rules in the robots.txt of a host."""

    parsed: RobotsTxt | None  # None: nothing is allowed
    read_at: datetime
    why: str = ""  # the reason, if nothing is allowed

    def allows(self, url: str, agent: str) -> bool:
        """Whether a URL may be fetched. robots.txt itself always may, if it can be."""
        return self.parsed is not None and self.parsed.allows(url, agent)

    def delay(self, agent: str) -> float:
        """The Crawl-delay in seconds; 0 if there is none."""
        return self.parsed.delay(agent) if self.parsed is not None else 0.0

    def is_fresh(self, now: datetime) -> bool:
        """Whether robots.txt need not be read again yet."""
        return now - self.read_at <= (MAX_AGE if self.parsed is not None else MAX_AGE_UNREACHABLE)

    @property
    def sitemaps(self) -> list[str]:
        """The sitemaps that robots.txt names."""
        return [] if self.parsed is None else self.parsed.sitemaps


def rules_from(status: int, body: bytes, read_at: datetime) -> Rules:
    """The rules that the response to a request for robots.txt means (RFC 9309, 2.3.1).

    >>> now = datetime(2026, 1, 5)
    >>> rules_from(404, b"", now).allows("https://e.org/a", "bot"), rules_from(503, b"", now).allows("https://e.org/a", "bot")
    (True, False)
    >>> rules_from(200, b"User-agent: *\\nDisallow: /private/", now).allows("https://e.org/private/a", "bot")
    False
    """
    if status == 429 or status >= 500 or status <= 0:
        return Rules(None, read_at, f"robots.txt cannot be reached: {status or 'no answer'}")
    if status >= 400:
        return Rules(RobotsTxt(""), read_at)
    return Rules(RobotsTxt(as_utf8(_cut(body), None).decode("utf-8", "replace")), read_at)


def _cut(body: bytes) -> bytes:
    """The beginning of a file, in whole lines: half a path may allow more than intended."""
    if len(body) <= MAX_BYTES:
        return body
    end = max(body.rfind(b"\n", 0, MAX_BYTES), body.rfind(b"\r", 0, MAX_BYTES))
    return body[: end if end > 0 else MAX_BYTES]


class Robots:
    """Downloader middleware instead of Scrapy's own, which treats an unreachable robots.txt as permission.

    The rules of a host are read once and kept for a day, also from one cycle to the next.
    """

    kept: ClassVar[dict[tuple[str, str], Rules]] = {}

    def __init__(self, crawler: Any) -> None:
        self.crawler, self.session = crawler, Session.of(crawler)
        self.agent = product_token(crawler.settings["USER_AGENT"])
        self._pending: dict[str, Deferred[None]] = {}  # origin → its robots.txt is being read
        self._delay_from: dict[str, Rules] = {}  # host → the rules whose Crawl-delay is in force

    @classmethod
    def from_crawler(cls, crawler: Any) -> Self:
        """Scrapy's constructor."""
        return cls(crawler)

    async def process_request(self, request: Request, spider: Any = None) -> None:
        """Refuse what robots.txt does not allow."""
        if request.meta.get("dont_obey_robotstxt") or not request.url.startswith("http"):
            return
        rules = await self.rules(request.url)
        if not rules.allows(request.url, self.agent):
            why = rules.why or "forbidden by robots.txt"
            self.session.stats.inc_value("recrawl/forbidden")
            self.session.stats.inc_value(f"recrawl/forbidden/{why.partition(':')[0]}")
            raise IgnoreRequest(why)

    async def rules(self, url: str) -> Rules:
        """The rules for a URL, read now if they are unknown or too old."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        key = (origin, self.agent)
        while key not in self.kept or not self.kept[key].is_fresh(self.session.now()):
            if origin in self._pending:
                await maybe_deferred_to_future(_child(self._pending[origin]))
                continue
            self._pending[origin] = Deferred()
            try:
                self.kept[key] = await self._read(origin)
                if len(self.kept) > MAX_HOSTS:
                    del self.kept[next(iter(self.kept))]
            finally:
                self._pending.pop(origin).callback(None)
        self._apply_delay(parts.hostname or "", self.kept[key])
        return self.kept[key]

    async def _read(self, origin: str) -> Rules:
        request = Request(
            f"{origin}/robots.txt",
            priority=1_000_000_000,
            meta={"dont_obey_robotstxt": True, "download_maxsize": 16 * MAX_BYTES},
            callback=NO_CALLBACK,
        )
        self.session.stats.inc_value("recrawl/robots_read")
        try:
            response = await download(self.crawler.engine, request)
        except CrawlEnded:  # says nothing about the host
            raise
        except Exception as error:  # whatever went wrong, nothing was allowed
            logger.info("no robots.txt from %s: %s", origin, error)
            kind, _, detail = reason(error).partition(": ")
            if kind == TOO_MANY_REDIRECTS:  # which RFC 9309, 2.3.1.2 takes for a file that does not exist
                return Rules(RobotsTxt(""), self.session.now())
            return Rules(None, self.session.now(), f"{kind}: no robots.txt" + (f": {detail}" if detail else ""))
        if "dataloss" in response.flags:  # the missing part may be the one that forbids
            return Rules(None, self.session.now(), "robots.txt cannot be reached: cut short")
        return rules_from(response.status, response.body, self.session.now())

    def _apply_delay(self, host: str, rules: Rules) -> None:
        if self._delay_from.get(host) is rules:
            return
        self._delay_from[host] = rules
        if delay := rules.delay(self.agent):
            if delay > MAX_DELAY:
                self.session.stats.inc_value("recrawl/crawl_delay_cut")
            set_min_delay(self.crawler, host, min(delay, MAX_DELAY))


async def download(engine: Any, request: Request) -> Response:
    """Fetch a URL in addition to the spider's requests."""
    response: Response
    if hasattr(engine, "download_async"):  # Scrapy 2.14 and later
        response = await engine.download_async(request)
    else:
        response = await maybe_deferred_to_future(engine.download(request))
    return response


def _child(parent: Deferred[None]) -> Deferred[None]:
    """A new deferred that fires with another one: a deferred can be awaited only once."""
    child: Deferred[None] = Deferred()
    parent.addCallback(lambda value: child.callback(None))
    return child


def product_token(user_agent: str) -> str:
    """The product token of a User-Agent, by which robots.txt addresses it.

    >>> product_token("Webwatch/2.1 (+https://e.org/bot; bot@e.org)")
    'Webwatch'
    >>> product_token("Mozilla/5.0 (compatible; Webwatch/2.1; +https://e.org/bot)")
    'Webwatch'
    """
    products = user_agent.partition("compatible;")[2] or user_agent
    token = re.match(r"\s*([A-Za-z_-]+)", products)
    return token[1] if token else "*"
