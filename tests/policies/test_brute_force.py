"""Everything, as far as the budget reaches."""

from __future__ import annotations

from pathlib import Path

from made_visits import Stage, hours, made_visits, made_world, order, unseen
from recrawl.policies.brute_force import BruteForce
from recrawl.policies.budget import Budget
from recrawl.policies.round_robin import RoundRobin
from recrawl.replay import replay
from recrawl.world.readings import BETWEEN


def test_with_a_budget_for_all_pages_it_finds_everything(tmp_path: Path) -> None:
    world = made_world(tmp_path)
    for between in BETWEEN:
        rows = list(replay(world.with_all_known(), BruteForce(), Budget(world.n_pages), between=between))
        assert sum(row["found"] for row in rows) == world.discoverable > 0
    # Where pages show only what was recorded, every one of them may be visited at any time.
    assert {row["fetches"] for row in rows} == {world.n_pages}


def test_a_smaller_budget_is_kept_and_makes_it_round_robin(tmp_path: Path) -> None:
    world = made_world(tmp_path)
    brute, robin = (
        [(row["found"], row["fetches"]) for row in replay(world, policy, Budget(7))]
        for policy in (BruteForce(), RoundRobin())
    )
    assert brute == robin


def test_a_budget_above_the_number_of_pages_takes_each_once() -> None:
    stage = Stage(BruteForce(), unseen(3)).first()
    stage.see(made_visits(hours(1), [0]))
    choice = stage.policy.choose(stage.pages, Budget(10), hours(3))
    assert order(choice) == [1, 2, 0]
    assert choice.why(2) == "every page is visited in every cycle; waited 2 h"
