"""The sites of a living web without the network: the response to every request."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime

from recrawl.core.hashing import hash64
from recrawl.synth.living.files import file_response
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
    """The validators that a page is sent with."""

    etag: str | None = None
    modified: datetime | None = None

    def headers(self) -> dict[str, str]:
        """The headers that are sent."""
        headers = {"ETag": self.etag, "Last-Modified": self.modified and http_date(self.modified)}
        return {name: value for name, value in headers.items() if value}


class LivingSites:
    """All sites of a living web; `origins` are their addresses."""

    def __init__(self, world: LivingWorld, origins: list[str]) -> None:
        self.world, self.origins = world, origins
        self._mishaps = tuple(zip(_MISHAPS, world.living.faults.shares(MISHAPS), strict=True))
        self._n_requests: Counter[Place] = Counter()
        self._bodies: dict[tuple[int, int], bytes] = {}
        self._files: dict[tuple[Place, int], HttpResponse | None] = {}

    def url(self, place: Place) -> str:
        """The whole address of a place."""
        return self.origins[place[0]] + place[1]

    def respond(self, site: int, request: HttpRequest, step: int) -> HttpResponse:
        """The response of a site at a step; with the same seed, the nth request for a page gets the same fault."""
        if request.method not in ("GET", "HEAD"):
            return _NOT_ALLOWED
        place = (site, request.path)
        self._n_requests[place] += 1
        if (target := self.world.old_places.get(place)) is not None:
            return HttpResponse(301, headers={"Location": target})
        number = self.world.find(*place)
        if number is None:
            return self._file(place, request, step) or _NOT_FOUND
        if not self.world.exists(number, step):
            return _NOT_FOUND
        return self._page(number, request, step)

    def _page(self, number: int, request: HttpRequest, step: int) -> HttpResponse:
        n_requests = self._n_requests[self.world.places[number]]
        fault = self._mishap(number, n_requests)
        if fault is Fault.SERVER_ERROR:
            return HttpResponse(500 if n_requests % 2 else 503, b"<title>Error</title>", _HTML, fault)
        state = self.world.state(number, step)
        validators = self._validators(number, state, n_requests)
        if request.has_copy(validators.etag, validators.modified):
            lies = self.world.habit(number) is Habit.LYING_ETAG and state > 0
            honest = fault if fault is Fault.SLOW else Fault.NONE  # the others need a body
            return HttpResponse(304, headers=validators.headers(), fault=Fault.LYING_ETAG if lies else honest)
        return HttpResponse(200, self._body(number, state), _HTML | validators.headers(), fault)

    def _mishap(self, number: int, n_requests: int) -> Fault:
        chance = hash64(f"{self.world.living.seed} {number} {n_requests}") % 2**32 / 2**32
        for fault, share in self._mishaps:
            if chance < share:
                return fault
            chance -= share
        return Fault.NONE

    def _validators(self, number: int, state: int, n_requests: int) -> PageValidators:
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
                return PageValidators(f'"{number}-{state}-{n_requests}"')
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

    def _file(self, place: Place, request: HttpRequest, step: int) -> HttpResponse | None:
        if (place, step) not in self._files:
            if len(self._files) >= _CACHED:
                self._files.clear()
            made = file_response(self.world, self.origins[place[0]], *place, step)
            if made is not None and made.status == 200:
                made = replace(made, headers={**made.headers, "ETag": f'"{hash64(made.body):x}"'})
            self._files[place, step] = made
        response = self._files[place, step]
        if response is not None and request.has_copy(response.headers.get("ETag"), None):
            return replace(response, status=304, body=b"")
        return response
