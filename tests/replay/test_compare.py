from dataclasses import replace

import numpy as np
import pytest

from recrawl.replay import Replayed, against, compare
from recrawl.replay.compare import p_value


def run(policy: str, found: list[int], published: list[int], per_day: int = 4) -> Replayed:
    rows = [
        {
            "at": f"2026-01-{1 + i // per_day:02d}T{i % per_day:02d}:00:00+00:00",
            "found": f,
            "after": [[0, f]],  # all in the cycle in which they were published
            "published": p,
        }
        for i, (f, p) in enumerate(zip(found, published, strict=True))
    ]
    return Replayed(policy=policy, paper=None, sees_future=False, settings={}, budget=10, rows=rows)


def made(n_days: int, gain: float, seed: int = 1) -> tuple[Replayed, Replayed]:
    """Two policies; the first finds `gain` of the published more, day by day with some luck."""
    chance = np.random.default_rng(seed)
    published = chance.integers(20, 60, 4 * n_days)
    other = chance.binomial(published, 0.5)
    one = np.minimum(published, other + chance.binomial(published, abs(gain)))
    return run("one", one.tolist(), published.tolist()), run("other", other.tolist(), published.tolist())


def plain_differences(one: Replayed, other: Replayed, samples: int, seed: int) -> list[float]:
    """The definition, day by day and draw by draw."""
    days: dict[str, list[float]] = {}
    for a, b in zip(one.rows, other.rows, strict=True):
        sums = days.setdefault(a["at"][:10], [0.0, 0.0, 0.0])
        for i, value in enumerate((a["found"], b["found"], a["published"])):
            sums[i] += value
    chance, blocks = np.random.default_rng(seed), list(days.values())
    found = []
    for _ in range(samples):
        drawn = [blocks[i] for i in chance.integers(0, len(blocks), len(blocks))]
        covered = [sum(day[i] for day in drawn) / sum(day[2] for day in drawn) for i in (0, 1)]
        found.append(covered[0] - covered[1])
    return found


@pytest.mark.parametrize("gain", [0.0, 0.01, 0.2])
def test_the_bootstrap_agrees_with_its_definition_written_out(gain: float) -> None:
    one, other = made(20, gain)
    found = compare(one, other)
    drawn = plain_differences(one, other, 4000, seed=9)
    low, high = np.quantile(drawn, [0.025, 0.975])
    spread = float(np.std(drawn))
    assert found.low == pytest.approx(low, abs=0.15 * spread + 1e-12)
    assert found.high == pytest.approx(high, abs=0.15 * spread + 1e-12)
    assert found.p_value == pytest.approx(p_value(np.array(drawn)), abs=0.04)


def test_the_difference_is_that_of_the_coverages() -> None:
    found = compare(run("one", [5, 5, 6], [10, 10, 10], 1), run("other", [2, 4, 1], [10, 10, 10], 1))
    assert found.difference == pytest.approx(16 / 30 - 7 / 30)
    assert (found.policy, found.against, found.budget, found.days) == ("one", "other", 10, 3)


def test_a_constant_gain_has_no_spread_and_is_no_chance() -> None:
    found = compare(run("one", [6] * 48, [10] * 48), run("other", [5] * 48, [10] * 48))
    assert found.low == pytest.approx(0.1)
    assert found.high == pytest.approx(0.1)
    assert found.is_significant
    assert found.note == ""


def test_equal_policies_differ_by_nothing() -> None:
    found = compare(*(run(name, [3] * 48, [10] * 48) for name in ("one", "other")))
    assert (found.difference, found.p_value, found.is_significant) == (0.0, 1.0, False)


def test_the_same_seed_gives_the_same_interval_and_the_other_way_round_its_opposite() -> None:
    one, other = made(15, 0.05)
    assert compare(one, other, seed=4) == compare(one, other, seed=4)
    found, turned = compare(one, other, seed=4), compare(other, one, seed=4)
    assert (turned.difference, turned.low, turned.high) == pytest.approx((-found.difference, -found.high, -found.low))
    assert turned.p_value == found.p_value


def test_few_days_are_noted() -> None:
    found = compare(*made(3, 0.1))
    assert found.note == "only 3 days: a rough interval"
    alone = compare(*made(1, 0.1))
    assert (alone.low, alone.p_value, alone.is_significant) == (None, None, False)
    assert alone.note.startswith("one day only")
    assert alone.difference is not None


def test_days_without_any_link_do_no_harm() -> None:
    found = compare(run("one", [1, 0, 0], [2, 0, 0], 1), run("other", [0, 0, 0], [2, 0, 0], 1))
    assert (found.difference, found.low, found.high) == (0.5, 0.5, 0.5)
    nothing = compare(run("one", [0, 0], [0, 0], 1), run("other", [0, 0], [0, 0], 1))
    assert nothing.difference is None


def test_only_runs_with_the_same_budget_and_the_same_cycles_are_compared() -> None:
    one, other = made(5, 0.1)
    more = replace(one, policy="more", budget=20)
    assert [found.policy for found in against([one, other, more], other)] == ["one"]
    with pytest.raises(ValueError, match="not replayed over the same cycles"):
        compare(one, made(6, 0.1)[1])
