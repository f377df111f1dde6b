from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.crawl.first import FirstCrawl
from recrawl.crawl.frontier import BreadthFirst, ByRank, ByRelevance, Frontier, Limits
from recrawl.history import History
from recrawl.web.urls import host
from recrawl.web.visit import Visit

Web = dict[str, list[str]]


def web(n_pages: int, n_hosts: int = 3, seed: int = 0) -> Web:
    """A small web: later pages are linked to by fewer."""
    chance = random.Random(seed)
    names = [f"https://h{number % n_hosts}.org/{number}" for number in range(n_pages)]
    linked = {name: [names[int(chance.random() ** 2 * n_pages)] for _ in range(chance.randrange(6))] for name in names}
    for number, name in enumerate(names[1:], 1):  # all can be reached
        linked[names[chance.randrange(number)]].append(name)
    return linked


def crawled(frontier: Frontier, linked: Web, texts: dict[str, str] | None = None) -> list[str]:
    """The pages in the order in which they are fetched, one at a time."""
    order = []
    while (url := frontier.take()) is not None:
        order.append(url)
        frontier.done(url, linked.get(url, []), (texts or {}).get(url, ""))
    return order


def by_rank(seeds: list[str], **limits: int | None) -> Frontier:
    frontier = Frontier(BreadthFirst(), Limits(**limits))  # type: ignore[arg-type]
    frontier.order = ByRank(frontier.number(seed) for seed in seeds)
    frontier.add(seeds, 0)
    return frontier


# -- order ------------------------------------------------------------------------------------------------------------


def slow_rank(links: dict[int, list[int]], n: int, restart: np.ndarray) -> np.ndarray:
    """PageRank page by page, by the definition: 85% of a page's rank goes to the pages it links to, or back to the start."""
    rank = restart.copy()
    for _ in range(200):
        after = 0.15 * restart
        for page in range(n):
            others = sorted(set(links.get(page, [])) - {page})
            if others:
                for other in others:
                    after[other] += 0.85 * rank[page] / len(others)
            else:
                after += 0.85 * rank[page] * restart
        rank = after
    return rank


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_the_products_of_pagerank_and_trustrank(seed: int) -> None:
    names = web(60, seed=seed)
    number = {name: page for page, name in enumerate(names)}
    links = {number[name]: [number[link] for link in some] for name, some in names.items()}
    order = ByRank([0, 1, 2])
    for page in range(40):
        order.observe(page, links[page], "")
    task = order.update_task()
    assert task is not None
    assert order.update_task() is None  # one at a time
    order.apply_update(task())
    seen = {page: links[page] for page in range(40)}
    n = 1 + max(39, *(link for some in seen.values() for link in some))
    trusted = np.zeros(n)
    trusted[:3] = 1 / 3
    wanted = slow_rank(seen, n, np.full(n, 1 / n)) * slow_rank(seen, n, trusted) * n * n
    assert order.scores(list(range(n))) == pytest.approx(wanted.tolist(), rel=0.02, abs=0.01)


def test_pages_with_more_and_better_inlinks_come_first() -> None:
    hub, rest = "https://e.org/hub", [f"https://e.org/{number}" for number in range(80)]
    linked = {"https://e.org/": rest, **{page: [hub] for page in rest[:40]}, rest[50]: ["https://e.org/late"]}
    order = crawled(by_rank(["https://e.org/"]), linked)
    assert order.index(hub) < 45
    assert len(order) == len(set(order)) == 83


def test_pages_without_links_from_trusted_pages_come_last() -> None:
    # Pages of a farm link to each other; only a page at the end of a long chain leads there.
    farm = [f"https://farm.org/{number}" for number in range(30)]
    chain = [f"https://e.org/chain/{number}" for number in range(8)]
    near = [f"https://e.org/near/{number}" for number in range(30)]
    linked = {page: [other for other in farm if other != page] for page in farm}
    linked |= {"https://e.org/": [*near, chain[0]], **{a: [b] for a, b in pairwise(chain)}}
    linked[chain[-1]] = farm
    order = crawled(by_rank(["https://e.org/"]), linked)
    assert max(order.index(page) for page in near) < min(order.index(page) for page in farm)


def test_a_focused_crawl_follows_relevant_pages_first() -> None:
    linked = {
        "https://e.org/": ["https://e.org/good", "https://e.org/bad"],
        "https://e.org/good": ["https://e.org/good/1", "https://e.org/both"],
        "https://e.org/bad": ["https://e.org/bad/1", "https://e.org/both"],
    }
    texts = {name: "yes" if "good" in name or name.endswith("org/") else "no" for name in linked}
    frontier = Frontier(ByRelevance(lambda text: float(text == "yes")), Limits())
    frontier.add(["https://e.org/"], 0)
    order = [name.removeprefix("https://e.org") for name in crawled(frontier, linked, texts)]
    assert order == ["/", "/good", "/bad", "/good/1", "/both", "/bad/1"]


