from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from crawl.crawling import HANG_UP, HTML, Sites, crawled, page, visits
from patience import patience, slowness
from recrawl.crawl.politeness import MAX_FAILURES
from recrawl.synth.living.http import HttpRequest, HttpResponse

NOW = datetime(2026, 1, 5, tzinfo=UTC)
DELAY = 0.2  # seconds
LAG = 0.3 * slowness()  # seconds that a request may be on its way longer than another, on a machine that has much to do


class Overloaded:
    """Refuses the second request, and responds to all others."""

    def __init__(self, status: int, wait: str) -> None:
        self.answer, self.n_asked = HttpResponse(status, headers={"Retry-After": wait}), 0

    def __call__(self, asked: HttpRequest) -> HttpResponse:
        self.n_asked += 1
        return self.answer if self.n_asked == 2 else page(asked.path)


N_PAGES = 10
NOT_KEPT = HttpResponse(404, headers={"Connection": "close"})
LARGE = HttpResponse(200, b"x" * 200_000, HTML)
too_many, down, closed = Overloaded(429, "1"), Overloaded(503, "1"), HttpResponse(429, headers={"Retry-After": "3600"})
SITES: dict[str, dict[str, Any]] = {
    "plain": {},
    "throttles": {f"/{number}": too_many for number in range(N_PAGES)},
    "is down": {f"/{number}": down for number in range(N_PAGES)},
    "wants to be left alone": {f"/{number}": closed for number in range(N_PAGES)},
    # Twisted asks again at once where a connection that was kept open breaks; so this one is not.
    "hangs up": {f"/{number}": HANG_UP for number in range(N_PAGES)} | {"/robots.txt": NOT_KEPT},
    "sends too much": {f"/{number}": LARGE for number in range(N_PAGES)},
    "has a broken page": {"/0": HttpResponse(500)},
}


@dataclass
class Done:
    sites: Sites
    summary: dict[str, Any]
    stats: dict[str, Any]
    visits: dict[str, list[tuple[int, str | None]]]

    def of(self, name: str) -> tuple[list[str], list[float]]:
        """What a site was asked for, and the seconds between."""
        site = list(SITES).index(name)
        return self.sites.asked(site), self.sites.gaps(site)

    def seen(self, name: str) -> list[tuple[int, str | None]]:
        """The visits of a site's pages, which have one each."""
        site = list(SITES).index(name)
        found = [self.visits[self.sites.url(f"/{number}", site)] for number in range(N_PAGES)]
        assert [len(each) for each in found] == [1] * N_PAGES
        return [each[0] for each in found]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    history = tmp_path_factory.mktemp("politeness") / "h"
    with Sites(*SITES.values()) as sites:
        plan = [sites.url(f"/{number}", site) for number in range(N_PAGES) for site in range(len(SITES))]
        fetch = {"delay": DELAY, "host_concurrency": 4, "concurrency": 100, "max_bytes": 100_000}
        found = crawled(history, plan=plan, fetch=fetch)
    return Done(sites, found["summary"], found["stats"], visits(history))


@pytest.mark.parametrize("name", SITES)
def test_no_host_gets_more_than_its_rate(done: Done, name: str) -> None:
    _, gaps = done.of(name)
    for end in range(1, len(gaps) + 1):
        for start in range(end):
            assert sum(gaps[start:end]) > (end - start) * DELAY - LAG


def test_a_host_that_asks_for_no_wait_gets_none(done: Done) -> None:
    asked, gaps = done.of("plain")
    assert len(asked) == N_PAGES + 1
    assert max(gaps) < DELAY + patience(0.2)


@pytest.mark.parametrize("name", ["throttles", "is down"])
def test_a_host_that_asks_for_a_short_wait_gets_it_and_its_page_is_fetched_later(done: Done, name: str) -> None:
    asked, gaps = done.of(name)
    assert gaps[2] > 1 - LAG  # robots.txt, a page, the refusal; and then the pause
    assert len(asked) == N_PAGES + 2
    assert done.seen(name) == [(200, None)] * N_PAGES


def test_a_host_that_asks_for_a_long_wait_gets_no_more_requests(done: Done) -> None:
    asked, _ = done.of("wants to be left alone")
    assert len(asked) == 2
    assert set(done.seen("wants to be left alone")) == {(0, "host asked to wait: 3600 s")}


def test_a_host_that_never_answers_gets_no_more_requests(done: Done) -> None:
    asked, _ = done.of("hangs up")
    assert len(asked) == 1 + MAX_FAILURES
    notes = [(note or "").partition(":")[0] for _, note in done.seen("hangs up")]
    assert set(notes) <= {"connection broken", "host does not answer"}  # those tried twice before, and the rest
    assert notes.count("host does not answer") >= N_PAGES - MAX_FAILURES // 2


def test_a_host_that_sends_too_much_counts_as_answering(done: Done) -> None:
    asked, _ = done.of("sends too much")
    assert len(asked) == N_PAGES + 1
    assert {(note or "").partition(":")[0] for _, note in done.seen("sends too much")} == {"too large"}


def test_all_is_counted(done: Done) -> None:
    assert done.summary["throttled"] == 3
    assert done.stats["recrawl/hosts_left_alone"] == 2
    assert done.summary["visits"] == done.summary["written"] == N_PAGES * len(SITES)
    assert done.summary["fetched"] == N_PAGES * 4 - 1
    assert done.summary["failures"]["status 500"] == 1
    assert done.summary["failures"]["host asked to wait"] == done.summary["failures"]["too large"] == N_PAGES
