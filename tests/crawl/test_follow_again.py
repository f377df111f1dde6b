"""A crawl that is killed while it follows new links is finished by the next one: real servers and real processes."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from crawl.crawling import NO_ANSWER, Sites, crawled, outcome, page, start, visits
from patience import patience, wait_for
from recrawl.history import History
from recrawl.history.watching import newest, unwatched
from recrawl.synth.living.http import HttpResponse
from recrawl.web.urls import page_id
from recrawl.web.visit import Visit

TAGS = [f"/tag/{i}" for i in range(12)]
FOLLOW = {"RECRAWL_FOLLOW": "new", "RECRAWL_FOLLOW_BUDGET": "4", "RECRAWL_FLUSH_SECONDS": 0.1}
NEW = ["/article", "/listing", "/moved", "/slow"]


@pytest.fixture
def sites() -> Iterator[Sites]:
    """A front page with five new links: an article, a listing that is a hub, one that has moved, and two more."""
    here: dict[str, Any] = {
        "/": page("front page", "/old", *NEW, "/too-many"),
        "/article": page("an article", "/"),
        "/listing": page("a listing", *TAGS),
        "/moved": HttpResponse(301, b"", {"Location": "/new-place"}),
        "/new-place": page("moved here", "/"),
    }
    with Sites(here) as running:
        yield running


@pytest.fixture
def history(sites: Sites, tmp_path: Path) -> Path:
    begun = History.create(tmp_path / "h")
    for days in (3, 2):
        at = datetime.now(UTC) - timedelta(days=days)
        begun.add([Visit(url=sites.url(path), at=at, links=[sites.url("/old")]) for path in ("/", "/old")])
    return tmp_path / "h"


@pytest.fixture(params=["a plan of its own", pytest.param("a plan from a file", marks=pytest.mark.slow)])
def given(request: pytest.FixtureRequest, sites: Sites, tmp_path: Path) -> dict[str, Any]:
    """What is crawled: the front page, and the older page."""
    if request.param == "a plan of its own":
        return FOLLOW | {"RECRAWL_BUDGET": "100%"}
    (tmp_path / "mine.plan").write_text(f"{sites.url('/')}\n{sites.url('/old')}\n")
    return FOLLOW | {"RECRAWL_PLAN": str(tmp_path / "mine.plan")}


def died(process: Any) -> None:
    process.communicate(timeout=patience(90))
    assert process.returncode == -signal.SIGKILL


def asked(sites: Sites, since: int = 0) -> Counter[str]:
    return Counter(got.path for got in sites.log[since:] if got.path != "/robots.txt")


def watched(history: Path, sites: Sites) -> dict[str, bool]:
    """Path → whether it is a candidate, of all pages that were decided on."""
    opened = History.open(history)
    rows = newest(opened).to_pylist()
    names = {page_id(sites.url(path)): path for path in [*NEW, "/new-place", "/too-many", "/listing"]}
    return {names[row["page"]]: row["is_watched"] for row in rows}


def test_killed_between_the_planned_pages_and_the_new_links(sites: Sites, history: Path, given: dict[str, Any]) -> None:
    given |= {"RECRAWL_FOLLOW_BUDGET": "5"}
    died(start(history, dies_at="leave_out", **given))
    assert asked(sites) == {"/": 1, "/old": 1}
    assert set(visits(history)) == {sites.url("/"), sites.url("/old")}  # all that was fetched is safe by then
    before = len(sites.log)
    summary = crawled(history, **given)["summary"]
    assert asked(sites, before) == dict.fromkeys([*NEW, "/new-place", "/too-many"], 1)
    assert (summary["planned"], summary["followed"], summary["adopted_pages"]) == (0, 5, [sites.url("/listing")])
    assert any("all of its pages were fetched, and 5 new links were not" in note for note in summary["notes"])
    before = len(sites.log)
    assert crawled(history, **given)["summary"]["planned"] >= 2  # that one is finished: this one plans again
    assert asked(sites, before)["/"] == 1


def test_killed_while_new_links_are_fetched(sites: Sites, history: Path, given: dict[str, Any]) -> None:
    sites.answers[0]["/slow"] = NO_ANSWER
    process = start(history, fetch={"timeout": 3600.0}, **given)
    done = [sites.url(path) for path in ("/article", "/listing", "/moved", "/new-place")]
    wait_for(lambda: set(done) <= set(visits(history)))
    process.kill()
    died(process)
    sites.answers[0]["/slow"] = page("slow, but here")
    before = len(sites.log)
    found = crawled(history, **given)
    assert asked(sites, before) == {"/slow": 1}
    assert found["summary"]["followed"] == 1
    assert found["summary"]["adopted_pages"] == [sites.url("/listing")]  # fetched before the crawl was killed
    expected = dict.fromkeys([*NEW, "/new-place"], False) | {"/listing": True}
    assert watched(history, sites) == expected
    assert all(len(seen) == 1 for url, seen in visits(history).items() if url in done)


def test_killed_when_all_is_fetched_hubs_are_adopted_and_a_new_plan_is_made(sites: Sites, history: Path) -> None:
    given = FOLLOW | {"RECRAWL_BUDGET": "100%"}
    died(start(history, dies_at="finished", **given))
    assert asked(sites) == dict.fromkeys(["/", "/old", *NEW, "/new-place"], 1)
    assert not any(watched(history, sites).values())
    before = len(sites.log)
    crawled(history, **given)
    assert asked(sites, before).keys() >= {"/", "/old", "/listing"}  # of the new plan, with the hub
    assert asked(sites, before).keys().isdisjoint({"/article", "/moved", "/new-place", "/slow"})
    assert watched(history, sites)["/listing"]
    assert page_id(sites.url("/new-place")) in unwatched(History.open(history))


@pytest.mark.slow
def test_who_does_not_follow_or_resume_makes_a_new_plan(sites: Sites, history: Path) -> None:
    died(start(history, dies_at="leave_out", **FOLLOW, RECRAWL_BUDGET="100%"))
    before = len(sites.log)
    assert crawled(history, RECRAWL_BUDGET="100%")["summary"]["planned"] == 2
    assert asked(sites, before) == {"/": 1, "/old": 1}


@pytest.mark.slow
def test_new_links_that_were_not_to_be_followed_are_not_followed_later(sites: Sites, history: Path) -> None:
    died(start(history, dies_at="finished", RECRAWL_BUDGET="100%", RECRAWL_FLUSH_SECONDS=0.1))
    before = len(sites.log)
    assert outcome(start(history, **FOLLOW, RECRAWL_BUDGET="100%"))["summary"]["followed"] == 0
    assert asked(sites, before) == {"/": 1, "/old": 1}
