"""Pages a second of `recrawl crawl`, recording included, beside a bare Scrapy spider that only collects links.

Servers in a process of their own on loopback, the same pages, the same concurrency, no delay; the two take turns.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Row

N_PAGES, TURNS, AT_ONCE = 3_000, 3, 16


def run(n_pages: int = N_PAGES, turns: int = TURNS) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="recrawl-bench-") as folder:
        server = subprocess.Popen(
            _command("serve", str(n_pages)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            plan = Path(folder) / "plan.txt"
            plan.write_text("\n".join(json.loads(server.stdout.readline())))
            best = {"bare": 0.0, "ours": 0.0}
            for turn in range(turns):
                for arm in best:
                    best[arm] = max(best[arm], _rate(arm, plan, Path(folder) / f"history-{turn}"))
        finally:
            server.kill()
    ratio = best["ours"] / best["bare"]
    note = f"{best['ours']:.0f} pages/s against {best['bare']:.0f}; {n_pages:,} pages, best of {turns}"
    yield Row("recrawl crawl against a bare Scrapy spider", ratio, "×", "≥ 0.8", ratio >= 0.8, note)


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks.crawl", *arguments]


def _rate(arm: str, plan: Path, history: Path) -> float:
    done = subprocess.run(_command(arm, str(plan), str(history)), capture_output=True, text=True, check=True)
    n_pages, seconds = json.loads(done.stdout.splitlines()[-1])
    return float(n_pages / seconds)


# -- in processes of their own ---------------------------------------------------------------------------------------------


def serve(n_pages: int) -> None:
    from recrawl.synth.living.web import Faults, Living, LivingWeb

    with LivingWeb(Living(pages=n_pages, sites=8, faults=Faults(), private=0.0, crawl_delay=0.0)) as web:
        print(json.dumps(sorted(web.pages)), flush=True)
        sys.stdin.read()


def bare(plan: Path) -> None:
    import scrapy
    from scrapy.crawler import CrawlerProcess
    from scrapy.linkextractors import LinkExtractor

    class Bare(scrapy.Spider):
        name = "bare"
        start_urls = plan.read_text().split()
        extractor = LinkExtractor()
        n_links = 0

        def parse(self, response):  # type: ignore[no-untyped-def]
            self.n_links += len(self.extractor.extract_links(response))

    settings = {"CONCURRENT_REQUESTS": AT_ONCE, "CONCURRENT_REQUESTS_PER_DOMAIN": AT_ONCE, "LOG_ENABLED": False}
    process = CrawlerProcess({**settings, "DOWNLOAD_DELAY": 0, "TELNETCONSOLE_ENABLED": False})
    crawler = process.create_crawler(Bare)
    process.crawl(crawler)
    process.start()
    stats = crawler.stats.get_stats()
    print(json.dumps([stats["response_received_count"], stats["elapsed_time_seconds"]]))


def ours(plan: Path, history: Path) -> None:
    from recrawl.crawl.run import FetchSettings, crawl

    settings = {"RECRAWL_HISTORY": str(history), "RECRAWL_PLAN": str(plan), "RECRAWL_ALLOW_LOOPBACK": True}
    fetch = FetchSettings(
        user_agent="bench/1.0 (+https://example.org)", delay=0.0, host_concurrency=AT_ONCE, concurrency=AT_ONCE
    )
    result = crawl(settings, fetch)
    (stats,) = result.cycles
    assert stats["recrawl/written"] == stats["recrawl/visits"]
    print(json.dumps([stats["recrawl/fetched"], stats["elapsed_time_seconds"]]))


if __name__ == "__main__":
    what, *given = sys.argv[1:]
    if what == "serve":
        serve(int(given[0]))
    elif what == "bare":
        bare(Path(given[0]))
    else:
        ours(Path(given[0]), Path(given[1]))
