"""The loop closed on a living web: ``python -m benchmarks.results.living`` prints the tables of docs/results/closed-loop.md.

Real servers on loopback whose pages gain and lose links (`recrawl.synth.living`). First crawl, a few crawls of everything to learn
from, then weeks of cycles at a tenth of the pages: once by round-robin, once by a learned plan, each with its own history, from
the same beginning on the same web. ``--weeks N`` and ``--pages N`` make it shorter.
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from recrawl.synth.living.web import Living, LivingWeb
from recrawl.web import urls

AGENT = "recrawl-living/1.0 (+https://example.org/bot)"
RETRAIN = 28  # cycles: a week
DELAY = 0.05  # seconds between two requests to a host; made-up weeks must pass in minutes


def web_of(asked: argparse.Namespace) -> Living:
    return Living(
        sites=8, pages=asked.pages, every=timedelta(hours=6), steps=asked.steps, crawl_delay=2 * DELAY, port=asked.port
    )


# -- one process: some cycles on a web of its own ----------------------------------------------------------------------


def run(asked: argparse.Namespace) -> dict[str, Any]:
    """Crawl from one step to another, and tell what the servers saw."""
    from recrawl.crawl.frontier import BreadthFirst, ByRank, Frontier, Limits
    from recrawl.crawl.run import FetchSettings, crawl
    from recrawl.crawl.view import crawl_summary

    with LivingWeb(web_of(asked)) as web:
        web.step = asked.first
        begun: dict[int, float] = {}

        def begin(cycle: int) -> None:
            web.step = asked.first + cycle
            begun[cycle] = time.monotonic()

        def clock() -> Any:
            return web.now + timedelta(seconds=time.monotonic() - max(begun.values(), default=time.monotonic()))

        frontier = None
        if asked.arm == "first":
            frontier = Frontier(BreadthFirst(), Limits(pages=asked.pages + 50), host_concurrency=8)
            frontier.order = ByRank(frontier.number(url) for url in web.seeds)
            frontier.add(web.seeds, 0)
        settings: dict[str, Any] = {
            "RECRAWL_HISTORY": asked.history,
            "RECRAWL_BUDGET": "100%" if asked.arm in ("first", "full") else "10%",
            "RECRAWL_ALLOW_LOOPBACK": True,
            "RECRAWL_CLOCK": clock,
            "RECRAWL_RETRY_WAIT": 0.2,  # the made-up servers are well again at once
            "RECRAWL_HINTS": asked.hints,
            "RECRAWL_CONDITIONAL": asked.arm != "unconditional",
        }
        if asked.model:
            settings["RECRAWL_MODEL"] = asked.model
        elif asked.arm not in ("default", "own spider"):
            settings["RECRAWL_POLICY"] = "round-robin"
        fetch = FetchSettings(user_agent=AGENT, delay=DELAY, host_concurrency=1, concurrency=16)
        if asked.arm == "own spider":
            cycles = by_own_spider({**settings, **fetch.to_scrapy()}, asked.cycles, begin)
        else:
            outcome = crawl(settings, fetch, frontier=frontier, cycles=asked.cycles, between=begin)
            if outcome.error:
                raise outcome.error
            cycles = outcome.cycles
        return {
            "cycles": [crawl_summary(stats) for stats in cycles],
            "items": sum(stats.get("item_scraped_count", 0) for stats in cycles),
            "published": len(web.new_links(asked.first - 1, asked.first + asked.cycles - 1)) if asked.first else 0,
            "servers": _seen_by_servers(web),
        }


def by_own_spider(settings: dict[str, Any], n: int, begin: Callable[[int], None]) -> list[dict[str, Any]]:
    """The same with a spider of a Scrapy project, to which only the add-on was added."""
    from scrapy.crawler import CrawlerProcess
    from twisted.internet.defer import inlineCallbacks

    sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "scrapy_project"))
    from watch import settings as project
    from watch.spiders.headlines import Headlines

    own = {name: getattr(project, name) for name in dir(project) if name.isupper() and name != "FEEDS"}
    process, cycles = CrawlerProcess({**own, **settings, "LOG_ENABLED": False}), []

    @inlineCallbacks
    def run() -> Any:
        for cycle in range(n):
            begin(cycle)
            crawler = process.create_crawler(Headlines)
            yield process.crawl(crawler)
            cycles.append(dict(crawler.stats.get_stats()))

    done = run()
    done.addBoth(lambda result: process._stop_reactor())
    process.start(stop_after_crawl=False)
    return cycles


def _seen_by_servers(web: LivingWeb) -> dict[str, Any]:
    """What the servers' own log proves."""
    origins = {urls.host(seed): urls.origin(seed) for seed in web.seeds}
    by_host = defaultdict(list)
    for request in web.log:
        by_host[request.host].append(request.at)
    most = max((sum(at <= other < at + 1 for other in times) for times in by_host.values() for at in times), default=0)
    forbidden = [
        request.path
        for request in web.log
        if request.path != "/robots.txt" and not web.is_allowed(origins[request.host] + request.path)
    ]
    return {
        "requests": len(web.log),
        "bytes": sum(request.n_bytes for request in web.log),
        "most_in_a_second": most,
        "forbidden": len(forbidden),
        "statuses": dict(Counter(str(request.status) for request in web.log)),
    }


