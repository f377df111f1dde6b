"""One number per page: the last count, the mean count, the share of visits with a change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from made_visits import Stage, hours, made_visits, made_world, order, unseen
from recrawl.core.times import moment
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.counts import AverageCount, ContentChangeRate, PreviousCount
from recrawl.world.crawler import Crawler

ALL = (PreviousCount, AverageCount, ContentChangeRate)


def after_three_visits(policy: Policy) -> Stage:
    stage = Stage(policy, unseen(3)).first()
    stage.see(made_visits(hours(1), [0, 1, 2], n_new_since=[9, 2, 0], changed=[1, 1, 0]))
    stage.see(made_visits(hours(2), [0, 1, 2], n_new_since=[0, 3, 1], changed=[0, 1, 1]))
    return stage


def test_previous_count_uses_the_last_visit_only() -> None:
    stage = after_three_visits(PreviousCount())
    choice = stage.policy.choose(stage.pages, Budget(3), hours(3))
    assert order(choice) == [1, 2, 0]
    assert choice.expected is not None
    assert choice.expected.tolist() == [3, 1, 0]
    assert choice.why(0) == "3 new links at the last visit"


def test_average_count_is_the_mean_of_all_visits_but_the_first() -> None:
    stage = after_three_visits(AverageCount())
    choice = stage.policy.choose(stage.pages, Budget(3), hours(3))
    assert order(choice) == [0, 1, 2]
    assert choice.expected is not None
    assert choice.expected.tolist() == [4.5, 2.5, 0.5]
    assert choice.why(0) == "4.5 new links per visit over 2 visits"


def test_content_change_rate_is_the_share_of_visits_with_a_change() -> None:
    stage = after_three_visits(ContentChangeRate())
    choice = stage.policy.choose(stage.pages, Budget(3), hours(3))
    assert order(choice) == [1, 0, 2]
    assert choice.score.tolist() == [1.0, 0.5, 0.5]
    assert choice.why(0) == "changed at 2 of 2 visits"


@pytest.mark.parametrize("make", ALL)
def test_pages_not_yet_visited_again_come_first(make: type[Policy]) -> None:
    stage = Stage(make(), unseen(4)).first()
    stage.see(made_visits(hours(1), [0, 2], n_new_since=[5, 7], changed=1))
    assert order(stage.policy.choose(stage.pages, Budget(4), hours(2)))[:2] == [1, 3]


@pytest.mark.parametrize("make", ALL)
def test_failed_visits_and_visits_with_nothing_to_compare_with_say_nothing(make: type[Policy]) -> None:
    stage = after_three_visits(make())
    before = stage.policy.choose(stage.pages, Budget(3), hours(3))
    stage.see(made_visits(hours(3), [0, 1], answered=False))
    stage.see(made_visits(hours(4), [0, 1], n_new_since=-1, changed=-1))
    after = stage.policy.choose(stage.pages, Budget(3), hours(5))
    assert (order(before), before.score.tolist()) == (order(after), after.score.tolist())


def test_what_is_kept_equals_what_the_whole_record_of_visits_tells(tmp_path: Path) -> None:
    world = made_world(tmp_path)
    policies = [make() for make in ALL]
    crawler = Crawler(world)
    for policy in policies:
        policy.start(crawler.pages)
        policy.observe(crawler.first.visits)
    new, changed = defaultdict(list), defaultdict(list)
    random = np.random.default_rng(1)
    for _ in range(world.n_cycles):
        visits = crawler.visit(random.choice(world.n_pages, 30, replace=False)).visits
        for policy in policies:
            policy.observe(visits)
        for i, page in enumerate(visits.page.tolist()):
            if visits.n_new_since[i] >= 0:
                new[page].append(int(visits.n_new_since[i]))
                changed[page].append(int(visits.changed[i]))
    everything = Budget(world.n_pages)
    choices = [policy.choose(crawler.pages, everything, moment(int(world.time[-1]))) for policy in policies]
    slow: tuple[Callable[[int], float], ...] = (
        lambda p: new[p][-1],
        lambda p: sum(new[p]) / len(new[p]),
        lambda p: sum(changed[p]) / len(changed[p]),
    )
    for choice, expected in zip(choices, slow, strict=True):
        for page, score in zip(choice.page.tolist(), choice.score.tolist(), strict=True):
            assert score == pytest.approx(expected(page) if new[page] else 0.0)
