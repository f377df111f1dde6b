"""Pages drawn at random: the same for a seed, each page with the same probability."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from made_visits import START, Stage, hours, made_visits, order, unseen
from recrawl.core.arrays import Ints
from recrawl.core.times import microseconds
from recrawl.policies.budget import Budget
from recrawl.policies.random_choice import RandomChoice


def drawn(policy: RandomChoice, n: int = 30, cycles: int = 20, k: int = 5) -> bytes:
    return b"".join(choice.tobytes() for choice in cycle_by_cycle(policy, n, cycles, k))


def cycle_by_cycle(policy: RandomChoice, n: int, cycles: int, k: int) -> Iterator[Ints]:
    stage = Stage(policy, unseen(n))
    for i in range(cycles):
        choice = policy.choose(stage.pages, Budget(k), hours(i))
        yield choice.page
        stage.see(made_visits(hours(i), sorted(choice.page.tolist()), memo=choice.memo))


def test_a_seed_draws_the_same_pages_byte_for_byte() -> None:
    assert drawn(RandomChoice(seed=7)) == drawn(RandomChoice(seed=7))
    assert drawn(RandomChoice(seed=7)) != drawn(RandomChoice(seed=8))


def test_a_policy_that_is_started_again_draws_the_same_again() -> None:
    policy = RandomChoice(seed=3)
    assert drawn(policy) == drawn(policy)


def test_asked_twice_at_the_same_time_it_draws_the_same_and_then_others() -> None:
    stage = Stage(RandomChoice(), unseen(30)).first()
    first, again = (order(stage.policy.choose(stage.pages, Budget(5), hours(3))) for _ in range(2))
    assert first == again
    stage.see(made_visits(hours(2), sorted(first)))  # whatever it has seen
    assert order(stage.policy.choose(stage.pages, Budget(5), hours(3))) == first
    assert order(stage.policy.choose(stage.pages, Budget(5), hours(4))) != first


def test_every_page_has_the_same_probability() -> None:
    n = np.zeros(20)
    for page in cycle_by_cycle(RandomChoice(), 20, 2000, 5):
        n[page] += 1
    assert abs(n - 500).max() < 5 * np.sqrt(2000 * 0.25 * 0.75)


def test_the_reason_names_the_lot() -> None:
    stage = Stage(RandomChoice(seed=0), unseen(3))
    stage.pages.n_visits[:] = 2  # new pages have a reason of their own
    choice = stage.policy.choose(stage.pages, Budget(1), START)
    lot = np.random.default_rng([0, microseconds(START), 0]).random(3)
    assert order(choice) == [int(lot.argmax())]
    assert choice.why(0) == f"drew lot {lot.max():.4f}"
