"""Whole websites: their probabilities against a plain version, sites that fit a budget, and plans that list their pages."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import recrawl as rc
from commands import command, output
from made_visits import Stage, days, made_visits, made_world, unseen
from recrawl.core.times import microseconds, moment
from recrawl.history import History
from recrawl.policies import WholeSites
from recrawl.policies.budget import Budget, Cause
from recrawl.web.visit import Visit
from recrawl.world.crawler import Crawler
from recrawl.world.pages import Pages

START = datetime(2026, 1, 5, tzinfo=UTC)


def sites(*site: int, depth: list[int] | None = None) -> Pages:
    """Pages by site, all on one host."""
    pages = unseen(len(site))
    pages.extend(np.array(site), np.zeros(len(site), np.int64), (), np.array(depth or [0] * len(site)))
    return pages


def chosen(stage: Stage, budget: Budget, day: float = 21) -> list[int]:
    return stage.policy.choose(stage.pages, budget, days(day)).page.tolist()


def test_the_probability_of_a_site_worked_out_by_hand() -> None:
    # Pages 0 and 1 are a site, page 2 another. The first is captured on days 0, 7 and 14, and page 1 was updated on the last:
    # interpolated to day 10.5, λ = ln 1.5 / 3.5; on day 21: p = 1 - 1.5^-3, for both pages.
    stage = Stage(WholeSites(), sites(0, 0, 1)).first(days(0))
    stage.see(made_visits(days(7), [0, 1, 2], updated=0)).see(made_visits(days(14), [0, 1, 2], updated=[0, 1, 0]))
    choice = stage.policy.choose(stage.pages, Budget(3), days(21))
    assert choice.page.tolist() == [0, 1, 2]
    assert choice.score.tolist() == pytest.approx([1 - 1.5**-3] * 2 + [0])
    assert choice.why(0) == "one of 2 pages of a website updated with probability 0.70: 0.116 updates per day"


def test_a_site_that_does_not_fit_makes_way_and_the_best_is_cut_only_if_none_fits() -> None:
    stage = Stage(WholeSites(), sites(0, 0, 0, 1, 1, 2, depth=[2, 0, 1, 0, 0, 0])).first(days(0))
    stage.see(made_visits(days(7), range(6), updated=0)).see(
        made_visits(days(14), range(6), updated=[0, 1, 0, 0, 0, 0])
    )
    assert chosen(stage, Budget(6))[:3] == [1, 2, 0]  # the updated site first, its homepage before the others
    assert chosen(stage, Budget(2)) == [3, 4]
    assert chosen(stage, Budget(1)) == [5]
    assert chosen(stage, Budget(4)) == [1, 2, 0, 5]
    barred = np.array([0, 0, 0, 0, 0, Cause.GONE], np.int8)
    assert chosen(stage, Budget(1, barred=barred)) == [1]
    assert chosen(stage, Budget(0)) == []


def test_pages_below_the_depth_are_neither_captures_nor_visited() -> None:
    stage = Stage(WholeSites(depth=1), sites(0, 0, 1, depth=[0, 2, 0])).first(days(0))
    stage.see(made_visits(days(7), [0, 1, 2], updated=0)).see(made_visits(days(14), [0, 1, 2], updated=[0, 1, 0]))
    choice = stage.policy.choose(stage.pages, Budget(3), days(21))
    assert (choice.page.tolist(), choice.score.tolist()) == ([0, 2], [0, 0])


def test_a_threshold_leaves_sites_out() -> None:
    stage = Stage(WholeSites(threshold=0.5), sites(0, 0, 1)).first(days(0))
    stage.see(made_visits(days(7), [0, 1, 2], updated=0)).see(made_visits(days(14), [0, 1, 2], updated=[0, 1, 0]))
    assert chosen(stage, Budget(3)) == [0, 1]


@pytest.mark.parametrize("updates", ["links", "content"])
def test_rates_of_sites_equal_those_of_history_aware_on_sites_as_pages(tmp_path: Path, updates: str) -> None:
    """What history-aware learns where each site is one page that shows an update whenever one of its pages does."""
    world = made_world(tmp_path).with_all_known()
    world = replace(world, site=np.arange(world.n_pages) // 4, depth=np.zeros(world.n_pages, np.int64))
    n_sites = int(world.site.max()) + 1
    whole, single = WholeSites(updates=updates), rc.policies.HistoryAware()
    crawler = Crawler(world)
    whole.start(crawler.pages)
    single.start(unseen(n_sites))
    seen, n_rated = np.zeros(world.n_pages, np.bool_), 0
    random = np.random.default_rng(0)
    visits = crawler.first.visits
    for cycle in range(1, world.n_cycles + 1):
        whole.observe(visits)
        is_capture = visits.answered if updates == "links" else visits.came
        states = visits.updated if updates == "links" else visits.changed
        shown: dict[int, list[int]] = {}
        for page, captured, state in zip(visits.page.tolist(), is_capture, states.tolist(), strict=True):
            if captured:
                shown.setdefault(page // 4, []).append(state)
                seen[page] = True
        counted = {site: max(found) for site, found in shown.items()
                   if max(found) >= 0 or len(found) == seen[4 * site : 4 * site + 4].sum()}  # fmt: skip
        ordered = sorted(counted)
        made = made_visits(visits.ended_at, ordered, updated=[counted[site] for site in ordered])
        single.observe(made)
        assert whole.per_day_[:n_sites] == pytest.approx(single.per_day_)
        assert whole.last_update_[:n_sites].tolist() == single.last_update_.tolist()
        n_rated += int((single.per_day_ > 0).sum())
        now = moment(int(world.time[cycle]))
        assert microseconds(now) > 0
        visits = crawler.visit(random.choice(world.n_pages, 40, replace=False)).visits
    assert n_rated


def people(folder: Path) -> History:
    """Ten people with a homepage, a page below, and one far below; the homepage of every third gains links."""
    history = History.create(folder)
    history.add(
        Visit(
            url=f"https://foo.edu/~p{i}/{path}",
            at=START + timedelta(days=7 * week, minutes=i),
            links=[f"https://foo.edu/l{i}/{n}" for n in range(week + 1 if i % 3 == 0 and not path else 1)],
        )
        for week in range(8)
        for i in range(10)
        for path in ("", "papers/", "a/b/c/d")
    )
    return history


def test_a_plan_lists_the_pages_of_whole_websites(tmp_path: Path) -> None:
    now = START + timedelta(days=56)
    plan = rc.plan(people(tmp_path), now=now, policy="whole-sites", roots="/~*/", budget=9)
    urls = plan.url.to_pylist()
    assert len(urls) == 8  # four websites of two pages; a ninth page would be half of one
    assert [url.split("/")[3] for url in urls[::2]] == [url.split("/")[3] for url in urls[1::2]]
    assert {url.split("/")[3] for url in urls} == {"~p0", "~p3", "~p6", "~p9"}
    assert all(url.endswith("/papers/") for url in urls[1::2])


def test_roots_count_for_caps_and_the_longest_is_said_once(tmp_path: Path) -> None:
    history = people(tmp_path / "history")
    roots = tmp_path / "roots.txt"
    roots.write_text("foo.edu/~p0/\nfoo.edu/~p0/a/\nfoo.edu/~p3/\n")
    plan = rc.plan(history, policy="round-robin", roots=str(roots), per_site=1, budget=30)
    # One page of each of the three roots, and one of all others together, which keep their registered domain.
    assert len(plan.url) == 4
    done = command(*("plan", "--policy", "round-robin", "--roots", str(roots), "--budget", "3", "--dry-run"),
                   "--history", str(tmp_path / "history"))  # fmt: skip
    assert done.code == 0
    assert done.stderr.count("1 root is inside others; a page belongs to the longest root that fits") == 1


def test_homepages_and_websites_are_evaluated_from_one_history(tmp_path: Path) -> None:
    people(tmp_path / "history")
    shown = output(
        *("evaluate", "--method", "history-aware", "--every", "crawl", "--windows", "2", "--level", "homepage,site"),
        *("--roots", "/~*/", "--history", str(tmp_path / "history")),
    )
    text = " ".join(shown.split())
    assert "10 homepages with 80 captures" in text
    assert "10 sites with 80 captures" in text
    replayed = output(
        "replay", "--policies", "round-robin,whole-sites", "--roots", "/~*/", "--history", str(tmp_path / "history")
    )
    assert "sites by /~*/" in " ".join(replayed.split())