def test_a_page_whose_score_fell_is_not_taken_for_its_old_score() -> None:
    relevance = {"https://e.org/a": 1.0, "https://e.org/b": 0.0, "https://e.org/c": 0.6}
    frontier = Frontier(ByRelevance(lambda text: relevance[text]), Limits(), host_concurrency=9)
    frontier.add(list(relevance), 0)
    for _ in relevance:
        frontier.take()
    frontier.done("https://e.org/a", ["https://e.org/x"], "https://e.org/a")  # score 1
    frontier.done("https://e.org/b", ["https://e.org/x"], "https://e.org/b")  # and now a half
    frontier.done("https://e.org/c", ["https://e.org/y"], "https://e.org/c")
    assert [frontier.take(), frontier.take(), frontier.take()] == ["https://e.org/y", "https://e.org/x", None]


# -- limits -----------------------------------------------------------------------------------------------------------


@given(st.integers(0, 5), st.integers(1, 30), st.none() | st.integers(1, 5), st.none() | st.integers(0, 4))
def test_limits_are_kept_and_every_page_is_fetched_once(
    seed: int, pages: int, per_host: int | None, depth: int | None
) -> None:
    linked = web(40, seed=seed)
    start = next(iter(linked))
    order = crawled(by_rank([start], pages=pages, per_host=per_host, depth=depth), linked)
    assert len(order) == len(set(order)) <= pages
    fetched: defaultdict[str, int] = defaultdict(int)
    for url in order:
        fetched[host(url)] += 1
    assert per_host is None or max(fetched.values()) <= per_host
    if depth is not None:
        assert set(order) <= within(linked, start, depth)
    if per_host is None and pages >= 40:
        assert set(order) == within(linked, start, 99 if depth is None else depth)


def within(linked: Web, start: str, depth: int) -> set[str]:
    found, edge = {start}, {start}
    for _ in range(depth):
        edge = {link for page in edge for link in linked[page]} - found
        found |= edge
    return found


def test_a_page_first_found_too_deep_is_fetched_once_a_shorter_way_is_found() -> None:
    linked = {"https://e.org/": ["https://e.org/a"], "https://e.org/a": ["https://e.org/b"]}
    linked |= {"https://e.org/b": ["https://e.org/far"], "https://f.org/": ["https://e.org/far"]}
    frontier = Frontier(BreadthFirst(), Limits(depth=2))
    frontier.add(["https://e.org/"], 0)
    assert "https://e.org/far" not in crawled(frontier, linked)
    frontier.add(["https://f.org/"], 0)
    assert crawled(frontier, linked) == ["https://f.org/", "https://e.org/far"]


def test_only_allowed_pages_are_taken() -> None:
    frontier = Frontier(BreadthFirst(), Limits(), allowed=lambda url: "private" not in url)
    frontier.add(["https://e.org/"], 0)
    linked = {"https://e.org/": ["https://e.org/private", "https://e.org/public"]}
    assert crawled(frontier, linked) == ["https://e.org/", "https://e.org/public"]


# -- hosts that keep us waiting ---------------------------------------------------------------------------------------


def test_a_busy_host_does_not_hold_up_others() -> None:
    frontier = Frontier(BreadthFirst(), Limits(), host_concurrency=2)
    frontier.add([f"https://busy.org/{number}" for number in range(5)] + ["https://free.org/"], 0)
    given_out = [frontier.take() for _ in range(4)]
    assert given_out == ["https://busy.org/0", "https://busy.org/1", "https://free.org/", None]
    assert frontier.n_in_progress == 3
    frontier.done("https://busy.org/0")
    assert [frontier.take(), frontier.take()] == ["https://busy.org/2", None]


@given(st.integers(0, 20), st.integers(1, 3))
def test_no_host_ever_has_more_pages_in_progress_than_allowed(seed: int, host_concurrency: int) -> None:
    chance, linked = random.Random(seed), web(60, seed=seed)
    frontier = by_rank([next(iter(linked))])
    frontier.host_concurrency = host_concurrency
    under_way: list[str] = []
    fetched = 0
    while True:
        url = frontier.take()
        if url is not None:
            under_way.append(url)
            assert sum(host(other) == host(url) for other in under_way) <= host_concurrency
        elif not under_way:
            break
        if under_way and (url is None or chance.random() < 0.4):
            back = under_way.pop(chance.randrange(len(under_way)))
            frontier.done(back, linked[back])
            fetched += 1
        assert frontier.n_in_progress == len(under_way)
    assert fetched == 60


