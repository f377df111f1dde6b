from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawl.crawling import HANG_UP, HTML, Sites, crawled, page, visits
from recrawl.crawl.politeness import MAX_FAILURES, retry_after
from recrawl.synth.living_http import Answer, Asked

NOW = datetime(2026, 1, 5, tzinfo=UTC)
DELAY = 0.2  # seconds
LAG = 0.3  # seconds that a request may be on its way longer than another, on a machine that has much to do

# -- what Retry-After says --------------------------------------------------------------------------------------------


@given(st.integers(0, 999_999_999))
def test_a_number_is_so_many_seconds(seconds: int) -> None:
    assert retry_after(f" {seconds} ", NOW) == seconds


@given(st.integers(-(10**8), 10**8), st.integers(-12, 12))
def test_a_date_is_the_time_until_then_and_never_less_than_none(seconds: int, zone: int) -> None:
    then = (NOW + timedelta(seconds=seconds)).astimezone(timezone(timedelta(hours=zone)))
    assert retry_after(format_datetime(then), NOW) == max(seconds, 0)


@pytest.mark.parametrize("text", ["", "soon", "-5", "1.5", "٣", "Mon, 99 Jan 2026 00:00:00 GMT", "1e9", "\x00"])
def test_what_cannot_be_read_is_the_usual_wait(text: str) -> None:
    assert retry_after(text, NOW, 7.0) == 7.0


def test_a_number_beyond_all_bounds_is_still_a_number() -> None:
    assert retry_after("9" * 400, NOW) > 10**8


# -- in a crawl -------------------------------------------------------------------------------------------------------


class Overloaded:
    """Says twice that it is asked too much, and then answers."""

    def __init__(self, status: int, wait: str) -> None:
        self.answer, self.n_asked = Answer(status, headers={"Retry-After": wait}), 0

    def __call__(self, asked: Asked) -> Answer:
        self.n_asked += 1
        return self.answer if self.n_asked == 2 else page(asked.path)


N_PAGES = 10
NOT_KEPT = Answer(404, headers={"Connection": "close"})
LARGE = Answer(200, b"x" * 200_000, HTML)
too_many, down, closed = Overloaded(429, "1"), Overloaded(503, "1"), Answer(429, headers={"Retry-After": "3600"})
SITES: dict[str, dict[str, Any]] = {
    "plain": {},
    "throttles": {f"/{number}": too_many for number in range(N_PAGES)},
    "is down": {f"/{number}": down for number in range(N_PAGES)},
    "wants to be left alone": {f"/{number}": closed for number in range(N_PAGES)},
    # Twisted asks again at once where a connection that was kept open breaks; so this one is not.
    "hangs up": {f"/{number}": HANG_UP for number in range(N_PAGES)} | {"/robots.txt": NOT_KEPT},
    "sends too much": {f"/{number}": LARGE for number in range(N_PAGES)},
    "has a broken page": {"/0": Answer(500)},
}


@dataclass
class Done:
    sites: Sites
    told: dict[str, Any]
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
        manners = {"delay": DELAY, "per_host_at_once": 4, "at_once": 100, "max_bytes": 100_000}
        found = crawled(history, plan=plan, manners=manners)
    return Done(sites, found["told"], found["stats"], visits(history))


@pytest.mark.parametrize("name", SITES)
def test_no_host_gets_more_than_its_rate(done: Done, name: str) -> None:
    _, gaps = done.of(name)
    for end in range(1, len(gaps) + 1):
        for start in range(end):
            assert sum(gaps[start:end]) > (end - start) * DELAY - LAG


def test_a_host_that_asks_for_nothing_is_not_kept_waiting(done: Done) -> None:
    asked, gaps = done.of("plain")
    assert len(asked) == N_PAGES + 1
    assert max(gaps) < DELAY + 0.7


@pytest.mark.parametrize("name", ["throttles", "is down"])
def test_a_host_that_asks_for_a_while_gets_it_and_its_page_is_fetched_then(done: Done, name: str) -> None:
    asked, gaps = done.of(name)
    assert gaps[2] > 1 - LAG  # robots.txt, a page, the refusal; and then the pause
    assert len(asked) == N_PAGES + 2
    assert done.seen(name) == [(200, None)] * N_PAGES


def test_a_host_that_asks_for_a_long_while_is_left_alone(done: Done) -> None:
    asked, _ = done.of("wants to be left alone")
    assert len(asked) == 2
    assert set(done.seen("wants to be left alone")) == {(0, "host asked to wait: 3600 s")}


def test_a_host_that_never_answers_is_left_alone(done: Done) -> None:
    asked, _ = done.of("hangs up")
    assert len(asked) == 1 + MAX_FAILURES
    notes = [(note or "").partition(":")[0] for _, note in done.seen("hangs up")]
    assert set(notes) <= {"connection broken", "host does not answer"}  # those tried twice before, and the rest
    assert notes.count("host does not answer") >= N_PAGES - MAX_FAILURES // 2


def test_a_host_that_sends_too_much_has_answered(done: Done) -> None:
    asked, _ = done.of("sends too much")
    assert len(asked) == N_PAGES + 1
    assert {(note or "").partition(":")[0] for _, note in done.seen("sends too much")} == {"too large"}


def test_all_is_counted(done: Done) -> None:
    assert done.told["throttled"] == 3
    assert done.stats["recrawl/hosts_left_alone"] == 2
    assert done.told["visits"] == done.told["written"] == N_PAGES * len(SITES)
    assert done.told["fetched"] == N_PAGES * 4 - 1
    assert done.told["failures"]["status 500"] == 1
    assert done.told["failures"]["host asked to wait"] == done.told["failures"]["too large"] == N_PAGES
