from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.test import get_crawler

from crawl.crawling import HTML, Sites, crawled, page, visits
from recrawl.crawl.session import Session
from recrawl.crawl.settings import CrawlOptions
from recrawl.crawl.validators import MAX_LENGTH, StoredValidators, _can_be_sent
from recrawl.history import History
from recrawl.synth.living.http import Fault, HttpRequest, HttpResponse
from recrawl.web.visit import Visit

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
URL = "https://e.org/a"
DATE = "Mon, 05 Jan 2026 00:00:00 GMT"


def sent(folder: Path, *visits: dict[str, Any], url: str = URL) -> dict[str, str]:
    """What is sent with a request, after these visits day by day."""
    history = History.create(folder / "h")
    history.add(
        Visit(**{"url": URL, "at": MONDAY + timedelta(days=day), "text": "same", "links": [], **fields})
        for day, fields in enumerate(visits)
    )
    return StoredValidators(history).headers(url)


def test_the_validators_of_the_last_copy_are_sent(tmp_path: Path) -> None:
    seen = [{"etag": '"1"'}, {"etag": '"2"', "last_modified": DATE, "text": "other"}]
    assert sent(tmp_path, *seen) == {"If-None-Match": '"2"', "If-Modified-Since": DATE}


def test_after_a_304_the_validators_of_the_confirmed_copy_are_sent(tmp_path: Path) -> None:
    assert sent(tmp_path, {"etag": '"1"'}, {"status": 304, "text": None, "links": None}) == {"If-None-Match": '"1"'}


@pytest.mark.parametrize("status", [0, 404, 410, 429, 500, 503])
def test_nothing_is_sent_after_a_failure(tmp_path: Path, status: int) -> None:
    assert sent(tmp_path, {"etag": '"1"'}, {"status": status, "text": None, "links": None}) == {}


def test_nothing_is_sent_for_a_page_that_was_never_visited(tmp_path: Path) -> None:
    assert sent(tmp_path, {"etag": '"1"'}, url="https://e.org/b") == {}
    assert StoredValidators(History.create(tmp_path / "empty")).headers(URL) == {}


@pytest.mark.parametrize("change", [{"text": "other"}, {"links": ["https://e.org/new"]}])
@pytest.mark.parametrize("validator", [{"etag": '"1"'}, {"last_modified": DATE}])
def test_a_host_that_sends_the_same_validator_with_other_content_is_unreliable(
    tmp_path: Path, validator: dict[str, str], change: dict[str, Any]
) -> None:
    honest = {"url": "https://e.org/honest", "etag": '"7"'}
    assert sent(tmp_path, honest, validator, validator | change, url="https://e.org/honest") == {}
    assert StoredValidators(History.open(tmp_path / "h")).unreliable == {"e.org"}


def test_a_304_between_two_copies_does_not_hide_a_wrong_validator(tmp_path: Path) -> None:
    unchanged = {"status": 304, "text": None, "links": None}
    assert sent(tmp_path, {"etag": '"1"'}, unchanged, {"etag": '"1"', "text": "other"}) == {}


@pytest.mark.parametrize(
    "after",
    [
        {"etag": '"2"', "text": "other"},  # it shows the change
        {"etag": '"1"'},  # nothing changed
        {"etag": '"1"', "last_modified": DATE},
    ],
)
def test_a_host_with_correct_validators_stays_reliable(tmp_path: Path, after: dict[str, str]) -> None:
    assert "If-None-Match" in sent(tmp_path, {"etag": '"1"'}, after)


def test_a_weak_tag_may_stay_while_little_changes(tmp_path: Path) -> None:
    assert sent(tmp_path, {"etag": 'W/"1"'}, {"etag": 'W/"1"', "text": "other"}) == {"If-None-Match": 'W/"1"'}


def test_other_hosts_are_not_blamed(tmp_path: Path) -> None:
    other = {"url": "https://f.org/", "etag": '"1"'}
    assert sent(tmp_path, other, {"etag": '"1"'}, {"etag": '"1"', "text": "new"}, url="https://f.org/") != {}


@pytest.mark.parametrize("etag", ["*", " * ", "a\r\nX-Evil: 1", "\x00", "", "x" * (MAX_LENGTH + 1)])
def test_a_tag_that_no_request_can_hold_is_not_sent(tmp_path: Path, etag: str) -> None:
    assert sent(tmp_path, {"etag": etag}) == {}


