"""The add-on as users meet it: ``scrapy crawl`` in the example project, against real servers."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from patience import patience

pytest.importorskip("scrapy")

from recrawl.history import History
from recrawl.history.plans import stored
from recrawl.synth.living.web import Faults, Living, LivingWeb, LoggedRequest
from recrawl.web.urls import canonical

PROJECT = Path(__file__).resolve().parents[2] / "examples" / "scrapy_project"
pytestmark = pytest.mark.slow  # each crawl is a process
FAST = {"DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS": 1, "RETRY_TIMES": 1, "RECRAWL_FULL_FETCHES": 0}
MORE_SPIDERS = """
import scrapy
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule
from watch.spiders.news import News

class Explained(News):
    name = "explained"
    custom_settings = {"ITEM_PIPELINES": {}}

    def planned(self, response):
        yield {"url": response.url, "recrawl": response.meta["recrawl"], "by": "planned"}

    def parse(self, response):
        yield {"url": response.url, "recrawl": response.meta.get("recrawl"), "by": "parse"}

class Ruled(CrawlSpider):
    name = "ruled"
    rules = [Rule(LinkExtractor(allow=r"/$"), callback="found", follow=False)]
    custom_settings = {"ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1}, "FILES_STORE": "files"}

    def __init__(self, sites, **more):
        super().__init__(**more)
        self.start_urls = sites.split(",")

    def parse_start_url(self, response):
        yield {"url": response.url, "by": "start", "file_urls": [response.urljoin("/feed.xml")]}

    def found(self, response):
        yield {"url": response.url, "by": "rule"}
"""


@dataclass(frozen=True)
class Crawl:
    """What a crawl left: items in its feed, what the servers saw of it, what it logged."""

    folder: Path
    items: list[dict[str, Any]]
    asked: list[LoggedRequest]
    log: str

    @property
    def stats(self) -> dict[str, float]:
        return {name: float(value) for name, value in re.findall(r"'([\w/. ]+)': ([\d.]+),", self.log)}

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.asked]

    @property
    def visits(self) -> list[tuple[str, int, str | None]]:
        """URL, status and note of all visits in the history, the oldest first."""
        history = History.open(self.folder / "history")
        rows = history.store.read("visits", ["page", "at", "status", "note"]).sort_by("at")
        urls = history.urls_of(rows["page"].to_numpy()).to_pylist()
        return list(zip(urls, rows["status"].to_pylist(), rows["note"].to_pylist(), strict=True))


def crawl(web: LivingWeb, folder: Path, spider: str = "news", **settings: Any) -> Crawl:
    """Run a spider in a copy of the example project."""
    return scrapy(web, folder, ["crawl", spider, "-a", f"sites={web.seeds[0]}"], **settings)


def scrapy(web: LivingWeb, folder: Path, command: list[str], **settings: Any) -> Crawl:
    if not folder.exists():
        shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "more_spiders.py").write_text(MORE_SPIDERS)
    settings = {**FAST, "SPIDER_MODULES": "watch.spiders,more_spiders", **settings}
    given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RECRAWL", "SCRAPY"))}
    before = len(web.log)
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", *command, *given],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=patience(120),
    )
    assert done.returncode == 0, done.stderr
    feed = folder / "pages.jsonl"
    items = [json.loads(line) for line in feed.read_text().splitlines()] if feed.exists() else []
    return Crawl(folder, items, web.log[before:], done.stderr)


def by_url(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(items, key=lambda item: str(item["url"]))


def copied(made: Crawl, folder: Path) -> Path:
    """A project with the history that another one has."""
    return Path(shutil.copytree(made.folder, folder, ignore=shutil.ignore_patterns("pages.jsonl")))


@pytest.fixture(scope="module")
def web() -> Iterator[LivingWeb]:
    living = Living(sites=1, pages=20, steps=20, private=0.1, hub_links=2.0, faults=Faults(gone=0.15, moved=0.15))
    with LivingWeb(living) as web:
        yield web


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("projects")


@pytest.fixture(scope="module")
def plain(web: LivingWeb, folder: Path) -> Crawl:
    web.step = 0
    return crawl(web, folder / "plain", ADDONS="{}")


@pytest.fixture(scope="module")
def first(web: LivingWeb, folder: Path) -> Crawl:
    """With nothing but the line in the project's settings."""
    web.step = 0
    return crawl(web, folder / "first")


@pytest.fixture(scope="module")
def second(web: LivingWeb, folder: Path, first: Crawl) -> Crawl:
    """When the web went on and there is something to plan from."""
    web.step = 20
    return crawl(web, copied(first, folder / "second"), RECRAWL_BUDGET=6, RECRAWL_EXCLUDE=f"{web.seeds[0]}old/")


@pytest.fixture(scope="module")
def second_plain(web: LivingWeb, folder: Path) -> Crawl:
    web.step = 20
    return crawl(web, folder / "second_plain", ADDONS="{}")


# -- a first crawl: nothing is planned, all is recorded ---------------------------------------------------------------


def test_a_first_crawl_requests_and_scrapes_the_same_with_and_without_the_add_on(plain: Crawl, first: Crawl) -> None:
    assert len(plain.items) > 15
    assert by_url(first.items) == by_url(plain.items)
    assert sorted(first.paths) == sorted(plain.paths)
    assert first.stats["recrawl/planned"] == 0


def test_every_response_becomes_a_visit_except_robots_txt(web: LivingWeb, first: Crawl) -> None:
    answered = [request for request in first.asked if request.path != "/robots.txt"]
    origin = web.seeds[0].rstrip("/")
    assert "/robots.txt" in first.paths
    assert [(url, status) for url, status, _ in first.visits] == [
        (canonical(origin + request.path), request.status) for request in answered
    ]
    assert {request.status for request in answered} >= {200, 301}
    assert first.stats["recrawl/visits"] == first.stats["recrawl/written"] == len(answered)
    assert first.stats["recrawl/redirects"] == sum(request.status == 301 for request in answered)
    assert first.stats["recrawl/new_links"] > 15


# -- the next crawl ---------------------------------------------------------------------------------------------------


def test_planned_pages_come_first_and_the_best_first(web: LivingWeb, second: Crawl) -> None:
    history = History.open(second.folder / "history")
    planned = history.urls_of(stored(history.beside)["page"].to_numpy()).to_pylist()
    origin = web.seeds[0].rstrip("/")
    assert len(planned) == second.stats["recrawl/planned"] == 6
    assert second.paths[0] == "/robots.txt"
    assert [canonical(origin + path) for path in second.paths[1:7]] == planned


def test_the_spiders_own_work_goes_on_and_its_feed_is_the_same(second: Crawl, second_plain: Crawl) -> None:
    assert "/" in second.paths[7:]  # the spider's own start, after robots.txt and six planned pages
    assert by_url(second.items) == by_url(second_plain.items)
    assert set(second.paths) == set(second_plain.paths)


def test_only_planned_pages_get_conditional_requests(second: Crawl) -> None:
    asked = [request for request in second.asked if request.path != "/robots.txt"]
    assert any(request.has_validators for request in asked[:6])
    assert not any(request.has_validators for request in asked[6:])
    assert second.stats["recrawl/conditional"] == sum(request.has_validators for request in asked)


# -- what becomes of planned pages ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def without_method(web: LivingWeb, folder: Path, second: Crawl) -> Crawl:
    """The callback for planned pages does not exist; Scrapy's cache stores what is fetched."""
    web.step = 20
    return crawl(web, copied(second, folder / "explained"), "explained", RECRAWL_CALLBACK="paarse", HTTPCACHE_ENABLED=1)


@pytest.fixture(scope="module")
def explained(web: LivingWeb, first: Crawl, second: Crawl, without_method: Crawl) -> Crawl:
    """A plan with a page of every kind, for a method of the spider; the spider's own start page is in the cache."""
    origin = web.seeds[0].rstrip("/")
    gone = next(request.path for request in second.asked if request.status == 404)
    moved = next(path for path in first.paths if path.startswith("/old/"))  # which redirects
    private = next(page for page in web.pages if not web.is_allowed(page))
    known = next(url for url, status, _ in second.visits[len(first.visits) :] if status == 304)
    with socket.socket() as free:
        free.bind(("127.0.1.1", 0))
        closed = f"http://127.0.1.1:{free.getsockname()[1]}/"
        others = (known, origin + gone, origin + moved, private, closed, "http://127.0.9.9/")
        lines = [{"url": f"{origin}/feed.xml", "rank": 1, "expected_new_links": 2.5}, *({"url": url} for url in others)]
        (without_method.folder / "plan.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        settings = {"RECRAWL_PLAN": "plan.jsonl", "RECRAWL_CALLBACK": "planned", "HTTPCACHE_ENABLED": 1}
        return crawl(web, without_method.folder, "explained", **settings)


def test_the_callback_of_planned_pages_gets_the_reason_for_the_fetch(explained: Crawl) -> None:
    by = Counter(item["by"] for item in explained.items)
    assert by == {"planned": 1, "parse": 1}  # the page that is new, and the spider's own start
    planned = next(item for item in explained.items if item["by"] == "planned")
    assert planned["recrawl"] == {"plan": None, "url": planned["url"], "rank": 1, "expected_new_links": 2.5}
    assert next(item for item in explained.items if item["by"] == "parse")["recrawl"] is None


def test_unchanged_gone_moved_forbidden_and_failed_pages_are_each_recorded_once(
    explained: Crawl, without_method: Crawl, second: Crawl
) -> None:
    new = explained.visits[len(second.visits) + 1 :]  # one more was made without the method
    assert [status for _, status, _ in new] == [200, 304, 404, 301, 304, 0, 0]  # 304: where the redirect leads to, too
    notes = [note for _, status, note in new if status == 0]
    assert notes[0] == "forbidden by robots.txt"
    assert notes[1].startswith("connection refused")
    assert (explained.stats["recrawl/not_modified"], explained.stats["recrawl/gone"]) == (2, 1)
    assert explained.stats["recrawl/failed"] == 2
    assert explained.stats["recrawl/failed/connection refused"] == 1


def test_planned_pages_of_sites_that_the_spider_does_not_want_are_left_out(explained: Crawl) -> None:
    assert explained.stats["recrawl/offsite"] == 1
    assert not any("127.0.9.9" in url for url, _, _ in explained.visits)


def test_scrapy_logs_and_counts_what_the_spider_refuses_as_usual(explained: Crawl) -> None:
    assert explained.stats["httperror/response_ignored_status_count/304"] == 2
    assert explained.stats["httperror/response_ignored_status_count/404"] == 1
    assert "Error downloading" in explained.log


# -- off, or wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"RECRAWL_ENABLED": "0"}, "RECRAWL_ENABLED is off"),
        ({"RECRAWL_BUDGTE": "5"}, "No setting named 'RECRAWL_BUDGTE'. Did you mean 'RECRAWL_BUDGET'"),
    ],
)
def test_if_disabled_or_misconfigured_the_add_on_says_why_and_the_crawl_runs_without_it(
    web: LivingWeb, folder: Path, plain: Crawl, setting: dict[str, str], reason: str
) -> None:
    web.step = 0
    made = crawl(web, folder / "".join(setting), **setting)
    assert re.search(rf"Disabled recrawl\.crawl\.Addon: .*{reason}", made.log)
    assert by_url(made.items) == by_url(plain.items)
    assert not (made.folder / "history").exists()
    assert not any(name.startswith("recrawl/") for name in made.stats)


