"""The parts put together: the policy in small worlds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from recrawl.core.times import US_PER_HOUR, moment
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.expected_harvest import ExpectedHarvest
from recrawl.testing import Shown, tiny_world
from recrawl.world.crawler import Crawler
from recrawl.world.recorded import FAILED, GONE, NOTHING, World

N_PAGES, N_CYCLES = 12, 40
SITE = [p // 4 for p in range(N_PAGES)]


def living(seed: int, n_cycles: int = N_CYCLES) -> list[list[Shown]]:
    """Links arrive at random, stay for a while, and are on one or two pages of a site; some visits fail."""
    chance = np.random.default_rng(seed)
    pace, stay = chance.gamma(0.6, 2.0, N_PAGES), chance.choice([1, 4, 60], N_PAGES)
    shows = [[{p} for p in range(N_PAGES)] for _ in range(n_cycles)]
    link = N_PAGES
    for cycle in range(n_cycles):
        for p, n in enumerate(chance.poisson(pace)):
            for _ in range(n):
                q = 4 * SITE[p] + int(chance.integers(4))
                for later in range(cycle, min(cycle + int(stay[p]), n_cycles)):
                    shows[later][p].add(link)
                    shows[later][q].add(link)
                link += 1
    marks = chance.choice([0, NOTHING, FAILED, GONE], (n_cycles, N_PAGES), p=[0.9, 0.04, 0.04, 0.02]).tolist()
    marks[0][3] = FAILED  # one that is not there when the crawl begins, and one that never is
    for row in marks:
        row[7] = FAILED
    return [[mark or shown for mark, shown in zip(*rows, strict=True)] for rows in zip(marks, shows, strict=True)]


def replayed(world: World, budget: Budget, up_to: int | None = None, **settings: Any) -> tuple[list[Choice], list[str]]:
    """The choices of a policy, and why the pages of the last one were chosen."""
    policy, crawler, made, reasons = ExpectedHarvest(**settings), Crawler(world), [], []
    policy.start(crawler.pages)
    policy.observe(crawler.first.visits)
    for cycle in range(1, 1 + (world.n_cycles if up_to is None else up_to)):
        choice = policy.choose(crawler.pages, budget, moment(int(world.time[cycle])))
        made.append(choice)
        reasons = [choice.why(i) for i in range(len(choice))]
        policy.observe(crawler.visit(choice.page, choice.memo).visits)
    return made, reasons


def hours_of(world: World, cycle: int) -> float:
    return float(world.time[cycle]) / US_PER_HOUR


def same(first: Sequence[Choice], second: Sequence[Choice]) -> bool:
    return all(
        np.array_equal(a.page, b.page) and np.array_equal(a.score, b.score) and np.array_equal(a.expected, b.expected)
        for a, b in zip(first, second, strict=True)
    )


@pytest.mark.parametrize("cut", [3, 25])
def test_nothing_that_is_shown_later_changes_a_choice(cut: int) -> None:
    shows, others = living(0), living(1)
    shift = 100_000  # links of the other future have numbers of their own
    altered = [
        row
        if cycle < cut
        else [shown if isinstance(shown, int) else {x + shift for x in shown} for shown in others[cycle]]
        for cycle, row in enumerate(shows)
    ]
    plain, _ = replayed(tiny_world(shows, site=SITE), Budget(4), up_to=cut)
    other, _ = replayed(tiny_world(altered, site=SITE), Budget(4), up_to=cut)
    assert same(plain, other)  # the last of them is chosen for the cycle that differs
    plain, _ = replayed(tiny_world(shows, site=SITE), Budget(4))
    other, _ = replayed(tiny_world(altered, site=SITE), Budget(4))
    assert not same(plain[cut:], other[cut:])


def test_the_order_of_pages_does_not_matter() -> None:
    shows = living(2)
    turned = np.random.default_rng(0).permutation(N_PAGES)
    world = tiny_world(shows, site=SITE)
    other = tiny_world([[row[p] for p in turned] for row in shows], site=[SITE[p] for p in turned])
    policies, crawlers = [ExpectedHarvest(), ExpectedHarvest()], [Crawler(world), Crawler(other)]
    for policy, crawler in zip(policies, crawlers, strict=True):
        policy.start(crawler.pages)
        policy.observe(crawler.first.visits)
    for cycle in range(1, world.n_cycles + 1):
        choice = policies[0].choose(crawlers[0].pages, Budget(4), moment(int(world.time[cycle])))
        first, second = (p.model_.predict(hours_of(world, cycle), 3.0, 9.0) for p in policies)
        assert np.allclose(first.expected[turned], second.expected)
        assert np.allclose(first.worth.urgency[turned], second.worth.urgency)
        policies[0].observe(crawlers[0].visit(choice.page).visits)
        policies[1].observe(crawlers[1].visit(np.argsort(turned)[choice.page]).visits)


def twins(n_cycles: int, is_shared: bool) -> World:
    """Two pages of a site with three new links per cycle that stay for five, the same on both or not; a third is quiet."""

    def shown(page: int, cycle: int) -> set[int]:
        return {1_000_000 * page + 3 * t + i for t in range(max(0, cycle - 4), cycle + 1) for i in range(3)}

    return tiny_world([[shown(0, t), shown(0 if is_shared else 1, t), {7}] for t in range(n_cycles)], site=[0, 0, 0])


@pytest.mark.parametrize(("is_shared", "most"), [(True, 0.3), (False, 30.0)])
def test_a_page_whose_sibling_was_just_visited_has_almost_no_stock_if_they_share_all_links(
    is_shared: bool, most: float
) -> None:
    world = twins(60, is_shared)
    policy, crawler = ExpectedHarvest(), Crawler(world)
    policy.start(crawler.pages)
    policy.observe(crawler.first.visits)
    for cycle in range(1, 59):  # one of them, the other, both; at last both and then page 0 three times
        page = [[0, 1], [0], [1], [0, 1, 2]][cycle % 4] if cycle < 56 else [0, 1] if cycle == 56 else [0]
        policy.observe(crawler.visit(np.array(page)).visits)
    predicted = policy.model_.predict(hours_of(world, 58) + 0.01, 3.0, 100.0)
    unshown = 2 * 3.0  # two cycles of three links wait on page 1, if no page had shown them
    assert predicted.worth.stock[1] < most
    assert (predicted.worth.stock[1] > 0.6 * unshown) == (not is_shared)
    sibling, share = policy.model_.pairs().closest(1)
    assert (sibling, share > 0.9) == ((0, True) if is_shared else (-1, False))


def test_favouring_freshness_picks_by_expected_links_alone() -> None:
    world = tiny_world(living(3), site=SITE)
    fresh, _ = replayed(world, Budget(5), favour="freshness", explore=0.0)
    bare, _ = replayed(world, Budget(5), urgency=False, safety=False, explore=0.0)
    late, _ = replayed(world, Budget(5), explore=0.0)
    assert same(fresh, bare)
    assert not same(fresh, late)
    for choice in fresh:
        assert (choice.score >= choice.expected).all()  # which no page exceeds that has fewer links
        assert (np.diff(choice.score) <= 1e-12).all()
    assert np.concatenate([np.isclose(choice.score, choice.expected) for choice in fresh]).mean() > 0.5
    assert any((choice.score < choice.expected - 1e-9).any() for choice in late)


def test_a_score_is_expected_links_times_urgency_and_safety() -> None:
    world = tiny_world(living(3), site=SITE)
    policy, crawler = ExpectedHarvest(discount=False), Crawler(world)
    policy.start(crawler.pages)
    policy.observe(crawler.first.visits)
    for cycle in range(1, 20):
        choice = policy.choose(crawler.pages, Budget(N_PAGES), moment(int(world.time[cycle])))
        model = policy.model_.at(hours_of(world, cycle), crawler.pages.related)
        cycle_hours, age = model.cycle_hours, hours_of(world, cycle) - hours_of(world, 0)
        patience = np.clip(0.6931471805599453 * age, 2 * cycle_hours, 14 * cycle_hours)
        predicted, picked = model.predict(hours_of(world, cycle), cycle_hours, patience), choice.page
        size, answers = model.size, predicted.answers[picked]
        most = np.maximum(size, np.ceil(np.nanmean(size)))[picked] * answers  # small pages may grow
        law = (answers, model.shape(picked), model.dispersion)
        expected = np.fmin(predicted.expected[picked], most)
        likely = model.calibration.probability(expected, *law)
        room = np.maximum(size, np.ceil(np.nanmean(size)))[picked]
        assert np.allclose(choice.expected, np.fmin(expected, room * likely))
        score = predicted.expected * predicted.worth.urgency * predicted.worth.safety
        assert np.allclose(choice.score, score[picked])
        policy.observe(crawler.visit(choice.page).visits)


def test_links_may_wait_as_long_as_the_crawl_is_old_but_two_sweeps_at_least() -> None:
    world = tiny_world(living(0), site=SITE)
    for horizon, expected in ((True, [2.0, 2.0, 5 * np.log(2.0), 14.0]), (False, [14.0] * 4)):
        policy, crawler = ExpectedHarvest(horizon=horizon), Crawler(world)
        policy.start(crawler.pages)
        policy.observe(crawler.first.visits)
        began, sweep = hours_of(world, 0), 10.0
        patience = [policy._patience(policy.model_, began + age * sweep, sweep) / sweep for age in (0, 2, 5, 100)]
        np.testing.assert_allclose(patience, expected)


def test_reasons_and_intervals_stay_as_they_were_when_the_model_goes_on_learning() -> None:
    world = tiny_world(living(0), site=SITE)
    policy, crawler = ExpectedHarvest(), Crawler(world)
    policy.start(crawler.pages)
    policy.observe(crawler.first.visits)
    for cycle in range(1, 10):
        choice = policy.choose(crawler.pages, Budget(4), moment(int(world.time[cycle])))
        every = np.arange(len(choice))
        reasons, highs = [choice.why(i) for i in every], choice.spread(every, 0.8).high  # type: ignore[misc]
        policy.observe(crawler.visit(choice.page).visits)
        assert [choice.why(i) for i in every] == reasons
        assert np.array_equal(choice.spread(every, 0.8).high, highs)  # type: ignore[misc]


def test_a_share_of_the_budget_goes_to_pages_that_were_visited_less_than_twice() -> None:
    world = tiny_world(living(4), site=SITE)
    for explore, n_first in ((0.0, 0), (0.5, 2), (1.0, 4)):
        crawler, policy = Crawler(world), ExpectedHarvest(explore=explore)
        policy.start(crawler.pages)
        policy.observe(crawler.first.visits)
        crawler.pages.n_visits[:9] = 2
        choice = policy.choose(crawler.pages, Budget(4), moment(int(world.time[1])))
        size = np.where(crawler.pages.n_answers > 0, [0 if isinstance(s, int) else len(s) for s in living(4)[0]], 0)
        by_size = sorted((9, 10, 11), key=lambda p: (-size[p], p))
        assert choice.page[: min(n_first, 3)].tolist() == by_size[:n_first]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("favour", "speed"),
        ("explore", -0.1),
        ("explore", 1.5),
        ("explore", float("nan")),
        ("patience", 0.0),
        ("patience", float("inf")),
        ("half_life_days", -3.0),
        ("half_life_visits", float("nan")),
    ],
)
def test_a_setting_that_makes_no_sense_is_named_with_its_value(setting: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{setting} is {value!r}"):
        ExpectedHarvest(**{setting: value})


def test_pages_of_every_kind_are_given_a_reason_that_fits() -> None:
    made, why = replayed(tiny_world(living(0), site=SITE), Budget(N_PAGES), explore=0.0)
    reasons = dict(zip(made[-1].page.tolist(), why, strict=True))
    assert len(reasons) == N_PAGES
    assert reasons[7].startswith("its links were never read yet; ")
    assert all("unseen links: " in why for p, why in reasons.items() if p != 7)
    assert any(" also on page " in why for why in reasons.values())
    assert any("half of them gone after" in why for why in reasons.values())
    assert any("likely to answer" in why for p, why in reasons.items() if p != 7)
    for why in reasons.values():
        assert "{" not in why
        assert "nan" not in why
        assert "inf" not in why


def test_a_page_whose_links_stay_is_said_to_hardly_lose_any() -> None:
    stays = [[set(range(2 * t + 2)), set[int]()] for t in range(60)]
    years = [8766.0 * t for t in range(60)]  # more often, and they would look like links that stay for months
    _, reasons = replayed(tiny_world(stays, site=[0, 1], hours=years), Budget(2))
    assert "hardly any leave" in reasons[0]


def test_expected_links_come_near_what_is_found() -> None:
    due = found = 0.0
    for seed in range(3):
        world = tiny_world(living(seed, 100), site=SITE)
        policy, crawler = ExpectedHarvest(), Crawler(world)
        policy.start(crawler.pages)
        policy.observe(crawler.first.visits)
        for cycle in range(1, world.n_cycles + 1):
            choice = policy.choose(crawler.pages, Budget(4), moment(int(world.time[cycle])))
            visits = crawler.visit(choice.page).visits
            if cycle > 20:
                due, found = due + choice.expected.sum(), found + visits.n_found
            policy.observe(visits)
    assert found > 500
    assert 0.85 < due / found < 1.15


@pytest.mark.parametrize(("budget", "explored"), [(1, 2), (2, 4), (3, 6), (4, 8), (7, 14)])
def test_a_quarter_of_any_budget_goes_to_pages_not_visited_twice(budget: int, explored: int) -> None:
    """Fractions of a page are made up for in later cycles."""
    n = 400  # two pages that gain many links, and enough others to be tried
    shows: list[list[Shown]] = [[{10_000 * p + t if p < 2 else p for _ in "x"} for p in range(n)] for t in range(15)]
    world = tiny_world(shows, site=list(range(n)))
    policy, crawler = ExpectedHarvest(), Crawler(world)
    policy.start(crawler.pages)
    policy.observe(crawler.first.visits)
    policy.observe(crawler.visit(np.array([0, 1])).visits)
    n_new = 0
    for cycle in range(2, 10):
        is_new = crawler.pages.is_new.copy()
        predicted = policy._predicted(crawler.pages, Budget(budget), hours_of(world, cycle)).predicted
        first, _ = policy._unexplored(crawler.pages, predicted, Budget(budget), np.ones(n, bool))
        assert is_new[first].all()
        n_new += len(first)
        policy.observe(crawler.visit(first).visits)
    assert n_new == explored


def test_a_page_without_links_may_gain_some() -> None:
    shows: list[list[Shown]] = [
        [{p, *range(1_000 * p, 1_000 * p + 5 * t)} if p else {1} if t == 30 else set() for p in range(6)]
        for t in range(41)
    ]
    world = tiny_world(shows, site=[0] * 6)
    policy, crawler = ExpectedHarvest(), Crawler(world)
    policy.start(crawler.pages)
    policy.observe(crawler.first.visits)
    for _ in range(40):
        policy.observe(crawler.visit(np.arange(6)).visits)
    assert policy.model_.size[0] == 0
    choice = policy.choose(crawler.pages, Budget(6), moment(int(world.time[-1]) + US_PER_HOUR))
    (place,) = np.flatnonzero(choice.page == 0)
    assert choice.expected is not None
    assert choice.expected[place] > 0
    assert choice.spread is not None
    spread = choice.spread(np.array([place]), 0.999)
    assert spread.high[0] > 0
    assert spread.any[0] > 1e-4
