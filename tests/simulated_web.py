"""A web without sockets, and a crawl of it by recrawl's own parts: session, robots.txt, address check, recording.

Scrapy's engine is left out: requests pass recrawl's middlewares in their order, one after the other. Names have addresses, some of
them inside a private network at times; hosts forbid paths, or do not answer for robots.txt; pages lead elsewhere. Every connection
is noted, with what robots.txt said, so that an auditor can judge it later.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from urllib.parse import urljoin, urlsplit

from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Request, Response
from scrapy.settings import Settings

from recrawl.crawl.addresses import Networks
from recrawl.crawl.conditional import ConditionalRequests
from recrawl.crawl.guard import Guard, HostNotFound
from recrawl.crawl.page_request import PlannedRequest
from recrawl.crawl.record import RecordFailures, RecordPages, RecordRedirects
from recrawl.crawl.resolver import PublicOnlyResolver
from recrawl.crawl.robots import Robots
from recrawl.crawl.session import Session

PUBLIC, PRIVATE = (
    ("93.184.215.14", "2606:2800:220:1::1"),
    ("10.0.0.7", "169.254.169.254", "127.0.0.1", "::1", "fd00::7"),
)
ROBOTS = {
    "open": (404, b""),
    "strict": (200, b"User-agent: *\nDisallow: /1"),
    "broken": (503, b""),
    "elsewhere": (302, b"https://inside.org/robots.txt"),  # whose address is private at times
}
MAX_REDIRECTS = 4
STEP = timedelta(seconds=1)


@dataclass
class Page:
    """A page of the living web."""

    url: str
    links: list[str] = field(default_factory=list)
    is_gone: bool = False


@dataclass(frozen=True)
class Connection:
    """A request that reached an address, and when."""

    at: datetime
    address: str
    url: str
    status: int
    body: bytes = b""


class Web:
    """Pages, names and rules that change; by chance, which follows from a seed."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.pages = [Page(f"https://{host}.org/{i}") for host in ("a", "b") for i in range(chance.randint(2, 4))]
        self.robots = dict.fromkeys(("a.org", "b.org", "inside.org"), "open")
        self.addresses = {"a.org": PUBLIC, "b.org": PUBLIC, "inside.org": PRIVATE[:1]}
        self.connections: list[Connection] = []

    def live_on(self) -> None:
        """Some time passes."""
        chance = self.chance
        for page in self.pages:
            if chance.random() < 0.5:
                page.links = [*page.links[-5:], f"https://a.org/new/{chance.randrange(10**6)}"]
            page.is_gone |= chance.random() < 0.02
        host = chance.choice(["a.org", "b.org"])
        self.robots[host] = chance.choice(["open", "open", *ROBOTS])
        private = chance.choice(PRIVATE)
        self.addresses[host] = chance.choice([PUBLIC, PUBLIC, PUBLIC[:1], (private,), (PUBLIC[0], private)])
        self.addresses["inside.org"] = chance.choice([PUBLIC, (private,)])

    def look_up(self, host: str, *_: Any) -> list[tuple[Any, ...]]:
        """Like ``socket.getaddrinfo``."""
        if host not in self.addresses:
            raise OSError("no such name")
        return [(None, None, None, "", (address, 0)) for address in self.addresses[host]]

    def answer(self, address: str, request: Request, at: datetime) -> Response:
        """What the server at an address answers."""
        parts = urlsplit(request.url)
        if parts.path == "/robots.txt":
            status, body = ROBOTS[self.robots.get(parts.netloc, "open")]
            if status == 302:
                response = Response(request.url, 302, headers={"Location": body.decode()}, request=request)
            else:
                response = Response(request.url, status, body=body, request=request)
        else:
            response = self._page(request)
        self.connections.append(Connection(at, address, request.url, response.status, response.body))
        return response

    def _page(self, request: Request) -> Response:
        page = next((each for each in self.pages if each.url == request.url), None)
        if page is None or page.is_gone:
            return Response(request.url, 404, request=request)
        happens = self.chance.choice(["page"] * 8 + ["error", "lure", "elsewhere", "cut"])
        if happens == "error":
            return Response(request.url, 500, request=request)
        if happens in ("lure", "elsewhere"):
            lures = ["http://169.254.169.254/latest", "http://inside.org/1", "https://0x7f.1/", "ftp://a.org/"]
            target = self.chance.choice(lures) if happens == "lure" else self.chance.choice(self.pages).url
            return Response(request.url, 302, headers={"Location": target}, request=request)
        tag = f'"{len(page.links)}-{page.links[-1:]}"'.encode()
        if request.headers.get("If-None-Match") == tag:
            return Response(request.url, 304, request=request)
        body = "".join(f'<p>text <a href="{link}">{link[-3:]}</a></p>' for link in page.links) or "<p>nothing yet</p>"
        flags = ["dataloss"] if happens == "cut" else []
        headers = {"ETag": tag, "Content-Type": "text/html"}
        return HtmlResponse(request.url, 200, headers, body.encode(), flags, request, encoding="utf-8")

    def breaches(self) -> list[str]:
        """Connections that should not have been made, each with its reason."""
        found = []
        said: dict[str, Connection] = {}  # host → the newest answer for its robots.txt
        led = ""  # the host whose robots.txt led to the next one
        for each in self.connections:
            parts = urlsplit(each.url)
            if each.address not in PUBLIC:
                found.append(f"{each.url} was fetched from {each.address}")
            if parts.path == "/robots.txt":
                is_led = led and parts.netloc == "inside.org"
                said[led if is_led else parts.netloc] = each
                led = parts.netloc if each.status == 302 else ""
                continue
            led, rules = "", said.get(parts.netloc)
            if rules is None or each.at - rules.at > timedelta(days=1):
                found.append(f"{each.url} was fetched without asking for robots.txt")
            elif rules.status not in (200, 404) or (rules.status == 200 and parts.path.startswith("/1")):
                found.append(f"{each.url} was fetched against robots.txt")
        return found


