"""robots.txt as RFC 9309 has it: unreachable means keep out, absent means come in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

from protego import Protego
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request, Response
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from recrawl.crawl.page_request import Ended
from recrawl.crawl.politeness import hold_to
from recrawl.crawl.record import reason
from recrawl.crawl.session import Session, logger
from recrawl.parse import as_utf8

MAX_KEPT = 10_000  #: hosts whose rules are kept in memory
MAX_BYTES = 500 << 10  #: RFC 9309, 2.5: at least so much is read
MAX_AGE = timedelta(hours=24)  #: RFC 9309, 2.4
MAX_AGE_UNREACHABLE = timedelta(minutes=30)  #: then it is asked again whether robots.txt can be reached
MAX_DELAY = 60.0  #: seconds between two requests: a host that asks for more gets this, and it is told


@dataclass(frozen=True)
class Rules:
    """What one host's robots.txt allows."""

    parsed: Any  # Protego's; None: nothing is allowed
    read_at: datetime
    why: str = ""  # nothing is allowed
    agents: frozenset[str] = frozenset()  # product tokens with rules of their own, in small letters

    def allows(self, url: str, agent: str) -> bool:
        """Whether a URL may be fetched; robots.txt itself always may."""
        return self.parsed is not None and bool(self.parsed.can_fetch(url, self._group(agent)))

    def delay(self, agent: str) -> float:
        """Seconds between two requests that it asks for; 0 where it asks for none."""
        asked = self.parsed.crawl_delay(self._group(agent)) if self.parsed is not None else None
        return float(asked) if asked and asked > 0 else 0.0

    def is_fresh(self, now: datetime) -> bool:
        """Whether it need not be read again."""
        return now - self.read_at <= (MAX_AGE if self.parsed is not None else MAX_AGE_UNREACHABLE)

    def _group(self, agent: str) -> str:
        # Protego would take rules for "web" as meant for "webwatch".
        return agent if agent.lower() in self.agents else "*"

    @property
    def sitemaps(self) -> list[str]:
        """The sitemaps that it names."""
        return [] if self.parsed is None else list(self.parsed.sitemaps)


def rules_from(status: int, body: bytes, read_at: datetime) -> Rules:
    """What an answer to a request for robots.txt means (RFC 9309, 2.3.1).

    >>> now = datetime(2026, 1, 5)
    >>> rules_from(404, b"", now).allows("https://e.org/a", "bot"), rules_from(503, b"", now).allows("https://e.org/a", "bot")
    (True, False)
    >>> rules_from(200, b"User-agent: *\\nDisallow: /private/", now).allows("https://e.org/private/a", "bot")
    False
    """
    if status == 429 or status >= 500 or status <= 0:
        return Rules(None, read_at, f"robots.txt cannot be reached: {status or 'no answer'}")
    if status >= 400:
        return Rules(Protego.parse(""), read_at)
    lines, agents = _by_token(as_utf8(_cut(body), None).decode("utf-8", "replace").splitlines())
    return Rules(Protego.parse("\n".join(lines)), read_at, agents=agents)


def _cut(body: bytes) -> bytes:
    """What is read of a file: whole lines, as half a path may allow more than was meant."""
    if len(body) <= MAX_BYTES:
        return body
    end = max(body.rfind(b"\n", 0, MAX_BYTES), body.rfind(b"\r", 0, MAX_BYTES))
    return body[: end if end > 0 else MAX_BYTES]


_AGENT = re.compile(r"\s*user[- ]?agent(?:\s*:\s*|\s+)([^\s/#,;]+)", re.IGNORECASE)


def _by_token(lines: list[str]) -> tuple[list[str], frozenset[str]]:
    """The lines with every User-agent reduced to its product token, and the tokens (RFC 9309, 2.2.1).

    >>> _by_token(["User-agent: Webwatch/2.1 # ours", "Disallow: /a"])
    (['User-agent: Webwatch', 'Disallow: /a'], frozenset({'webwatch'}))
    """
    reduced, agents = [], set()
    for line in lines:
        if found := _AGENT.match(line):
            token = found[1].strip("*") or "*"
            agents.add(token.lower())
            line = f"User-agent: {token}"
        reduced.append(line)
    return reduced, frozenset(agents)


