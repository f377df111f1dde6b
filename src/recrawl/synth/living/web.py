"""A living web on loopback: real HTTP servers whose pages gain and lose links as simulated time passes.

For trying out and testing a crawler from end to end. Simulated time only passes when `step` is set, so a month takes as long as the
crawler needs for it. The truth is known: which links a page shows now, and which are new.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Self

import numpy as np

from recrawl.errors import RecrawlError
from recrawl.synth.living.files import NO_ROBOTS_SITE
from recrawl.synth.living.http import Fault, HttpRequest, HttpResponse, Wire, read_request
from recrawl.synth.living.server import address, listen, serving
from recrawl.synth.living.settings import TYPICAL, Faults, Living
from recrawl.synth.living.sites import LivingSites
from recrawl.synth.living.traps import TRAPS, spring
from recrawl.synth.living.world import LivingWorld, Place
from recrawl.web import urls

__all__ = ["TYPICAL", "Fault", "Faults", "Living", "LivingWeb", "LoggedRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """One request and its response; in the log before the response is sent, or for a trap after its end."""

    at: float  # seconds, by time.monotonic()
    took: float  # seconds until the response was ready, or for a trap until its end
    now: datetime  # simulated time, UTC, aware
    host: str  # address
    path: str  # with the query
    status: int  # 0: the connection ended before
    n_bytes: int  # of the body that was sent
    has_validators: bool  # the client wanted a newer version than it had
    agent: str
    fault: Fault  # made on purpose


class LivingWeb:
    """The servers of a living web, running as long as the `with` block.

    >>> import httpx
    >>> with LivingWeb(Living(sites=2, pages=20, steps=4, faults=Faults())) as web:
    ...     home = web.seeds[1]
    ...     then = web.shown(home)
    ...     web.step = 4
    ...     status, gained = httpx.get(home).status_code, web.shown(home) - then
    >>> status, len(gained) > 0, f"{web.now:%d %B %Y}"
    (200, True, '14 July 2020')
    """

    def __init__(self, settings: Living) -> None:
        self.settings = settings
        self.log: list[LoggedRequest] = []
        self._world = LivingWorld(settings)
        self._addresses = [address(site) for site in range(settings.sites)]
        self._sites: LivingSites | None = None
        self._recent: list[deque[float]] = [deque() for _ in self._addresses]
        self._step = 0
        self._running = ExitStack()

    def __enter__(self) -> Self:
        listeners = listen(self._addresses, self.settings.port)
        port = listeners[0].getsockname()[1]
        self._sites = LivingSites(self._world, [f"http://{address}:{port}" for address in self._addresses])
        self._running.enter_context(serving(listeners, self._converse))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    @property
    def step(self) -> int:
        """The clock of the web: pages are shown as of this step."""
        return self._step

    @step.setter
    def step(self, step: int) -> None:
        if not 0 <= step <= self.settings.steps:
            steps = self.settings.steps
            raise RecrawlError(f"This web has the steps 0 to {steps}, not {step}. Make it with more steps.")
        self._step = step

    @property
    def now(self) -> datetime:
        """The simulated time."""
        return self._world.time(self._step)

    @property
    def seeds(self) -> list[str]:
        """The home pages of all sites; every page is two clicks from one of them."""
        return [self._url((site, "/")) for site in range(self.settings.sites)]

    @property
    def pages(self) -> list[str]:
        """All pages, private ones and those that will be gone included; articles are not among them."""
        return [self._url(place) for place in self._world.places[: self.settings.pages]]

    @property
    def traps(self) -> list[str]:
        """Pages that trap careless crawlers."""
        return [self._url((self._world.trap_site, path)) for path in TRAPS]

    def shown(self, url: str) -> set[str]:
        """The links that a page shows now, as canonical URLs; for an address that redirects, the target."""
        place = self._place(url)
        if place is None:
            return set()
        if (target := self._world.old_places.get(place)) is not None:
            return {self._url((place[0], target))}
        number = self._world.find(*place)
        return set() if number is None else set(map(self._url, self._world.links(number, self._step)))

    def new_links(self, after: int, until: int) -> set[str]:
        """Links first shown on any page after one step, up to and including another."""
        since = self._world.since
        return {self._url(self._world.places[number]) for number in np.flatnonzero((since > after) & (since <= until))}

    def first_shown(self, url: str) -> int | None:
        """The step at which a page or article is first linked to; None where there is none."""
        place = self._place(url)
        number = None if place is None else self._world.find(*place)
        since = self.settings.steps + 1 if number is None else int(self._world.since[number])
        return since if since <= self.settings.steps else None

    def is_allowed(self, url: str) -> bool:
        """Whether robots.txt lets crawlers fetch the page."""
        place = self._place(url)
        return place is None or not place[1].startswith("/private/") or place[0] == NO_ROBOTS_SITE

    def _url(self, place: Place) -> str:
        return self._served.url(place)

    def _place(self, url: str) -> Place | None:
        origin = urls.origin(url)
        if origin not in self._served.origins:
            return None
        return self._served.origins.index(origin), url[len(origin) :]

    @property
    def _served(self) -> LivingSites:
        if self._sites is None:
            raise RecrawlError("A living web has addresses once it runs: with LivingWeb(settings) as web: …")
        return self._sites

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Respond to all requests of one connection."""
        site = self._addresses.index(writer.get_extra_info("sockname")[0])
        wire = Wire(writer)
        try:
            while not wire.is_over and (request := await read_request(reader)) is not None:
                wire.begin()
                await self._respond(site, request, wire)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client has gone, or the web ends
        finally:
            writer.close()

    async def _respond(self, site: int, request: HttpRequest, wire: Wire) -> None:
        at, step = time.monotonic(), self._step
        if self._is_too_fast(site, at):
            response = HttpResponse(429, headers={"Retry-After": "1"}, fault=Fault.THROTTLED)
        elif site == self._world.trap_site and request.path.startswith("/trap/"):
            try:
                return await spring(wire, request)
            finally:
                self._log(site, request, wire.status, wire.n_bytes, Fault.NONE, at=at, step=step)
        else:
            response = self._served.respond(site, request, step)
        if response.fault is Fault.SLOW:
            await asyncio.sleep(self.settings.faults.slow_seconds)
        # Logged before it is sent: a client with a response finds it in the log.
        self._log(site, request, response.status, len(response.sent(request)), response.fault, at=at, step=step)
        return await wire.send(response, request)

    def _log(
        self, site: int, request: HttpRequest, status: int, n_bytes: int, fault: Fault, *, at: float, step: int
    ) -> None:
        self.log.append(
            LoggedRequest(
                at=at,
                took=time.monotonic() - at,
                now=self._world.time(step),
                host=self._addresses[site],
                path=request.path,
                status=status,
                n_bytes=n_bytes,
                has_validators=request.has_validators,
                agent=request.headers.get("user-agent", ""),
                fault=fault,
            )
        )

    def _is_too_fast(self, site: int, at: float) -> bool:
        limit, recent = self.settings.max_per_second, self._recent[site]
        if limit is None:
            return False
        span = max(1.0, 1 / limit)  # less than one per second is a limit, too
        while recent and recent[0] <= at - span:
            recent.popleft()
        if len(recent) >= round(limit * span, 6):
            return True
        recent.append(at)
        return False