@given(st.text(max_size=50))
def test_whatever_is_sent_is_one_line(etag: str) -> None:
    assert not _can_be_sent(etag) or len(etag.splitlines()) <= 1


# -- in a crawl -------------------------------------------------------------------------------------------------------

ODD = b'"caf\xe9 \xc3\xbc"'.decode("latin-1")


def honest(asked: HttpRequest) -> HttpResponse:
    """A page that stays as it is."""
    if asked.headers.get("if-none-match") == '"stays"':
        return HttpResponse(304, headers={"ETag": '"stays"'})
    return page("stays", ETag='"stays"')


def odd(asked: HttpRequest) -> HttpResponse:
    return HttpResponse(304) if asked.headers.get("if-none-match") == ODD else page("odd", ETag=ODD)


class Liar:
    """A page that is another every time under one tag; now and then it says that nothing changed."""

    def __init__(self) -> None:
        self.n_asked = 0

    def __call__(self, asked: HttpRequest) -> HttpResponse:
        self.n_asked += 1
        if "if-none-match" in asked.headers and self.n_asked == 2:
            return HttpResponse(304)
        return page(f"lie {self.n_asked}", f"/new/{self.n_asked}", ETag='"lie"')


class Moves:
    """A page that exists at first and redirects later."""

    def __init__(self) -> None:
        self.n_asked = 0

    def __call__(self, asked: HttpRequest) -> HttpResponse:
        self.n_asked += 1
        return (
            page("moves", ETag='"moves"') if self.n_asked == 1 else HttpResponse(302, headers={"Location": "/target"})
        )


class Fails:
    """A page whose second answer breaks off."""

    def __init__(self) -> None:
        self.n_asked = 0

    def __call__(self, asked: HttpRequest) -> HttpResponse:
        self.n_asked += 1
        fault = Fault.SHORT if self.n_asked == 2 else Fault.NONE
        return HttpResponse(200, b"<p>a page of some length</p>", HTML | {"ETag": '"fails"'}, fault)


def test_conditional_requests_are_sent_to_reliable_hosts(tmp_path: Path) -> None:
    ours = {"/honest": honest, "/odd": odd, "/moves": Moves(), "/fails": Fails(), "/star": page("star", ETag="*")}
    with Sites(ours, {"/lies": Liar()}) as sites:
        plan = [*map(sites.url, ours), sites.url("/lies", 1), sites.url("/plain", 1)]
        found = crawled(tmp_path / "h", plan=plan, cycles=4, hours=[0, 24, 48, 72], RECRAWL_FULL_FETCHES=0.0)
    first, second, third, fourth = (cycle["summary"] for cycle in found["cycles"])
    assert (first["conditional"], first["not_modified"], first["fetched"]) == (0, 0, 7)
    # All but the page with the tag * and the one without any; one of them is sent on and one is cut short.
    assert (second["conditional"], second["not_modified"], second["redirects"]) == (5, 3, 1)
    assert second["failures"] == {"cut short": 1}
    # What was cut short and what was sent on is fetched in full; the liar is asked for the last time whether it changed.
    assert (third["conditional"], third["not_modified"], third["new_links"]) == (3, 2, 1)
    assert fourth["new_links"] == 1

    def tags(path: str) -> list[str | None]:
        return [got.headers.get("if-none-match") for got in sites.log if got.path == path]

    assert tags("/honest") == [None, *['"stays"'] * 3]
    assert tags("/odd") == [None, ODD, ODD, ODD]
    assert tags("/fails") == [None, '"fails"', None, '"fails"']
    assert tags("/moves") == [None, '"moves"', None, None]
    assert tags("/target") == tags("/star")[1:] == [None] * 3
    assert tags("/lies") == [None, '"lie"', '"lie"', None]
    assert visits(tmp_path / "h")[sites.url("/odd")] == [(200, None), *[(304, None)] * 3]


def test_some_pages_are_fetched_in_full_to_detect_wrong_validators(tmp_path: Path) -> None:
    assert sent(tmp_path, {"etag": '"1"'})
    for share in (0.0, 0.3, 1.0):
        session = Session(
            CrawlOptions(history=str(tmp_path / "h"), full_fetches=share), MemoryStatsCollector(get_crawler())
        )
        session.validators = StoredValidators(session.history)
        in_full = sum(not session.validators_of(URL) for _ in range(1_000)) / 1_000
        assert in_full == pytest.approx(share, abs=0.05 if 0 < share < 1 else 0)
        session.close("finished")
