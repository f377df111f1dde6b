"""One seed is one life of a crawl: imports, crawls, plans and compactions on a small living web, with kills, full disks, a second
writer at any step, late visits and clocks that jump; hosts forbid pages, lead inside and fall silent. After every step an auditor
checks what recrawl promises.

Everything that happens follows from the seed: there is one clock, which the life sets, and one schedule. A process is killed by
making all that it does to its files after some step fail, as if it were not there any more; what it holds in memory is forgotten.
"""

from __future__ import annotations

import errno
import os
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recrawl.crawl.planned import FORBIDDEN, FORBIDDEN_FOR
from recrawl.crawl.settings import CrawlOptions
from recrawl.errors import HistoryError, NotEnoughData
from recrawl.history import History
from recrawl.history.ingest import import_files
from recrawl.history.plans import stored
from recrawl.history.repair import repair
from recrawl.plan.options import PlanOptions
from recrawl.plan.planner import Planner
from recrawl.plan.score import store
from recrawl.web.urls import canonical
from recrawl.web.visit import Visit
from simulated_web import STEP, Page, SimulatedCrawl, Web

START = datetime(2026, 1, 1, tzinfo=UTC)
TOUCHING = ("link", "replace", "rename", "unlink", "mkdir", "fsync")  # steps at which something may happen
POLICIES = ("expected-harvest", "average-count", "round-robin", "lambda-crawl")
N_STEPS = 9
Key = tuple[str, datetime]


class Killed(BaseException):
    """The process is not there any more."""


class Broken(AssertionError):
    """A promise that was not kept."""


