"""Policies weigh what a visit is worth by how much the page matters; pages that do not matter come last."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest

from made_visits import made_visits, unseen
from recrawl.core.arrays import Floats, Ints
from recrawl.policies import ALL, Budget, Policy, named
from recrawl.policies.budget import Cause
from recrawl.policies.by_model import ByModel
from recrawl.policies.choice import Choice
from recrawl.policies.experts import ChangeFrequency
from recrawl.policies.greedy_cover import greedy_gains
from recrawl.policies.important_first import ImportantFirst, choose_important
from recrawl.policies.links_and_content import LinksAndContent
from recrawl.testing import Case, cases, check_choice, check_policy, choices, tiny_world
from recrawl.world.pages import Pages
from recrawl.world.recorded import World

NOW = datetime(2026, 3, 2, 12).astimezone()
N_PAGES, N_CYCLES = 12, 14
SETTINGS = {"bootstrap": 2, "retrain": 1, "window": 3, "n_train": 4, "learner": "small-tree", "first_days": 1.0}
NAMES = [policy.name for policy in ALL]


def shows(page: int, cycle: int) -> set[int]:
    """Page p gains p % 4 links per cycle, and keeps those of three cycles."""
    pace = page % 4
    return {1_000 * page + i for i in range(max(0, pace * (cycle - 2)), pace * (cycle + 1) + 1)}


def world_with(importance: Floats | None) -> World:
    says = [[{p // 3: 5, 7 + t // (p % 4 + 1): 3} for p in range(N_PAGES)] for t in range(N_CYCLES)]
    world = tiny_world(
        [[shows(page, cycle) for page in range(N_PAGES)] for cycle in range(N_CYCLES)],
        hours=range(0, 24 * N_CYCLES, 24),
        site=[page // 2 for page in range(N_PAGES)],
        says=says,
    )
    return world if importance is None else replace(world, importance=importance[world.row])


def picked(policy: Policy, importance: Floats | None, budget: int = 4) -> list[list[int]]:
    return [choice.page.tolist() for choice in choices(policy, Case(world_with(importance), (Budget(budget),)))]


DIFFERENT = np.array([1.0, 9.0, 0.5, 4.0, 1.0, 0.25, 7.0, 1.0, 30.0, 2.0, 0.1, 5.0])


@pytest.mark.usefixtures("_with_small_tree")
@pytest.mark.parametrize("name", NAMES)
def test_policies_weigh_by_importance_if_they_say_so(name: str) -> None:
    policy = named(name, **SETTINGS)
    assert (picked(policy, DIFFERENT) != picked(policy, None)) == policy.weighs


@pytest.mark.usefixtures("_with_small_tree")
@pytest.mark.parametrize("name", NAMES)
def test_pages_that_matter_alike_are_picked_as_if_nothing_were_stated(name: str) -> None:
    policy = named(name, **SETTINGS)
    expected = picked(policy, None)
    assert picked(policy, np.full(N_PAGES, 4.0)) == expected  # a power of two: nothing is rounded


def pages_with(importance: list[float]) -> Pages:
    pages = unseen(len(importance))
    pages.importance = np.array(importance)
    return pages


def observed(policy: Policy, pages: Pages, n_new: list[int], changed: int = 1) -> Policy:
    """The policy after two visits to every page, the second with these new links."""
    policy.start(pages)
    for hour in (0, 1):
        visits = made_visits(
            NOW + timedelta(hours=hour), range(len(pages)), n_new_since=n_new if hour else 0, changed=changed
        )
        pages.note(visits)
        policy.observe(visits)
    return policy


def test_links_count_as_often_as_the_page_matters() -> None:
    pages = pages_with([1.0, 3.0, 0.5, 2.0])
    choice = observed(named("previous-count"), pages, [5, 2, 20, 1]).choose(pages, Budget(4), NOW)
    assert choice.page.tolist() == [2, 1, 0, 3]
    assert choice.score.tolist() == [10.0, 6.0, 5.0, 2.0]
    assert choice.expected is not None
    assert choice.expected.tolist() == [20.0, 2.0, 5.0, 1.0]  # what is expected stays a number of links
    assert choice.factors["importance"].tolist() == [0.5, 3.0, 1.0, 2.0]


def test_below_zero_the_more_important_page_is_the_better_one_too() -> None:
    pages = pages_with([1.0, 4.0, 1.0])
    assert np.argsort(-pages.weighed(np.array([-2.0, -2.0, 1.0]))).tolist() == [2, 1, 0]


def test_expected_harvest_multiplies_its_score() -> None:
    """Pages that share nothing: then the order is that of the plain scores times importance."""
    world = world_with(None)
    *_, plain = choices(named("expected-harvest", explore=0.0), Case(world, (Budget(N_PAGES),)))
    *_, weighed = choices(named("expected-harvest", explore=0.0), Case(world_with(DIFFERENT), (Budget(N_PAGES),)))
    score = np.empty(N_PAGES)
    score[plain.page] = plain.score
    expected = score * DIFFERENT
    np.testing.assert_allclose(weighed.score, expected[weighed.page], rtol=1e-12)
    assert weighed.page.tolist() == np.argsort(-expected, kind="stable").tolist()
    assert weighed.factors["importance"].tolist() == DIFFERENT[weighed.page].tolist()


def test_expected_harvest_tries_important_pages_first() -> None:
    importance = np.array([1.0, 1.0, 8.0, 2.0])
    world = tiny_world([[{10 * page + i for i in range(5)} for page in range(4)]] * 3)
    case = Case(replace(world, importance=importance[world.row]), (Budget(4),))
    choice = next(iter(choices(named("expected-harvest", explore=1.0), case)))
    assert choice.page.tolist() == [2, 3, 0, 1]
    assert choice.trials.all()


def slow_greedy(sets: list[set[int]], importance: Floats, k: int) -> list[int]:
    covered: set[int] = set()
    order: list[int] = []
    while len(order) < k:
        worth = [(importance[p] * len(links - covered), -p) for p, links in enumerate(sets) if p not in order]
        best, p = max(worth)
        if best == 0:
            break
        order.append(-p)
        covered |= sets[-p]
    return order


@pytest.mark.parametrize("seed", range(20))
def test_greedy_cover_is_that_of_a_plain_version(seed: int) -> None:
    chance = np.random.default_rng(seed)
    n = int(chance.integers(2, 12))
    sets = [set(chance.integers(0, 15, int(chance.integers(0, 9))).tolist()) for _ in range(n)]
    pages = pages_with(chance.choice([0.5, 1.0, 2.0, 4.0], n).tolist())
    assert pages.importance is not None
    start = np.cumsum([0, *(len(each) for each in sets)])
    links: Ints = np.array([link for each in sets for link in sorted(each)], np.int32)
    score, _ = greedy_gains(start, links, pages, Budget(n))
    order = np.argsort(-score, kind="stable")[: int((score > 0).sum())]
    assert order.tolist() == slow_greedy(sets, pages.importance, n)


def test_the_coin_is_thrown_in_proportion() -> None:
    """With equal and small probabilities a page that matters three times as much is drawn three times as often."""
    n, drawn = 40, 0
    pages = pages_with([3.0] * (n // 2) + [1.0] * (n // 2))
    for seed in range(300):
        policy = observed(ChangeFrequency(seed=seed, pick="coin"), pages_with([1.0] * n), [0] * n, changed=0)
        policy.outcomes_.share = lambda: np.full(n, 0.001)  # type: ignore[attr-defined]
        pages.n_visits = np.full(n, 2)
        drawn += int(policy.choose(pages, Budget(1), NOW).page[0] < n // 2)
    assert 0.65 < drawn / 300 < 0.85  # 0.75 but for chance


def test_whole_sites_count_by_the_mean_of_their_pages() -> None:
    quiet, busy = [{1}] * 6, [{10}, {11}, {12}, {13}, {14}, {15}]
    world = replace(tiny_world(list(zip(busy, busy, busy, quiet, strict=True))), site=np.array([0, 1, 1, 2]))
    for weights, first in (([3.0, 1.0, 4.0, 1.0], 0), ([2.0, 1.0, 4.0, 1.0], 1)):
        case = Case(replace(world, importance=np.array(weights)[world.row]), (Budget(4), Budget(2)))
        *_, last = choices(named("whole-sites"), case)
        assert world.site[last.page[0]] == first


def test_a_setting_counts_more_than_what_visits_state() -> None:
    for name, setting in (
        ("freshness-value", "importance"),
        ("lambda-crawl", "importance"),
        ("nutch-adaptive", "score"),
    ):
        stated = picked(named(name, first_days=1.0), DIFFERENT)
        policy = named(name, first_days=1.0, **{setting: np.ones(N_PAGES)})
        assert picked(policy, DIFFERENT) == picked(policy, None) != stated
        assert picked(named(name, first_days=1.0, **{setting: DIFFERENT}), None) == stated


def test_what_is_used_by_plans_alone_weighs_as_well() -> None:
    pages = pages_with([1.0, 3.0, 1.0])
    columns = {name: np.array([2.0, 1.0, 2.5]) for name in ("expected", "low", "high")} | {"basis": np.zeros(3)}
    assert ByModel(columns).choose(pages, Budget(3), NOW).page.tolist() == [1, 2, 0]
    both = observed(LinksAndContent(), pages, [2, 2, 2]).choose(pages, Budget(3), NOW + timedelta(hours=9))
    assert both.page[0] == 1


# -- importance 0 ------------------------------------------------------------------------------------------------------


SOME = np.array([0.0, 1.0, 0.0, 4.0, 1.0, 0.0, 7.0, 1.0, 3.0, 2.0, 0.0, 5.0])


def chosen(policy: Policy, budget: Budget) -> list[tuple[Choice, Pages]]:
    """Choices cycle by cycle, as a replay makes them."""
    from recrawl.core.times import moment
    from recrawl.replay.run import meet_pages
    from recrawl.world.crawler import Crawler

    world = world_with(SOME)
    crawler = Crawler(world, policy.needs)
    policy.start(crawler.pages)
    policy.observe(crawler.first.visits)
    made = []
    for cycle in range(1, world.n_cycles + 1):
        meet_pages(crawler, policy)
        choice = choose_important(policy, crawler.pages, budget, moment(int(world.time[cycle])))
        check_choice(choice, crawler.pages, budget)
        made.append((choice, crawler.pages))
        policy.observe(crawler.visit(choice.page, choice.memo).visits)
    return made


@pytest.mark.usefixtures("_with_small_tree")
@pytest.mark.parametrize("name", NAMES)
def test_pages_of_no_importance_are_visited_only_if_nothing_else_is_left(name: str) -> None:
    for choice, _ in chosen(named(name, **SETTINGS), Budget(5)):
        left_out = np.setdiff1d(np.flatnonzero(SOME > 0), choice.page)
        if len(choice) == 5:
            assert (SOME[choice.page] > 0).all()
            assert choice.cause is None or (choice.cause[SOME == 0] == Cause.UNIMPORTANT).all()
        else:  # a policy that would not use the budget, even on pages that matter
            assert len(left_out)
    for choice, _ in chosen(named(name, **SETTINGS), Budget(10)):
        is_last = SOME[choice.page] == 0
        assert (np.diff(is_last.astype(int)) >= 0).all()


def test_bars_and_caps_still_hold() -> None:
    pages = Pages.unseen(site=np.array([0, 0, 0, 1]), host=np.array([0, 0, 0, 1]))
    pages.importance = np.array([0.0, 2.0, 0.0, 0.0])
    barred = np.array([0, 0, 0, Cause.GONE], np.int8)
    choice = choose_important(named("round-robin"), pages, Budget(4, per_host=2, barred=barred), NOW)
    assert choice.page.tolist() == [1, 0]
    assert choice.cause is not None
    assert choice.cause.tolist() == [0, 0, Cause.UNIMPORTANT, Cause.GONE]
    pages.importance = np.zeros(4)
    assert choose_important(named("round-robin"), pages, Budget(2), NOW).page.tolist() == [0, 1]


@pytest.mark.parametrize(
    "name",
    [
        "bandit",
        *(pytest.param(name, marks=pytest.mark.more) for name in ("round-robin", "windowed-clique")),
        pytest.param("expected-harvest", marks=pytest.mark.slow),
    ],
)
def test_important_first_keeps_the_contract(name: str) -> None:
    check_policy(lambda: ImportantFirst(named(name, **SETTINGS)))


def test_reasons_name_the_importance_where_it_is_not_1() -> None:
    pages = pages_with([1.0, 2.5])
    choice = ImportantFirst(named("round-robin")).choose(pages, Budget(2), NOW)
    assert [choice.why(i) for i in range(2)] == ["never visited yet", "never visited yet; importance 2.5"]


def test_the_contract_has_a_case_of_it() -> None:
    world = cases()["pages of different importance"].world
    assert world.importance is not None
    assert {0.0, 0.5, 2.0} <= set(world.importance.tolist())