# -- the whole story -----------------------------------------------------------------------------------------------------


def started(arm: str, history: Path, first: int, cycles: int, asked: argparse.Namespace, *more: str) -> dict[str, Any]:
    """The same in a process of its own, since Scrapy runs once in each."""
    given = {"arm": arm, "history": history, "first": first, "cycles": cycles}
    given |= {name: getattr(asked, name) for name in ("pages", "steps", "port")}
    options = [text for name, value in given.items() for text in (f"--{name}", str(value))]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.results.living", *options, *more],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def trained(history: Path, model: Path) -> None:
    command = [sys.executable, "-m", "recrawl.cli", "train", "--history", str(history), "--out", str(model)]
    done = subprocess.run([*command, "--every", "crawl"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)


def learned(history: Path, first: int, asked: argparse.Namespace) -> list[dict[str, Any]]:
    """Weeks by the plans of a model that is trained anew each week."""
    found = []
    for week in range(round(asked.weeks)):
        model = history.parent / f"{history.name}-{week}.model"
        trained(history, model)
        found.append(started("learned", history, first + week * RETRAIN, RETRAIN, asked, "--model", str(model)))
    return found


def story(asked: argparse.Namespace) -> Iterator[str]:
    folder = Path(asked.keep or tempfile.mkdtemp(prefix="recrawl-living-"))
    try:
        first = started("first", folder / "beginning", 0, 1, asked)
        full = started("full", folder / "beginning", 1, asked.full, asked)
        begin = 1 + asked.full
        arms = asked.arms.split(";")
        for arm in arms:
            shutil.copytree(folder / "beginning", folder / arm)
        n = round(asked.weeks * RETRAIN)
        found = {}
        for arm in arms:
            name, *more = arm.split(", ")
            hints = ["--hints"] if more else []
            if name == "learned":
                found[arm] = learned(folder / arm, begin, asked)
            else:
                found[arm] = [started(name, folder / arm, begin, n, asked, *hints)]
        yield from [json.dumps(found)] if asked.json else table(first, full, found)
    finally:
        if not asked.keep:
            shutil.rmtree(folder)


def table(first: dict[str, Any], full: dict[str, Any], found: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    pages = first["cycles"][0]["visits"]
    yield f"First crawl: {pages:,} visits, then {len(full['cycles'])} crawls of all pages.\n"
    yield "| plan | visits | new links | of round-robin's | expected | MB sent | unchanged | forbidden | most a second to a host |"
    yield "|---|---|---|---|---|---|---|---|---|"
    base = sum(cycle["new_links"] for part in found["round-robin"] for cycle in part["cycles"])
    for arm, parts in found.items():
        cycles = [cycle for part in parts for cycle in part["cycles"]]
        total = Counter[str]()
        for cycle in cycles:
            total.update({name: cycle[name] for name in ("visits", "new_links", "expected_new_links", "not_modified")})
        sent = sum(part["servers"]["bytes"] for part in parts) / 1e6
        forbidden = sum(part["servers"]["forbidden"] for part in parts)
        most = max(part["servers"]["most_in_a_second"] for part in parts)
        yield (
            f"| {arm} | {total['visits']:,} | {total['new_links']:,} | {total['new_links'] / max(base, 1):.2f} | "
            f"{total['expected_new_links']:,.0f} | {sent:.1f} | {total['not_modified']:,} | {forbidden} | {most} |"
        )
    yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weeks", type=float, default=2)
    parser.add_argument("--pages", type=int, default=400)
    parser.add_argument("--full", type=int, default=14, help="steps at which every page is fetched, to learn from")
    parser.add_argument("--arms", default="round-robin;unconditional;default;default, hints;own spider;learned")
    parser.add_argument("--keep", help="a folder for the histories; they are thrown away otherwise")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--arm")
    parser.add_argument("--history")
    parser.add_argument("--first", type=int)
    parser.add_argument("--cycles", type=int)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--model")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--hints", action="store_true")
    asked = parser.parse_args()
    if asked.arm:
        print(json.dumps(run(asked)))
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        asked.port = free.getsockname()[1]  # histories hold URLs with the port, so all parts need the same
    asked.steps = 1 + asked.full + round(asked.weeks * RETRAIN)
    for line in story(asked):
        print(line, flush=True)


if __name__ == "__main__":
    main()