@dataclass
class Interference:
    """What happens at which step of what recrawl does to its files."""

    at: int = -1  # steps until it happens; -1: never
    happens: Callable[[], None] | None = None  # at that step
    is_dead: bool = False
    is_busy: bool = False

    def step(self) -> None:
        if self.is_dead:
            raise Killed
        if self.is_busy or self.at < 0:
            return
        self.at -= 1
        if self.at < 0 and self.happens is not None:
            self.is_busy = True
            try:
                self.happens()
            finally:
                self.is_busy = False

    def kill(self) -> None:
        self.is_dead = True
        raise Killed

    @staticmethod
    def fill_disk() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Life:
    """One life; `run` raises `Broken` where a promise is not kept."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance, self.folder = random.Random(seed), folder
        self.now = START
        self.web = Web(self.chance)
        self.acknowledged: dict[Key, Visit] = {}
        self.in_flight: dict[Key, Visit] = {}  # begun and not acknowledged: they may be there or not
        # Of every visit that was ever made; a clock that was set back may lead to two of one moment, of which either may count.
        self.statuses: defaultdict[Key, set[int]] = defaultdict(set)
        self.plans: set[str] = set()  # names of stored ones; two for one moment may be the same
        self.disk = Interference()
        self.events: list[str] = []
        self.history = History.create(folder)

    def run(self) -> None:
        steps = (self.crawl, self.crawl, self.import_, self.late, self.plan, self.plan, self.compact, self.jump)
        for _ in range(N_STEPS):
            step = self.chance.choice(steps)
            self.now += timedelta(hours=self.chance.choice([1, 6, 24]))
            self.web.live_on()
            self.events.append(f"{step.__name__} at {self.now:%d %H:%M}")
            try:
                self._interfere()
                step()
            except Killed:
                self.events.append("killed")
            except HistoryError as error:
                if not self.disk.is_dead and "No space" not in str(error):
                    raise Broken(f"{self.events}: {error}") from error
                self.events.append("disk full")
            self.disk = Interference()
            self.history = History.open(self.folder)  # a new process
            self.audit()

    # -- what happens --------------------------------------------------------------------------------------------------

    def crawl(self) -> None:
        """Fetch what a plan says, or everything while there is nothing to plan from."""
        if not self.acknowledged:
            self._add([self._fetched(page, self._tick()) for page in self.web.pages])
            return
        options = CrawlOptions(history=str(self.folder), clock=self._tick, **self._options())
        self.known_then, self.planned_at = (
            {key: v for key, v in self.acknowledged.items() if key[1] <= self.now},
            self.now,
        )
        crawl = SimulatedCrawl(self.web, options, self._on_request)
        journal, recorded = crawl.session.journal, list[Visit]()
        self._follow(journal, recorded)
        try:
            crawl.run()
        finally:  # what the end of a process does
            journal._thread.shutdown()
            if crawl.session.lock is not None:
                crawl.session.lock.release()
        if journal.n_lost:
            raise Broken(f"{self.events}: {journal.n_lost} visits of a crawl are lost")
        if journal.spilled:
            import_files(self.history, journal.spilled)
            self._acknowledge(recorded)
        if self.disk.is_dead:
            raise Killed
        self._check_crawl(crawl)

    def _tick(self) -> datetime:
        self.now += STEP
        return self.now

    def _on_request(self) -> None:
        self.disk.step()

    def _follow(self, journal: Any, recorded: list[Visit]) -> None:
        """Know which visits of a crawl were recorded, and which of them are acknowledged."""
        add, on_written = journal.add, journal.on_written

        def adding(visit: Visit) -> bool:
            is_valid = add(visit)
            if is_valid:
                visit = replace(visit, url=canonical(visit.url))
                recorded.append(visit)
                self._begin([visit])
            return bool(is_valid)

        def written(n_visits: int, n_new: int) -> None:
            self._acknowledge(recorded[:n_visits])
            del recorded[:n_visits]
            on_written(n_visits, n_new)

        journal.add, journal.on_written = adding, written

    def _begin(self, visits: list[Visit]) -> None:
        for visit in visits:
            key = visit.url, visit.at
            self.statuses[key].add(visit.status)
            if key not in self.acknowledged:
                self.in_flight[key] = visit

    def _acknowledge(self, visits: list[Visit]) -> None:
        self.acknowledged |= {(visit.url, visit.at): visit for visit in visits}
        for visit in visits:
            self.in_flight.pop((visit.url, visit.at), None)

    def import_(self) -> None:
        """Visits from elsewhere, some of them known already, some twice in one file."""
        visits = [self._fetched(page, self.now) for page in self.chance.sample(self.web.pages, 2)]
        known = list(self.acknowledged.values())[:1]
        self._add([*visits, *visits[:1], *known])

    def late(self) -> None:
        """Visits of long ago."""
        page = self.chance.choice(self.web.pages)
        self._add([Visit(url=page.url, at=START - timedelta(hours=self.chance.randint(1, 99)), status=200, links=[])])

    def plan(self) -> None:
        try:
            made = self._planned(carry=True)
        except NotEnoughData:
            return
        self._check_plan(made)
        store(self.history, made)
        self.plans |= {made.id} if len(made) else set()

    def compact(self) -> None:
        self.history.compact()

    def jump(self) -> None:
        """The clock is set, forwards or back."""
        self.now += timedelta(hours=self.chance.choice([-30, -5, 200]))

    def _add(self, visits: list[Visit]) -> None:
        new = {(visit.url, visit.at): visit for visit in visits if (visit.url, visit.at) not in self.acknowledged}
        self._begin(visits)
        receipt = self.history.add(visits)
        if receipt.added > len(new):
            raise Broken(f"{self.events}: {receipt.added} visits are said to be added, of {len(new)}")
        self._acknowledge(list(new.values()))

    def _fetched(self, page: Page, at: datetime) -> Visit:
        status = 404 if page.is_gone else self.chance.choice([200] * 8 + [500, 304])
        links = list(page.links) if status == 200 else None
        return Visit(url=page.url, at=at, status=status, links=links, text=f"text {len(page.links)}" if links else None)

    def _interfere(self) -> None:
        """Have a kill, a full disk or another writer at some step; or nothing."""
        other = [
            Visit(url="https://other.org/", at=self.now + timedelta(minutes=1), status=200, links=["https://a.org/"])
        ]

        def write() -> None:
            self._begin(other)
            History.create(self.folder).add(other)
            self._acknowledge(other)

        happens = self.chance.choice([None, self.disk.kill, self.disk.kill, Interference.fill_disk, write])
        self.disk.happens, self.disk.at = happens, self.chance.randrange(60) if happens else -1

    # -- the auditor ---------------------------------------------------------------------------------------------------

    def audit(self) -> None:
        """What must hold after every step."""
        if repaired := repair(self.folder):
            raise Broken(f"{self.events}: {repaired} had to be repaired")
        self._check_visits()
        if not self.plans <= set(stored(self.history.beside)["plan"].to_pylist()):
            raise Broken(f"{self.events}: a stored plan is lost")
        try:
            carried, relearnt = self._planned(carry=True), self._planned(carry=False)
        except NotEnoughData:
            return
        if repr(carried.to_arrow().to_pydict()) != repr(relearnt.to_arrow().to_pydict()):
            raise Broken(f"{self.events}: with what was kept another plan is made than without")
        self._check_plan(carried)

    def _check_visits(self) -> None:
        timeline = self.history.timeline
        urls = dict(zip(timeline.pages.tolist(), self.history.urls_of(timeline.pages).to_pylist(), strict=True))
        found = [
            (urls[page], at) for page, at in zip(timeline.page.tolist(), timeline.rows["at"].to_pylist(), strict=True)
        ]
        if len(set(found)) < len(found):
            raise Broken(f"{self.events}: a visit is there twice")
        if lost := self.acknowledged.keys() - set(found):
            raise Broken(f"{self.events}: {len(lost)} acknowledged visits are lost, such as {min(lost)}")
        if strange := set(found) - self.acknowledged.keys() - self.in_flight.keys():
            raise Broken(f"{self.events}: {strange} were never made")
        status = dict(zip(found, timeline.status.tolist(), strict=True))
        if any(status[key] not in self.statuses[key] for key in self.acknowledged):
            raise Broken(f"{self.events}: a visit has another status than it had")
        arrived = {key: visit for key, visit in self.in_flight.items() if key in status}
        self.acknowledged |= arrived  # once it was read it must stay
        self.in_flight = {}

    def _planned(self, *, carry: bool) -> Any:
        self.asked = PlanOptions(**self._options(), relearn=not carry)
        return Planner(self.history, self.asked, self.now, carry=carry).plan()

    def _options(self) -> dict[str, Any]:
        """What a plan is asked for: by the time, not by chance, since asking must not change what happens next."""
        hour = int(self.now.timestamp() // 3600)
        return {
            "budget": str(1 + hour % 4),
            "per_host": 1 + hour % 2,
            "policy": POLICIES[hour // 72 % len(POLICIES)],
            "exclude": ("https://b.org/0*",) if hour % 3 == 0 else (),
        }

    def _check_crawl(self, crawl: SimulatedCrawl) -> None:
        """What a crawl has planned and requested."""
        plan, options = crawl.session.plan, crawl.session.options
        if breaches := self.web.breaches():
            raise Broken(f"{self.events}: {breaches}")
        if plan.began_at is not None:  # it continues another one, with the budget and rules of that time
            return
        if len(plan.urls) > int(options.budget):
            raise Broken(f"{self.events}: {len(plan.urls)} pages are to be fetched, of {options.budget}")
        newest: dict[str, Visit] = {}
        for (url, at), visit in sorted(self.known_then.items(), key=lambda item: item[0][1]):
            if at > self.planned_at - FORBIDDEN_FOR:
                newest[url] = visit
        if again := [
            url for url in plan.urls if (newest[url].note or "" if url in newest else "").startswith(FORBIDDEN)
        ]:
            raise Broken(f"{self.events}: {again} are forbidden by robots.txt, and planned")

    def _check_plan(self, made: Any) -> None:
        urls = made.url.to_pylist()
        hosts = [url.split("/")[2] for url in urls]
        if len(urls) > int(self.asked.budget) or len(set(urls)) < len(urls):
            raise Broken(f"{self.events}: {len(urls)} pages are planned, of {self.asked.budget}")
        if any(hosts.count(host) > (self.asked.per_host or 9) for host in hosts):
            raise Broken(f"{self.events}: more than {self.asked.per_host} pages of a host are planned")
        if any(url.startswith("https://b.org/0") for url in urls) and self.asked.exclude:
            raise Broken(f"{self.events}: an excluded page is planned")
        last: dict[str, Visit] = {}
        for (url, at), visit in sorted(self.acknowledged.items(), key=lambda item: item[0][1]):
            if at <= self.now and visit.status not in (500,):
                last[url] = visit
        if gone := [url for url in urls if url in last and last[url].status == 404]:
            raise Broken(f"{self.events}: {gone} are gone, and planned")


def follow(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every step to the disk be one of the life's; nothing waits for a disk."""
    for name in TOUCHING:
        work = getattr(os, name)

        def stepped(*given: Any, work: Callable[..., Any] = work, name: str = name, **more: Any) -> Any:
            life.disk.step()
            return None if name == "fsync" else work(*given, **more)

        monkeypatch.setattr(os, name, stepped)


def live(seed: int, folder: Path) -> Life:
    """A whole life."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        life = Life(seed, folder)
        follow(life, monkeypatch)
        life.run()
        return life
