"""First crawls keep their limits through redirects, and the delays of hosts hold for redirects, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawl.crawling import HttpRequest, HttpResponse, Sites, crawled, page, start, visits
from patience import patience

pytestmark = pytest.mark.slow  # each crawl is a process

N = 6


def robots(text: str) -> HttpResponse:
    return HttpResponse(200, text.encode(), {"Content-Type": "text/plain"})


def wall(asked: HttpRequest) -> HttpResponse:
    """Redirects to itself until a cookie is sent back."""
    if "cookie" in {name.lower() for name in asked.headers}:
        return page("behind the wall")
    return HttpResponse(302, b"", {"Location": "/wall", "Set-Cookie": "seen=1"})


@pytest.fixture(scope="module")
def sites() -> Iterator[Sites]:
    """The first site sends some of its readers to the second, which wants to be asked slowly, and forbids a part of itself."""
    with Sites({}, {"/robots.txt": robots("User-agent: *\nCrawl-delay: 0.5\nDisallow: /private/")}) as running:
        away = {f"/away{i}": HttpResponse(301, b"", {"Location": running.url(f"/{i}", 1)}) for i in range(N)}
        moved = {f"/old{i}": HttpResponse(301, b"", {"Location": f"/new{i}"}) for i in range(3)}
        home = page("home", *away, *moved, *(f"/new{i}" for i in range(3)), "/loop", "/wall", "/secret/a")
        loop = HttpResponse(302, b"", {"Location": "/loop"})
        rules = robots("User-agent: *\nDisallow: /secret/")
        running.answers[0].update({"/": home, "/robots.txt": rules, "/loop": loop, "/wall": wall, **away, **moved})
        yield running


@pytest.fixture(scope="module")
def first(sites: Sites, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    history = tmp_path_factory.mktemp("first") / "h"
    sites.log.clear()
    found = crawled(history, seeds=[sites.url("/")], limits={"pages": 50, "depth": 2})
    return found | {"visits": visits(history), "log": [got.path for got in sites.log], "history": history}


def test_the_target_of_a_redirect_waits_for_its_turn_like_any_page(sites: Sites, first: dict[str, Any]) -> None:
    for i in range(3):
        assert first["log"].count(f"/new{i}") == 1
        assert first["visits"][sites.url(f"/old{i}")] == [(301, None)]
        assert [status for status, _ in first["visits"][sites.url(f"/new{i}")]] == [200]


def test_cookies_open_walls_and_loops_end(sites: Sites, first: dict[str, Any]) -> None:
    assert first["log"].count("/wall") == first["log"].count("/loop") == 2
    assert [status for status, _ in first["visits"][sites.url("/wall")]] == [200]
    assert first["visits"][sites.url("/loop")] == [(0, "too many redirects")]


def test_what_robots_txt_forbids_was_not_visited(sites: Sites, first: dict[str, Any]) -> None:
    assert sites.url("/secret/a") not in first["visits"]
    assert "/secret/a" not in first["log"]


def test_with_seeds_no_plan_is_made_even_if_there_is_a_history(sites: Sites, first: dict[str, Any]) -> None:
    sites.log.clear()
    found = crawled(first["history"], seeds=[sites.url("/")], limits={"pages": 3})
    assert found["summary"]["planned"] == 0
    assert found["summary"]["visits"] <= 3
    assert found["stats"].get("spider_exceptions/TypeError") is None


def test_a_redirect_to_another_host_waits_for_the_delay_of_that_host(sites: Sites, tmp_path: Path) -> None:
    sites.log.clear()
    crawled(tmp_path / "h", plan=[sites.url(f"/away{i}") for i in range(N)], fetch={"concurrency": 20})
    times = [got.at for got in sites.log if got.host == sites.url("/", 1).split("/")[2].split(":")[0]]
    assert len(times) == N + 1  # and robots.txt
    assert times[-1] - times[1] > 0.5 * (N - 1) - 0.4


def test_the_summary_says_why_a_plan_could_not_be_made(sites: Sites, first: dict[str, Any]) -> None:
    found = crawled(first["history"], RECRAWL_MODEL=__file__)
    assert "is not a recrawl model" in found["summary"]["plan_failed"]
    assert found["summary"]["visits"] == 0


def test_a_policy_that_knows_the_future_is_refused_before_anything_is_fetched(
    sites: Sites, first: dict[str, Any]
) -> None:
    sites.log.clear()
    process = start(first["history"], RECRAWL_POLICY="oracle")
    assert "oracle knows the future: it can only be replayed" in process.communicate(timeout=patience(60))[1]
    assert not sites.log


@pytest.mark.slow
def test_a_page_that_robots_txt_forbids_is_planned_once_per_week(sites: Sites, tmp_path: Path) -> None:
    history = tmp_path / "h"
    pages = [sites.url("/secret/b"), *(sites.url(f"/p{i}") for i in range(4))]
    crawled(history, plan=pages)
    assert visits(history)[pages[0]] == [(0, "forbidden by robots.txt")]
    found = crawled(history, RECRAWL_BUDGET="100%", RECRAWL_POLICY="round-robin", cycles=2, hours=[24, 24 * 9])
    assert [cycle["summary"]["planned"] for cycle in found["cycles"]] == [4, 5]
