"""New links are followed in the same crawl: real servers on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import recrawl as rc
from crawl.crawling import AGENT, NO_ANSWER, Sites, crawled, page, start, visits
from patience import patience, wait_for
from recrawl.history import History
from recrawl.history.watching import newest, unwatched
from recrawl.models.relevance import train
from recrawl.synth.living.http import HttpResponse
from recrawl.web.urls import page_id
from recrawl.web.visit import Visit

ARTICLES = [f"/tag/{i}" for i in range(12)]


def moved(to: str) -> HttpResponse:
    return HttpResponse(301, b"", {"Location": to})


@pytest.fixture
def sites() -> Iterator[Sites]:
    """A front page with a new article, a new listing, and links that are forbidden, elsewhere, or lead away."""
    here: dict[str, Any] = {
        "/robots.txt": HttpResponse(200, b"User-agent: *\nDisallow: /private/"),
        "/article": page("an article about floods", "/", "/old", "/comments"),
        "/listing": page("floods", *ARTICLES),
        "/moved": moved("/new-place"),
        "/broken": HttpResponse(500),
    }
    with Sites(here, {}) as running:
        elsewhere = running.url("/there", site=1)
        links = ("/old", "/article", "/listing", "/private/1", "/moved", "/away", "/back", "/broken", elsewhere)
        running.answers[0]["/"] = page("front page", *links)
        running.answers[0]["/away"] = moved(elsewhere)
        running.answers[0]["/back"] = moved("/old")
        yield running


@pytest.fixture
def history(sites: Sites, tmp_path: Path) -> Path:
    """The front page and an older page, visited before."""
    begun = History.create(tmp_path / "h")
    for days in (3, 2):
        at = datetime.now(UTC) - timedelta(days=days)
        begun.add([Visit(url=sites.url(path), at=at, links=[sites.url("/old")]) for path in ("/", "/old")])
    return tmp_path / "h"


def follow(history: Path, sites: Sites, **settings: Any) -> dict[str, Any]:
    given = {"RECRAWL_FOLLOW": "new", "RECRAWL_FOLLOW_BUDGET": "50"} | settings
    return crawled(history, plan=[sites.url("/")], **given)


def test_new_links_are_fetched_and_known_or_forbidden_ones_and_other_sites_are_not(sites: Sites, history: Path) -> None:
    summary = follow(history, sites)["summary"]
    asked = set(sites.asked())
    assert asked >= {"/", "/article", "/listing", "/moved", "/new-place", "/away", "/back", "/broken"}
    assert asked.isdisjoint({"/old", "/private/1", "/comments", *ARTICLES})  # known, forbidden, one link further
    assert sites.asked(site=1) == []
    assert (summary["planned"], summary["followed"], summary["adopted"]) == (1, 7, 1)
    assert summary["ended"] == "finished"
    recorded = visits(history)
    assert [status for status, _ in recorded[sites.url("/article")]] == [200]
    assert [status for status, _ in recorded[sites.url("/moved")]] == [301]
    assert sites.url("/there", site=1) not in recorded


def test_followed_pages_are_in_no_plan_unless_they_are_hubs(sites: Sites, history: Path) -> None:
    follow(history, sites)
    opened = History.open(history)
    decided = {row["page"]: row for row in newest(opened).to_pylist()}
    assert decided[page_id(sites.url("/listing"))]["is_watched"]
    assert decided[page_id(sites.url("/listing"))]["new_links"] == len(ARTICLES)
    left_out = set(opened.urls_of(unwatched(opened)).to_pylist())
    paths = ("/article", "/moved", "/new-place", "/away", "/back", "/broken", "/private/1")
    assert left_out == {sites.url(path) for path in paths}
    plan = rc.plan(opened, budget=20)
    assert set(plan.url.to_pylist()) == {sites.url(path) for path in ("/", "/old", "/listing")}
    assert sites.url("/article") in rc.plan(opened, budget=20, unwatched=True).url.to_pylist()


def test_the_budget_the_scope_and_excluded_patterns_hold(sites: Sites, history: Path) -> None:
    scope = ("host", sites.url("/", site=1).split("/")[2].split(":")[0])
    excluded = [sites.url("/a"), sites.url("/b"), sites.url("/m"), sites.url("/p")]
    summary = follow(history, sites, RECRAWL_FOLLOW_SCOPE=scope, RECRAWL_EXCLUDE=excluded)["summary"]
    assert summary["followed"] == 2
    assert [path for path in sites.asked() if path != "/robots.txt"] == ["/", "/listing"]
    assert "/there" in sites.asked(site=1)


def test_a_share_of_the_planned_pages_is_followed_by_default(sites: Sites, history: Path) -> None:
    summary = follow(history, sites, RECRAWL_FOLLOW_BUDGET="100%")["summary"]
    assert summary["followed"] == 1
    assert follow(history, sites, RECRAWL_FOLLOW="none", RECRAWL_FOLLOW_BUDGET="100%")["summary"]["followed"] == 0


def test_nothing_is_followed_twice(sites: Sites, history: Path) -> None:
    follow(history, sites)
    n_before = len(sites.log)
    assert follow(history, sites)["summary"]["followed"] == 0
    assert [got.path for got in sites.log[n_before:] if got.path != "/robots.txt"] == ["/"]


def test_pages_are_classified_and_only_relevant_hubs_are_adopted(sites: Sites, history: Path, tmp_path: Path) -> None:
    sites.answers[0]["/gossip"] = page("celebrities", *(f"/stars/{i}" for i in range(20)))
    sites.answers[0]["/"] = page("front page", "/article", "/listing", "/gossip")
    texts = ["floods and storms", "floods in the valley", "celebrities and stars", "celebrities wedding"]
    train(texts, [True, True, False, False], folds=2).save(tmp_path / "topic.json")
    summary = follow(history, sites, RECRAWL_CLASSIFIER=str(tmp_path / "topic.json"))["summary"]
    assert summary["adopted_pages"] == [sites.url("/listing")]
    timeline = History.open(history).timeline
    names = History.open(history).urls_of(timeline.page).to_pylist()
    relevance = dict(zip(names, timeline.rows["relevance"].to_pylist(), strict=True))
    assert relevance[sites.url("/listing")] > 0.5 > relevance[sites.url("/gossip")]
    assert summary["relevant"] >= 2


def test_a_crawl_that_is_killed_leaves_no_article_among_the_candidates(sites: Sites, history: Path) -> None:
    sites.answers[0]["/"] = page("front page", "/article", "/stuck")
    sites.answers[0]["/stuck"] = NO_ANSWER
    settings = {"RECRAWL_FOLLOW": "new", "RECRAWL_FOLLOW_BUDGET": "9", "RECRAWL_FLUSH_SECONDS": 0.1}
    process = start(history, plan=[sites.url("/")], fetch={"timeout": 3600.0}, **settings)
    wait_for(lambda: sites.url("/article") in visits(history))
    process.kill()
    process.communicate()
    opened = History.open(history)
    assert set(opened.urls_of(unwatched(opened)).to_pylist()) == {sites.url("/article"), sites.url("/stuck")}
    assert set(rc.plan(opened, budget=20).url.to_pylist()) == {sites.url("/"), sites.url("/old")}


def test_the_command_says_what_was_followed(sites: Sites, history: Path, tmp_path: Path) -> None:
    (tmp_path / "plan.txt").write_text(sites.url("/"))
    command = [sys.executable, "-m", "recrawl.cli", "crawl", "--allow-loopback", "--user-agent", AGENT, "--delay", "0"]
    command += ["--history", str(history), "--no-hints", "--plan", str(tmp_path / "plan.txt")]
    command += ["--follow", "new", "--follow-budget", "3", "--adopt", "5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=patience(120), check=False)
    assert done.returncode == 0, done.stderr
    assert "3 new links followed: 1 page is watched from now on" in done.stdout
    info = [sys.executable, "-m", "recrawl.cli", "info", "--history", str(history), "--json"]
    assert (
        json.loads(subprocess.run(info, capture_output=True, text=True, check=True).stdout)["unwatched"] == 1
    )  # one is forbidden
