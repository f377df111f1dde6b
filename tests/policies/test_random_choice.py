"""Lots: the same for a seed, each page with the same chance."""

from __future__ import annotations

import numpy as np

from made_visits import START, Stage, hours, order, unseen
from recrawl.policies.budget import Budget
from recrawl.policies.random_choice import RandomChoice


def drawn(policy: RandomChoice, n: int = 30, cycles: int = 20, k: int = 5) -> bytes:
    stage = Stage(policy, unseen(n))
    return b"".join(policy.choose(stage.pages, Budget(k), hours(i)).page.tobytes() for i in range(cycles))


def test_a_seed_draws_the_same_pages_byte_for_byte() -> None:
    assert drawn(RandomChoice(seed=7)) == drawn(RandomChoice(seed=7))
    assert drawn(RandomChoice(seed=7)) != drawn(RandomChoice(seed=8))


def test_a_policy_that_is_started_again_begins_its_draws_anew() -> None:
    policy = RandomChoice(seed=3)
    assert drawn(policy) == drawn(policy)


def test_every_page_has_the_same_chance() -> None:
    stage = Stage(RandomChoice(), unseen(20))
    n = np.zeros(20)
    for i in range(2000):
        n[stage.policy.choose(stage.pages, Budget(5), hours(i)).page] += 1
    assert abs(n - 500).max() < 5 * np.sqrt(2000 * 0.25 * 0.75)


def test_the_reason_names_the_lot() -> None:
    stage = Stage(RandomChoice(seed=0), unseen(3))
    choice = stage.policy.choose(stage.pages, Budget(1), START)
    lot = np.random.default_rng(0).random(3)
    assert order(choice) == [int(lot.argmax())]
    assert choice.why(0) == f"drew lot {lot.max():.4f}"