class Stats(dict[str, Any]):
    """What Scrapy's stats collector does."""

    def inc_value(self, key: str, count: int = 1, start: int = 0) -> None:
        self[key] = self.get(key, start) + count

    def set_value(self, key: str, value: Any) -> None:
        self[key] = value

    get_value = dict.get


class _Now:
    """A reactor in which everything is done at once."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.clock = clock

    def seconds(self) -> float:
        return self.clock().timestamp()

    def getThreadPool(self) -> Any:  # noqa: N802
        return self

    def callInThreadWithCallback(self, done: Any, work: Any, *given: Any) -> None:  # noqa: N802
        try:
            result = True, work(*given)
        except Exception as error:
            from twisted.python.failure import Failure

            result = False, Failure(error)  # type: ignore[assignment]
        done(*result)

    def callFromThread(self, work: Any, *given: Any) -> None:  # noqa: N802
        work(*given)

    def callLater(self, *_: Any) -> Any:  # noqa: N802
        return SimpleNamespace(active=lambda: False, cancel=lambda: None)


class SimulatedCrawl:
    """One crawl in a process of its own: requests what its session plans, and records what comes back."""

    def __init__(self, web: Web, options: Any, on_request: Callable[[], None]) -> None:
        self.web, self.on_request = web, on_request
        self.stats, settings = Stats(), Settings({"USER_AGENT": "Sim/1.0", "RETRY_ENABLED": False})
        slots = SimpleNamespace(slots={}, per_slot_settings={}, settings=settings)
        engine = SimpleNamespace(downloader=slots, download_async=self._download)
        self.session = Session(options, self.stats)
        crawler = SimpleNamespace(settings=settings, stats=self.stats, engine=engine, _recrawl_session=self.session)
        self.resolver = PublicOnlyResolver(_Now(options.clock), Networks(), 9.0, web.look_up)
        Robots.kept.clear()
        self.robots, self.guard = Robots(crawler), Guard(Networks(), self.stats)  # type: ignore[arg-type]
        self.asking = ConditionalRequests(crawler)
        self.recording = (RecordRedirects(crawler), RecordPages(crawler), RecordFailures(crawler))

    def run(self) -> None:
        """Fetch every planned page."""
        with patch.object(PublicOnlyResolver, "installed", classmethod(lambda cls: self.resolver)):
            for url in self.session.begin().urls:
                self._visit(PlannedRequest(url, callback=print))
                self.session.journal.settle()  # waits, so that everything happens in one order
        self.session.close("finished")

    def _visit(self, request: Request) -> None:
        for _ in range(MAX_REDIRECTS):
            response = self._recorded(request)
            target = (response.headers.get("Location") or b"").decode() if response is not None else ""
            if response is None or response.status not in (301, 302) or not target:
                return
            request = request.replace(url=urljoin(request.url, target))

    def _recorded(self, request: Request) -> Response | None:
        failures = self.recording[-1]
        try:
            _done(self.robots.process_request(request))
            self.asking.process_request(request)
            response = self._sent(request)
        except Exception as error:
            failures.process_exception(request, error)  # type: ignore[union-attr]
            return None
        for middleware in self.recording:
            response = middleware.process_response(request, response)
        return response

    def _sent(self, request: Request) -> Response:
        """Through the address check to the network."""
        self.on_request()
        self.guard.process_request(request)
        addresses: list[str] = []
        receiver = SimpleNamespace(
            resolutionBegan=lambda resolution: None,
            addressResolved=lambda address: addresses.append(address.host),
            resolutionComplete=lambda: None,
        )
        self.resolver.resolveHostName(receiver, (urlsplit(request.url).hostname or "").strip("[]"))
        if not addresses:
            error = HostNotFound("no address")
            self.guard.process_exception(request, error)
            raise error
        return self.web.answer(addresses[0], request, self.session.now())

    async def _download(self, request: Request) -> Response:
        for _ in range(MAX_REDIRECTS):
            response = self._sent(request)
            if response.status != 302:
                return response
            request = request.replace(url=urljoin(request.url, response.headers["Location"].decode()))
        raise IgnoreRequest("max redirections reached")


def _done(coroutine: Any) -> Any:
    """The result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("it waits for something that never comes")