class Robots:
    """Scrapy's downloader middleware in place of its own, which takes an unreachable robots.txt for permission.

    The rules of a host are read once and kept for a day, also from one cycle to the next.
    """

    kept: ClassVar[dict[tuple[str, str], Rules]] = {}

    def __init__(self, crawler: Any) -> None:
        self.crawler, self.session = crawler, Session.of(crawler)
        self.agent = product(crawler.settings["USER_AGENT"])
        self._asked: dict[str, Deferred[None]] = {}
        self._slowed: dict[str, Rules] = {}  # whose wish for slowness is kept to

    @classmethod
    def from_crawler(cls, crawler: Any) -> Self:
        """As Scrapy makes its parts."""
        return cls(crawler)

    async def process_request(self, request: Request, spider: Any = None) -> None:
        """Let through what the host allows."""
        if request.meta.get("dont_obey_robotstxt") or not request.url.startswith("http"):
            return
        rules = await self.rules(request.url)
        if not rules.allows(request.url, self.agent):
            why = rules.why or "forbidden by robots.txt"
            self.session.stats.inc_value("recrawl/forbidden")
            self.session.stats.inc_value(f"recrawl/forbidden/{why.partition(':')[0]}")
            raise IgnoreRequest(why)

    async def rules(self, url: str) -> Rules:
        """The rules for a URL, read if they are not known or too old."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        key = (origin, self.agent)
        while key not in self.kept or not self.kept[key].is_fresh(self.session.now()):
            if origin in self._asked:
                await maybe_deferred_to_future(_child(self._asked[origin]))
                continue
            self._asked[origin] = Deferred()
            try:
                self.kept[key] = await self._read(origin)
                if len(self.kept) > MAX_KEPT:
                    del self.kept[next(iter(self.kept))]
            finally:
                self._asked.pop(origin).callback(None)
        self._slow_down(parts.hostname or "", self.kept[key])
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
        except Ended:  # somebody ended the crawl: that says nothing of the host
            raise
        except Exception as error:  # whatever went wrong, nobody allowed anything
            logger.info("no robots.txt from %s: %s", origin, error)
            kind, _, detail = reason(error).partition(": ")
            return Rules(None, self.session.now(), f"{kind}: no robots.txt" + (f": {detail}" if detail else ""))
        if "dataloss" in response.flags:  # what is missing may be what forbids
            return Rules(None, self.session.now(), "robots.txt cannot be reached: cut short")
        return rules_from(response.status, response.body, self.session.now())

    def _slow_down(self, host: str, rules: Rules) -> None:
        if self._slowed.get(host) is rules:
            return
        self._slowed[host] = rules
        if wanted := rules.delay(self.agent):
            if wanted > MAX_DELAY:
                self.session.stats.inc_value("recrawl/crawl_delay_cut")
            hold_to(self.crawler, host, min(wanted, MAX_DELAY))


async def download(engine: Any, request: Request) -> Response:
    """Fetch something beside the spider's requests."""
    if hasattr(engine, "download_async"):
        found: Response = await engine.download_async(request)
        return found
    old: Response = await maybe_deferred_to_future(engine.download(request))
    return old


def _child(parent: Deferred[None]) -> Deferred[None]:
    """One more that waits for the same."""
    child: Deferred[None] = Deferred()
    parent.addCallback(lambda value: child.callback(None))
    return child


def product(agent: str) -> str:
    """The product token of a User-Agent, by which robots.txt knows it.

    >>> product("Webwatch/2.1 (+https://e.org/bot; bot@e.org)")
    'Webwatch'
    >>> product("Mozilla/5.0 (compatible; Webwatch/2.1; +https://e.org/bot)")
    'Webwatch'
    """
    plain = agent.partition("compatible;")[2] or agent
    token = re.match(r"\s*([A-Za-z_-]+)", plain)
    return token[1] if token else "*"