@pytest.mark.parametrize("n_before", [1, 7, 40])
def test_a_restored_frontier_continues_as_if_the_crawl_had_never_ended(n_before: int) -> None:
    linked = web(120)
    seeds = [next(iter(linked))]
    whole = crawled(by_rank(seeds, pages=80, per_host=30), linked)
    frontier = by_rank(seeds, pages=80, per_host=30)
    assert [frontier.restore(url, linked[url]) for url in whole[:n_before]] == [True] * n_before
    assert not frontier.restore("https://elsewhere.org/", whole)  # not found in this crawl
    assert sorted(whole[:n_before] + crawled(frontier, linked)) == sorted(whole)
    assert not frontier.restore(whole[0], linked[whole[0]])  # once is enough
    assert frontier.n_taken == len(whole)


def test_the_words_of_pages_are_restored_as_well() -> None:
    judged: list[object] = []

    def judge(text: object) -> float:
        judged.append(text)
        return 1.0 if text == Counter(oil=2) else 0.0

    frontier = Frontier(ByRelevance(judge), Limits())
    frontier.add(["https://a.org/", "https://b.org/"], 0)
    frontier.restore("https://a.org/", ["https://a.org/1"], Counter(tea=1))
    frontier.restore("https://b.org/", ["https://b.org/1"], Counter(oil=2))
    assert judged == [Counter(tea=1), Counter(oil=2)]
    assert [frontier.take(), frontier.take()] == ["https://b.org/1", "https://a.org/1"]


def test_a_page_that_may_not_be_fetched_counts_towards_no_limit() -> None:
    frontier = Frontier(BreadthFirst(), Limits(pages=2, per_host=2))
    frontier.add([f"https://a.org/{i}" for i in range(4)], 0)
    first = frontier.take()
    assert first is not None
    frontier.not_requested(first)
    assert [frontier.take(), frontier.take(), frontier.take()] == ["https://a.org/1", "https://a.org/2", None]


def test_pages_fetched_while_ranks_are_computed_count_as_well() -> None:
    linked = {f"https://a.org/{i}": [f"https://a.org/{j}" for j in range(i + 1, i + 4)] for i in range(40)}
    late = by_rank(["https://a.org/0"])
    waiting: list[Callable[[], object]] = []
    late.run_update = waiting.append  # type: ignore[method-assign]
    while not waiting:
        late.done(url := str(late.take()), linked[url])
    found = waiting.pop()()
    late.done(url := str(late.take()), [*linked[url], "https://a.org/late"])
    before = late.order.scores([late.number("https://a.org/late")])
    late.apply_update(found)
    after = late.order.scores([late.number("https://a.org/late"), late.number("https://a.org/nobody")])
    assert after[0] == pytest.approx(before[0])
    assert after[0] > after[1] == 0


def test_pages_of_a_host_at_its_limit_wait_for_those_in_progress_which_may_not_count() -> None:
    frontier = Frontier(BreadthFirst(), Limits(per_host=1))
    frontier.add(["https://a.org/private", "https://a.org/2", "https://a.org/3"], 0)
    assert [frontier.take(), frontier.take()] == ["https://a.org/private", None]
    frontier.not_requested("https://a.org/private")
    assert [frontier.take(), frontier.take()] == ["https://a.org/2", None]
    frontier.done("https://a.org/2")
    assert frontier.take() is None


def test_a_first_crawl_retries_failed_pages_and_does_not_request_those_it_has(tmp_path: Path) -> None:
    history, start = History.create(tmp_path / "h"), datetime(2026, 1, 5, tzinfo=UTC)
    seeds = ["https://a.org/", "https://b.org/"]
    assert FirstCrawl(history, breadth(seeds)).begin(start) == 0
    history.add(
        [
            Visit(url=seeds[0], at=start, links=["https://a.org/1"]),
            Visit(url=seeds[1], at=start, status=0, note="host not found"),
        ]
    )
    assert FirstCrawl(history, breadth(seeds)).begin(start, is_alone=False) == 0
    frontier = breadth(seeds)
    crawl = FirstCrawl(History.open(tmp_path / "h"), frontier)
    assert crawl.begin(start) == 1
    assert [frontier.take(), frontier.take(), frontier.take()] == ["https://b.org/", "https://a.org/1", None]
    crawl.end()
    assert FirstCrawl(History.open(tmp_path / "h"), breadth(seeds)).begin(start) == 0


def breadth(seeds: list[str]) -> Frontier:
    frontier = Frontier(BreadthFirst(), Limits())
    frontier.add(seeds, 0)
    return frontier