def test_a_callback_that_the_spider_does_not_have_costs_the_plan_but_not_the_crawl(without_method: Crawl) -> None:
    message = "RECRAWL_CALLBACK is 'paarse'; it must be the name of a method of the spider 'explained'"
    assert message in without_method.log
    assert [item["by"] for item in without_method.items] == ["parse"]


# -- beside other parts of Scrapy -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_crawl_spider_follows_its_rules_from_planned_pages_and_files_are_not_visits(
    web: LivingWeb, folder: Path, first: Crawl
) -> None:
    web.step = 20
    made = crawl(
        web, copied(first, folder / "ruled"), "ruled", RECRAWL_BUDGET=1, RECRAWL_CONDITIONAL=0, ROBOTSTXT_OBEY=0
    )
    new = made.visits[len(first.visits) :]
    assert made.stats["recrawl/planned"] == 1
    assert [item["by"] for item in made.items if item["by"] == "start"] == ["start", "start"]
    assert any(item["by"] == "rule" for item in made.items)
    assert "/feed.xml" in made.paths
    assert "/robots.txt" not in made.paths  # which is for the project to decide
    assert not any(url.endswith("/feed.xml") for url, _, _ in new)


@pytest.mark.slow
def test_a_stopped_crawl_with_a_jobdir_continues_and_fetches_no_planned_page_twice(
    web: LivingWeb, folder: Path, first: Crawl
) -> None:
    web.step = 20
    settings = {"RECRAWL_BUDGET": 8, "JOBDIR": "job", "RECRAWL_CALLBACK": "planned", "RECRAWL_CONDITIONAL": 0}
    stopped = crawl(web, copied(first, folder / "job"), "explained", **settings, CLOSESPIDER_PAGECOUNT=3)
    resumed = crawl(web, stopped.folder, "explained", **settings)
    planned = stopped.paths[1:] + resumed.paths[1:]  # without robots.txt
    assert "Unable to serialize" not in stopped.log
    assert 2 <= len(stopped.paths[1:]) < 8
    assert len({path for path in planned if path != "/"}) >= 7
    assert max(Counter(path for path in planned if path != "/").values()) == 1
    assert not (stopped.folder / "history" / "crawl.json").exists()


def test_pages_from_scrapys_cache_are_not_visits_and_planned_pages_do_not_come_from_it(
    explained: Crawl, without_method: Crawl
) -> None:
    assert without_method.paths == ["/robots.txt", "/"]
    assert explained.stats["httpcache/hit"] == 2  # robots.txt and the spider's own start
    assert "/" not in explained.paths
    assert len(explained.paths) == 5


@pytest.mark.slow
def test_a_single_page_of_scrapy_fetch_brings_no_plan_with_it(web: LivingWeb, folder: Path, first: Crawl) -> None:
    made = scrapy(web, copied(first, folder / "fetch"), ["fetch", web.seeds[0]])
    assert made.paths == ["/robots.txt", "/"]
