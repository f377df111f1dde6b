"""What the servers of a living web say to a request; how it gets there is the business of `living`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime

from recrawl.core.hashing import hash64
from recrawl.synth.living.files import file_answer
from recrawl.synth.living.http import Fault, HttpRequest, HttpResponse, http_date
from recrawl.synth.living.roles import Habit
from recrawl.synth.living.settings import MISHAPS
from recrawl.synth.living.world import LivingWorld, Place
from recrawl.synth.records import html_body
from recrawl.synth.world import CONTENT_TYPE
from recrawl.web.visit import Visit

_CACHED = 5_000  # bodies; more are rendered again
_HTML = {"Content-Type": CONTENT_TYPE}
_NOT_FOUND = HttpResponse(404, b"<title>Not found</title><p>There is no such page.</p>", _HTML)
_NOT_ALLOWED = HttpResponse(405, b"", {"Allow": "GET, HEAD"})
_MISHAPS = (Fault.SERVER_ERROR, Fault.RESET, Fault.SHORT, Fault.LONG, Fault.SLOW)  # in the order of MISHAPS


@dataclass(frozen=True)
class PageValidators:
    """What a page says about its version."""

    etag: str | None = None
    modified: datetime | None = None

    def headers(self) -> dict[str, str]:
        """Those that are sent."""
        said = {"ETag": self.etag, "Last-Modified": self.modified and http_date(self.modified)}
        return {name: value for name, value in said.items() if value}


class Servers:
    """The servers of all sites, without the network; `origins` are their addresses."""

    def __init__(self, world: LivingWorld, origins: list[str]) -> None:
        self.world, self.origins = world, origins
        self._mishaps = tuple(zip(_MISHAPS, world.living.faults.shares(MISHAPS), strict=True))
        self._n_asked: Counter[Place] = Counter()
        self._bodies: dict[tuple[int, int], bytes] = {}
        self._files: dict[tuple[Place, int], HttpResponse | None] = {}

    def url(self, place: Place) -> str:
        """The whole address of a place."""
        return self.origins[place[0]] + place[1]

    def answer(self, site: int, asked: HttpRequest, step: int) -> HttpResponse:
        """What a site says at a step; the same request gets the same faults, counted by page, for the same seed."""
        if asked.method not in ("GET", "HEAD"):
            return _NOT_ALLOWED
        place = (site, asked.path)
        self._n_asked[place] += 1
        if (target := self.world.old_places.get(place)) is not None:
            return HttpResponse(301, headers={"Location": target})
        number = self.world.find(*place)
        if number is None:
            return self._file(place, asked, step) or _NOT_FOUND
        if not self.world.exists(number, step):
            return _NOT_FOUND
        return self._page(number, asked, step)

    def _page(self, number: int, asked: HttpRequest, step: int) -> HttpResponse:
        n_asked = self._n_asked[self.world.places[number]]
        fault = self._mishap(number, n_asked)
        if fault is Fault.SERVER_ERROR:
            return HttpResponse(500 if n_asked % 2 else 503, b"<title>Error</title>", _HTML, fault)
        state = self.world.state(number, step)
        validators = self._validators(number, state, n_asked)
        if asked.has_copy(validators.etag, validators.modified):
            lies = self.world.habit(number) is Habit.LYING_ETAG and state > 0
            honest = fault if fault is Fault.SLOW else Fault.NONE  # the others need a body
            return HttpResponse(304, headers=validators.headers(), fault=Fault.LYING_ETAG if lies else honest)
        return HttpResponse(200, self._body(number, state), _HTML | validators.headers(), fault)

    def _mishap(self, number: int, n_asked: int) -> Fault:
        chance = hash64(f"{self.world.living.seed} {number} {n_asked}") % 2**32 / 2**32
        for fault, share in self._mishaps:
            if chance < share:
                return fault
            chance -= share
        return Fault.NONE

    def _validators(self, number: int, state: int, n_asked: int) -> PageValidators:
        modified = self.world.time(state)
        match self.world.habit(number):
            case Habit.NO_VALIDATORS:
                return PageValidators()
            case Habit.DATED_ONLY:
                return PageValidators(modified=modified)
            case Habit.WEAK_ETAG:
                return PageValidators(f'W/"{number}-{state}"', modified)
            case Habit.LYING_ETAG:
                return PageValidators(f'"{number}"')
            case Habit.CHANGING_ETAG:
                return PageValidators(f'"{number}-{state}-{n_asked}"')
        return PageValidators(f'"{number}-{state}"', modified)

    def _body(self, number: int, state: int) -> bytes:
        body = self._bodies.get((number, state))
        if body is None:
            if len(self._bodies) >= _CACHED:
                self._bodies.clear()
            body = self._bodies[number, state] = self._render(number, state)
        return body

    def _render(self, number: int, state: int) -> bytes:
        world, here = self.world, self.world.places[number]
        links = [place[1] if place[0] == here[0] else self.url(place) for place in world.links(number, state)]
        visit = Visit(url=self.url(here), at=world.time(state), title=world.title(number), links=links)
        return html_body(visit, world.words(number, state))

    def _file(self, place: Place, asked: HttpRequest, step: int) -> HttpResponse | None:
        if (place, step) not in self._files:
            if len(self._files) >= _CACHED:
                self._files.clear()
            made = file_answer(self.world, self.origins[place[0]], *place, step)
            if made is not None and made.status == 200:
                made = replace(made, headers={**made.headers, "ETag": f'"{hash64(made.body):x}"'})
            self._files[place, step] = made
        found = self._files[place, step]
        if found is not None and asked.has_copy(found.headers.get("ETag"), None):
            return replace(found, status=304, body=b"")
        return found
