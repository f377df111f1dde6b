"""Crawls for the tests. Each runs in its own process, because a reactor runs only once; run as a program, this is that process.

The servers stay in the process of the test, which can read their logs: a `LivingWeb`, or `Sites` with the test's own responses.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from pathlib import Path
from typing import Any, Self

sys.path.insert(0, str(Path(__file__).parents[1]))  # it is run as a program, too

from patience import slowness
from recrawl.history import History
from recrawl.synth.living.http import HttpRequest, HttpResponse, Wire, read_request
from recrawl.synth.living.server import address, listen, serving

AGENT = "Webwatch/1.0 (+https://example.org/bot)"
HTML = {"Content-Type": "text/html; charset=utf-8"}
_NUMBERS = count()  # of plans
NO_ANSWER = HttpResponse(0)  #: the server never responds
HANG_UP = HttpResponse(0, b"at once")  #: the server closes the connection without a response


# -- the process that crawls ------------------------------------------------------------------------------------------


class Clock:
    """A clock that is ahead of the real one."""

    ahead = timedelta(0)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


def main(given: dict[str, Any]) -> None:
    from scrapy.statscollectors import MemoryStatsCollector

    from recrawl.crawl.frontier import ByRank, Frontier, Limits
    from recrawl.crawl.robots import Robots
    from recrawl.crawl.run import FetchSettings, crawl
    from recrawl.crawl.view import crawl_summary

    class PrintingStats(MemoryStatsCollector):
        """Prints at once how many visits are safe in the history."""

        def inc_value(self, key: str, count: int = 1, start: int = 0, spider: Any = None) -> None:
            super().inc_value(key, count, start)
            if key == "recrawl/written":
                print(json.dumps({"written": self.get_value(key)}), flush=True)

    frontier = None
    if given["seeds"]:
        frontier = Frontier(ByRank(()), Limits(**given["limits"]), host_concurrency=4)
        frontier.order = ByRank(frontier.number(seed) for seed in given["seeds"])
        frontier.add(given["seeds"], 0)
    settings = {"STATS_CLASS": PrintingStats, "RECRAWL_ALLOW_LOOPBACK": True, "RECRAWL_HINTS": False} | given[
        "settings"
    ]
    settings["RECRAWL_CLOCK"] = clock = Clock()

    def between(cycle: int) -> None:
        clock.ahead = timedelta(hours=given["hours"][cycle] if given["hours"] else 0)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fetch = FetchSettings(user_agent=AGENT, **given["fetch"])
    result = crawl(settings, fetch, frontier=frontier, cycles=given["cycles"], between=between)
    if result.error is not None:
        raise result.error
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    robots = [origin for origin, _ in Robots.kept]
    cycles = [{"summary": crawl_summary(stats), "stats": stats} for stats in result.cycles]
    print(json.dumps({"cycles": cycles, "megabytes": grown, "robots": robots}, default=str), flush=True)


# -- starting it ------------------------------------------------------------------------------------------------------


def start(
    history: Path,
    *,
    plan: Iterable[str] | None = None,
    seeds: Sequence[str] = (),
    limits: Mapping[str, Any] | None = None,
    cycles: int = 1,
    hours: Sequence[float] = (),
    fetch: Mapping[str, Any] | None = None,
    dies_at: str = "",
    **settings: Any,
) -> subprocess.Popen[str]:
    """Start a crawl. It prints how much it has written, and at the end its result.

    `dies_at`: a name in ``recrawl.crawl.session``; as soon as the crawl calls it, the process is killed.
    """
    if plan is not None:
        file = history.parent / f"{next(_NUMBERS)}.plan"
        file.write_text("".join(f"{url}\n" for url in plan))
        settings["RECRAWL_PLAN"] = str(file)
    given = {
        "settings": {"RECRAWL_HISTORY": str(history), **settings},
        "fetch": {"delay": 0.0, "host_concurrency": 8, "timeout": 3.0 * slowness(), **(fetch or {})},
        "seeds": seeds, "limits": limits or {}, "cycles": cycles, "hours": hours,
    }  # fmt: skip
    dying = (
        "import json, os, sys; import recrawl.crawl.session as session\n"
        f"session.{dies_at} = lambda *given, **more: os.kill(os.getpid(), 9)\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r}); import crawling\n"
        "crawling.main(json.loads(sys.argv[1]))"
    )
    return subprocess.Popen(
        [sys.executable, *(["-c", dying] if dies_at else [__file__]), json.dumps(given)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=history.parent,
    )


def crawled(history: Path, **given: Any) -> dict[str, Any]:
    """The result of a crawl."""
    return outcome(start(history, **given))


def outcome(process: subprocess.Popen[str]) -> dict[str, Any]:
    try:
        out, errors = process.communicate()  # however long: on a busy machine imports alone may take a minute
    finally:
        process.kill()  # where the test itself is out of time
    assert process.returncode == 0, errors
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found | {"log": errors, "summary": found["cycles"][-1]["summary"], "stats": found["cycles"][-1]["stats"]}


def visits(history: Path) -> dict[str, list[tuple[int, str | None]]]:
    """URL → status and note of each of its visits, in order of time."""
    opened = History.open(history)
    timeline, found = opened.timeline, defaultdict(list)
    notes = timeline.rows["note"].to_pylist()
    names = opened.urls_of(timeline.page).to_pylist()
    for url, status, note in zip(names, timeline.status.tolist(), notes, strict=True):
        found[url].append((status, note))
    return dict(found)


# -- servers ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Got:
    """One request that a server received."""

    at: float  # seconds, by time.monotonic()
    host: str
    path: str
    headers: Mapping[str, str]


Given = HttpResponse | Callable[[HttpRequest], HttpResponse]


def page(text: str = "a page", *links: str, **headers: str) -> HttpResponse:
    body = f"<title>{text}</title><p>{text}</p>" + "".join(f'<a href="{link}">{link}</a>' for link in links)
    return HttpResponse(200, body.encode(), HTML | {name.replace("_", "-"): value for name, value in headers.items()})


class Sites:
    """Sites with the responses that a test gives them, each on its own address. Every other path is a page.

    There is no robots.txt unless it is given.
    """

    def __init__(self, *answers: Mapping[str, Given]) -> None:
        self.answers = [dict(given) for given in answers]
        self.log: list[Got] = []
        self._addresses = [address(site) for site in range(len(answers))]
        self._running = ExitStack()

    def __enter__(self) -> Self:
        listeners = listen(self._addresses, 0)
        self.port = listeners[0].getsockname()[1]
        self._running.enter_context(serving(listeners, self._converse))
        return self

    def __exit__(self, *raised: object) -> None:
        self._running.close()

    def url(self, path: str = "/", site: int = 0) -> str:
        return f"http://{self._addresses[site]}:{self.port}{path}"

    def asked(self, site: int = 0) -> list[str]:
        """The paths requested from a site, in order."""
        return [got.path for got in self.log if got.host == self._addresses[site]]

    def gaps(self, site: int = 0) -> list[float]:
        """Seconds between one request and the next."""
        times = [got.at for got in self.log if got.host == self._addresses[site]]
        return [after - before for before, after in pairwise(times)]

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host = writer.get_extra_info("sockname")[0]
        wire = Wire(writer)
        try:
            while not wire.is_over and (asked := await read_request(reader)) is not None:
                wire.begin()
                self.log.append(Got(time.monotonic(), host, asked.path, asked.headers))
                answer = self._answer(host, asked)
                if answer is NO_ANSWER:
                    await asyncio.sleep(3600)
                if answer is HANG_UP:
                    return
                await wire.send(answer, asked)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client has gone, or the test ends
        finally:
            writer.close()

    def _answer(self, host: str, asked: HttpRequest) -> HttpResponse:
        given = self.answers[self._addresses.index(host)].get(asked.path)
        if given is None:
            return HttpResponse(404) if asked.path == "/robots.txt" else page(asked.path)
        return given(asked) if callable(given) else given


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
