"""The replay and the policies of paper 002 beside `slow`, which was written from the definitions alone."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from made_visits import laid_out
from recrawl.policies import ALL, Budget, Policy, named
from recrawl.policies.budget import Cause
from recrawl.policies.choice import Choice
from recrawl.replay import replay
from recrawl.replay.run import AGE_HOURS
from recrawl.testing import tiny_world
from recrawl.web.urls import page_id
from recrawl.world.pages import Need, Pages, Visits
from recrawl.world.recorded import FAILED, GONE, NOTHING, World
from replay.conftest import Made
from replay.slow import SLOW, SlowWorld, slow_replay

SETTINGS = {"window": 30, "above": 0.6, "memory": None}


def spied(policy: Policy) -> list[Choice]:
    """The choices that a policy is going to make."""
    made: list[Choice] = []
    choose = policy.choose

    def choose_and_tell(pages: Pages, budget: Budget, now: datetime) -> Choice:
        made.append(choose(pages, budget, now))
        return made[-1]

    policy.choose = choose_and_tell  # type: ignore[method-assign]
    return made


def chosen_and_rows(world: World, name: str, budget: Budget, **settings: Any) -> tuple[list[list[str]], list[Any]]:
    policy = named(name, **SETTINGS | settings)
    choices, url = spied(policy), world.url.to_pylist()
    rows = list(replay(world, policy, budget))
    return [[url[page] for page in choice.page] for choice in choices], rows


def assert_alike(world: World, slow: SlowWorld, name: str, k: int, **settings: Any) -> None:
    chosen, rows = chosen_and_rows(world, name, Budget(k), **settings)
    slow_rows = list(slow_replay(slow, SLOW[name](**SETTINGS | settings), k))
    assert len(rows) == len(slow_rows) == world.n_cycles
    for cycle, (pages, row, slow_row) in enumerate(zip(chosen, rows, slow_rows, strict=True), 1):
        assert pages == slow_row.chosen, f"cycle {cycle}"
        assert (row["found"], row["shown_new"]) == (slow_row.found, slow_row.shown_new)
        assert row["current"] == pytest.approx(slow_row.current)
        assert row["ages"] == classes(slow_row.ages)


def classes(ages: list[float]) -> list[int]:
    counts = [0] * (len(AGE_HOURS) + 1)
    for age in ages:
        counts[next((i for i, end in enumerate(AGE_HOURS) if age <= end + 1e-9), len(AGE_HOURS))] += 1
    return counts


@pytest.mark.parametrize("memory", [None, 4])
@pytest.mark.parametrize("k", [8, 12, 20])
@pytest.mark.parametrize("name", SLOW)
def test_every_choice_is_that_of_the_slow_version(made: Made, name: str, k: int, memory: int | None) -> None:
    assert_alike(made.world, made.slow, name, k, memory=memory)


@pytest.mark.parametrize("name", ["windowed-outdegree", "windowed-clique"])
def test_what_leaves_the_window_is_forgotten(made: Made, name: str) -> None:
    assert_alike(made.world, made.slow, name, 8, window=7)


def test_the_made_up_history_holds_what_is_to_be_tested(made: Made) -> None:
    assert made.world.url.to_pylist() == made.slow.pages
    assert made.world.discoverable == made.slow.discoverable > 1_000
    shows = laid_out(made.world, made.world.shows)
    assert set(np.unique(shows[shows < 0])) == {NOTHING, GONE, FAILED}
    assert (shows[0] == NOTHING).any()
    assert (made.recorded.first_cycle > 0).any()
    assert len(made.ends) == made.world.n_cycles + 2  # the first round holds too few pages to be cycle 0
    policy = named("windowed-clique", **SETTINGS)
    choices = spied(policy)
    list(replay(made.world, policy, Budget(10)))
    assert sum((choice.cause == Cause.OVERLAP).sum() for choice in choices if choice.cause is not None) > 10


def test_visiting_all_pages_in_every_cycle_finds_everything_at_once(made: Made) -> None:
    rows = list(replay(made.world, named("round-robin"), Budget(made.world.n_pages)))
    assert sum(row["found"] for row in rows) == made.world.discoverable
    assert all(row["found"] == row["published"] for row in rows)
    up_to_four_hours = AGE_HOURS.index(4.0) + 1  # a cycle takes five
    assert sum(sum(row["ages"][:up_to_four_hours]) for row in rows) == made.world.discoverable
    is_known = np.logical_or.accumulate(laid_out(made.world, made.world.version) >= 0)
    assert all(row["current"] == is_known[row["cycle"]].mean() for row in rows)


@pytest.mark.parametrize("name", [policy.name for policy in ALL if Need.FUTURE not in policy.needs])
def test_no_choice_depends_on_what_was_not_seen_yet(made: Made, name: str) -> None:
    for last in (8, 25):
        before, _ = chosen_and_rows(made.world.until(last + 2), name, Budget(10))
        after, _ = chosen_and_rows(noisy_after(made.world.until(last + 2), last), name, Budget(10))
        assert before[: last + 1] == after[: last + 1]


def test_the_oracle_does_depend_on_it(made: Made) -> None:
    before, _ = chosen_and_rows(made.world, "oracle", Budget(10))
    after, _ = chosen_and_rows(noisy_after(made.world, 8), "oracle", Budget(10))
    assert before[:8] == after[:8]
    assert before[8] != after[8]


def noisy_after(world: World, cycle: int) -> World:
    """The same world up to a cycle; after it every page shows something else, if anything."""
    chance = np.random.default_rng(4)
    later = (world.n_cycles - cycle, world.n_pages)
    shows = chance.integers(FAILED, len(world.sets.sizes), later)
    version, is_baseline = chance.integers(0, 1_000, later), chance.random(later) < 0.1
    after, row = np.nonzero(shows != NOTHING)
    fresh = {
        "row": row,
        "cycle": cycle + 1 + after,
        "shows": shows[after, row],
        "version": version[after, row],
        "is_baseline": is_baseline[after, row],
    }
    n = world.of_cycle(cycle).stop
    changed: dict[str, NDArray[Any]] = {
        name: np.append(getattr(world, name)[:n], values).astype(getattr(world, name).dtype)
        for name, values in fresh.items()
    }
    first = np.where(world.first_shown > cycle, chance.integers(0, world.n_cycles), world.first_shown)
    return replace(world, **changed, first_shown=first.astype(np.int32))


@pytest.mark.parametrize("name", [policy.name for policy in ALL if Need.FUTURE not in policy.needs])
def test_nor_does_it_where_pages_become_known_later_and_show_something_between_records(made: Made, name: str) -> None:
    """Which pages can be visited at all depends on when they are recorded, so that stays."""
    for last in (8, 25):
        world = made.recorded.until(last + 2)
        before, after = (choices_between_records(each, name) for each in (world, others_after(world, last)))
        assert before[: last + 1] == after[: last + 1]


def choices_between_records(world: World, name: str) -> list[list[int]]:
    policy = named(name, **SETTINGS)
    choices = spied(policy)
    list(replay(world, policy, Budget(10)))
    return [choice.page.tolist() for choice in choices]


def others_after(world: World, cycle: int) -> World:
    """The same world up to a cycle; after it every page shows other links and versions, if any."""
    chance = np.random.default_rng(5)
    later = world.cycle > cycle
    shows, version = world.shows.copy(), world.version.copy()
    shows[later & (shows >= 0)] = chance.integers(0, len(world.sets.sizes), (later & (shows >= 0)).sum())
    version[later & (version >= 0)] = chance.integers(0, 1_000, (later & (version >= 0)).sum())
    first = np.where(world.first_shown > cycle, chance.integers(0, world.n_cycles), world.first_shown)
    return replace(world, shows=shows, version=version, first_shown=first.astype(np.int32))


@pytest.mark.parametrize("name", [policy.name for policy in ALL])
def test_a_replay_is_the_same_byte_for_byte(made: Made, name: str) -> None:
    world = made.world.until(20)
    assert as_json(world, name) == as_json(world, name)


def as_json(world: World, name: str) -> str:
    _, rows = chosen_and_rows(world, name, Budget(7))
    return json.dumps([{key: value for key, value in row.items() if key != "seconds"} for row in rows])


def test_a_world_cut_off_is_the_same_up_to_there(made: Made) -> None:
    cut = made.world.until(12)
    assert cut.n_cycles == 12
    assert cut.discoverable == sum(0 < cycle <= 12 for cycle in made.slow.first_shown.values())
    assert (
        chosen_and_rows(cut, "regression", Budget(9))[0] == chosen_and_rows(made.world, "regression", Budget(9))[0][:12]
    )


@pytest.mark.parametrize("name", ["windowed-outdegree", "set-cover", "windowed-clique", "bandit", "oracle"])
def test_in_the_focused_setting_other_links_are_as_if_they_were_not_there(made: Made, name: str) -> None:
    links = sorted({link for cycle in made.slow.shown for shown in cycle.values() for link in shown or ()})
    wanted = set(np.random.default_rng(1).permutation(links)[: len(links) // 3].tolist())
    shown = [
        {page: None if seen is None else seen & wanted for page, seen in cycle.items()} for cycle in made.slow.shown
    ]
    slow = replace(made.slow, shown=shown)
    counts = np.isin(made.world.link, [page_id(link) for link in wanted])
    world = made.world.relevant(counts)
    assert world.discoverable == slow.discoverable < made.world.discoverable
    assert_alike(world, slow, name, 10)


@pytest.mark.parametrize("name", [policy.name for policy in ALL])
def test_a_saved_world_is_replayed_like_the_first_one(made: Made, name: str, tmp_path: Path) -> None:
    world = made.world.until(15)
    world.save(tmp_path)
    loaded = World.load(tmp_path)
    assert loaded.url == world.url
    assert as_json(loaded, name) == as_json(world, name)


def test_a_failed_page_costs_budget_and_reveals_nothing() -> None:
    world = tiny_world([[{1}, {2}], [FAILED, {2, 3}], [{1, 4}, {2, 5}], [{1}, {2, 5}]])
    rows = list(replay(world, named("round-robin"), Budget(1)))
    assert [row["fetches"] for row in rows] == [1, 1, 1]
    assert [row["answered"] for row in rows] == [0, 1, 1]
    assert [row["found"] for row in rows] == [
        0,
        1,
        0,
    ]  # 3 is lost, 5 is found, 4 is gone when the first page is seen again
    assert world.discoverable == 3


def test_a_link_counts_once_however_many_pages_show_it() -> None:
    world = tiny_world([[{1}, {2}], [{1, 9}, {2, 9}], [{9}, {9, 8}]])
    (first, second) = replay(world, named("round-robin"), Budget(2))
    assert (first["found"], first["shown_new"], first["hits"]) == (1, 2, 2)
    assert (second["found"], second["shown_new"], second["hits"]) == (1, 1, 1)


def test_a_link_is_found_soon_if_it_was_first_shown_up_to_four_cycles_before() -> None:
    for n_before, is_soon in ((3, 1), (4, 1), (5, 0)):
        shown = [[{1}, {2}], *([[{1}, {2, 9}]] * (n_before + 1))]
        rows = list(replay(tiny_world(shown), Patient(n_before + 1), Budget(1)))
        assert [row["soon"] for row in rows if row["found"]] == [is_soon]


class Patient(Policy):
    """Looks at the second page in one cycle only."""

    name = "patient"

    def __init__(self, cycle: int) -> None:
        self.cycle = cycle

    def start(self, pages: Pages) -> None:
        self.now_ = 0

    def observe(self, visits: Visits) -> None:
        self.now_ += 1

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        return Choice(page=np.array([1 if self.now_ == self.cycle else 0]), score=np.ones(1))
