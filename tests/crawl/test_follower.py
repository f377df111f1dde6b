"""Which new links are followed, and which pages are adopted: the rules, without a network."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.crawl.follow_options import FollowOptions
from recrawl.crawl.follower import Follower, FollowLimits, Known
from recrawl.crawl.following import follower_of
from recrawl.crawl.planned import planned
from recrawl.crawl.scope import Scope
from recrawl.crawl.settings import CrawlOptions
from recrawl.errors import BadOption
from recrawl.history import History
from recrawl.web.urls import page_id
from recrawl.web.visit import Visit

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)


def follower(
    pages: int = 100, adopt: int = 2, known: Iterable[str] = (), scope: str = "site", **limits: object
) -> Follower:
    ids = np.array(sorted(map(page_id, known)), np.int64)
    return Follower(Known(ids, ids[:0]), Scope((scope,)), FollowLimits(pages, **limits), adopt)  # type: ignore[arg-type]


def test_only_links_that_were_never_seen_are_followed_each_once() -> None:
    it = follower(known=["https://e.org/old"])
    it.found("https://e.org/", ["https://e.org/old", "https://e.org/new", "https://e.org/new"])
    it.found("https://e.org/2", ["https://e.org/new"])
    assert it.take() == ["https://e.org/new"]
    it.found("https://e.org/3", ["https://e.org/new"])
    assert it.take() == []


@pytest.mark.parametrize(
    ("scope", "followed"),
    [
        ("host", ["https://a.e.org/1"]),
        ("site", ["https://a.e.org/1", "https://b.e.org/1"]),
        ("anywhere", ["https://a.e.org/1", "https://b.e.org/1", "https://x.net/1"]),
        ("x.net", ["https://x.net/1"]),
    ],
)
def test_a_scope_says_how_far_links_are_followed(scope: str, followed: list[str]) -> None:
    it = follower(scope=scope)
    it.found("https://a.e.org/", ["https://a.e.org/1", "https://b.e.org/1", "https://x.net/1"])
    assert sorted(it.take()) == followed


def test_a_small_budget_is_spread_over_hosts_and_per_host_and_exclude_hold() -> None:
    links = [f"https://{host}.e.org/{i}" for host in "ab" for i in range(5)]
    it = follower(pages=4)
    it.found("https://e.org/", links)
    assert it.take() == [f"https://{host}.e.org/{i}" for i in (0, 1) for host in "ab"]
    it = follower(per_host=1)
    it.found("https://e.org/", links)
    assert it.take() == ["https://a.e.org/0", "https://b.e.org/0"]
    it = follower(exclude=("https://a.e.org/", "*3"))
    it.found("https://e.org/", links)
    assert it.take() == [f"https://b.e.org/{i}" for i in (0, 1, 2, 4)]


def test_links_on_relevant_pages_come_first() -> None:
    it = follower(pages=2)
    it.found("https://e.org/sports", ["https://e.org/goal", "https://e.org/both"], 0.1)
    it.found("https://e.org/climate", ["https://e.org/flood", "https://e.org/both"], 0.9)
    assert it.take() == ["https://e.org/flood", "https://e.org/both"]  # 0.9, and 0.5 on average


def test_a_hub_brings_new_links_itself_and_is_relevant_where_that_is_judged() -> None:
    it = follower(adopt=2, known=["https://e.org/menu"])
    it.found("https://e.org/", ["https://e.org/hub", "https://e.org/article", "https://e.org/spam", "https://e.org/1"])
    it.fetched("https://e.org/hub", ["https://e.org/2", "https://e.org/3"], 0.8)
    it.fetched(
        "https://e.org/article", ["https://e.org/menu", "https://e.org/1", "https://share.net/a", "https://e.org/4"]
    )
    it.fetched("https://e.org/spam", [f"https://e.org/s{i}" for i in range(9)], 0.2)
    judged = {page.url.rpartition("/")[2]: (page.new_links, page.is_hub) for page in it.judged()}
    assert judged == {"hub": (2, True), "article": (1, False), "spam": (9, False)}


def test_links_that_pages_share_make_one_of_them_a_hub() -> None:
    it = follower(adopt=3)
    menu = [f"https://e.org/menu{i}" for i in range(5)]
    for page in "abc":
        it.fetched(f"https://e.org/{page}", menu)
    assert [page.is_hub for page in it.judged()] == [True, False, False]


@given(st.lists(st.frozensets(st.integers(0, 12)), max_size=8), st.integers(1, 4))
def test_hubs_are_those_of_a_plain_greedy_cover(pages: list[frozenset[int]], adopt: int) -> None:
    it = follower(adopt=adopt)
    for number, links in enumerate(pages):
        it.fetched(f"https://e.org/p{number}", [f"https://e.org/l{link}" for link in links])
    covered: set[int] = set()
    left, hubs = dict(enumerate(pages)), []
    while left:  # the slow way: look at every page again after each pick
        best = max(left, key=lambda page: (len(left[page] - covered), -page))
        own = left.pop(best) - covered
        if len(own) < adopt:
            break
        covered |= own
        hubs.append(f"https://e.org/p{best}")
    assert [page.url for page in it.judged() if page.is_hub] == hubs


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"follow": "all"}, "new"),
        ({"follow_budget": "20"}, "needs follow new"),
        ({"adopt": 3}, "needs follow new"),
        ({"follow": "new", "follow_budget": "much"}, "write a number of pages"),
        ({"follow": "new", "follow_scope": ["every where"]}, "neither site, host nor anywhere"),
        ({"follow": "new", "adopt": 0}, "1 or more"),
        ({"classifier": "nowhere.json"}, "there is no such file"),
    ],
)
def test_options_that_cannot_be_are_refused_everywhere_alike(given: dict[str, object], why: str) -> None:
    for kind in (FollowOptions, CrawlOptions):
        with pytest.raises(BadOption, match=why):
            kind(**given)  # type: ignore[arg-type]


def test_a_continued_crawl_follows_what_its_first_part_found(tmp_path: Path) -> None:
    history, now = History.create(tmp_path / "h"), MONDAY + timedelta(days=5)
    urls = [f"https://e.org/{i}" for i in range(4)]
    history.add(
        Visit(url=url, at=MONDAY + timedelta(days=day), links=["https://e.org/old", f"{url}/{day}"])
        for url in urls
        for day in range(3)
    )
    options = CrawlOptions(history=str(tmp_path / "h"), budget="4", follow="new")
    plan = planned(history, options, now)
    assert plan.began_at is None
    history.add(
        [Visit(url=plan.urls[0], at=now + timedelta(seconds=1), links=["https://e.org/old", "https://e.org/new"])]
    )
    history = History.open(tmp_path / "h")
    again = planned(history, options, now + timedelta(hours=1))
    assert set(again.urls) == set(plan.urls[1:])
    links = np.unique(history.store.read("link_sets")["links"].combine_chunks().flatten().to_numpy())
    it = follower_of(history, options, again, links)
    assert (it.take(), it.limits.pages) == (["https://e.org/new"], 4)
