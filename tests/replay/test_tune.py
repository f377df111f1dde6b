from datetime import timedelta
from pathlib import Path

import pytest

import recrawl as rc
from recrawl.errors import RecrawlError
from recrawl.history import History
from recrawl.plan.default import default_policy, recommend
from recrawl.policies.budget import Budget
from recrawl.replay.summary import summarise
from recrawl.replay.tune import label, tune
from recrawl.synth import SynthSettings, batches
from recrawl.world.recorded import World
from recrawl.world.recording import record


@pytest.fixture(scope="module")
def hourly(tmp_path_factory: pytest.TempPathFactory) -> tuple[History, World]:
    history = History.create(tmp_path_factory.mktemp("tune") / "history")
    for batch in batches(SynthSettings(pages=60, rounds=40, every=timedelta(hours=6), rhythm=True, terms=False)):
        history.append(batch)
    return history, record(history)


def test_the_policy_that_found_most_is_recommended_and_planned_with(hourly: tuple[History, World]) -> None:
    history, world = hourly
    found = tune(world, Budget(6), ("round-robin", "windowed-outdegree", "bandit"), window=20)
    coverage = {run.policy: summarise(run).coverage for run in found.runs}
    assert found.best.policy == max(coverage, key=lambda name: coverage[name] or 0)
    assert found.against_next is not None
    recommend(history, found.record("auto"))
    chosen = default_policy(history)
    assert chosen.policy == found.best.policy
    assert "recrawl tune recommended" in chosen.why


def test_a_recommended_policy_of_a_file_is_planned_with_until_the_file_is_gone(
    hourly: tuple[History, World], tmp_path: Path
) -> None:
    history, world = hourly
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from recrawl.policies import AverageCount\n\nclass Mine(AverageCount):\n    name = 'mine-of-a-file'\n"
    )
    best = tune(world, Budget(6), (f"{mine}:Mine",))
    recommend(history, best.record("auto"))
    assert default_policy(history).policy == f"{mine}:Mine"
    assert rc.plan(history, budget=3).policy == "mine-of-a-file"
    recommend(history, best.record("auto") | {"place": f"{tmp_path / 'gone.py'}:Mine"})
    assert "mine-of-a-file, which recrawl tune recommended, cannot be used" in default_policy(history).why


def test_a_single_candidate_has_nothing_to_be_compared_with(hourly: tuple[History, World]) -> None:
    found = tune(hourly[1], Budget(6), ("round-robin",))
    assert found.against_next is None
    assert found.against_round_robin is None


def test_a_policy_that_knows_the_future_is_not_recommended(hourly: tuple[History, World]) -> None:
    found = tune(hourly[1], Budget(6), ("oracle", "round-robin", "windowed-outdegree"), window=20)
    assert {run.policy for run in found.runs} == {"round-robin", "windowed-outdegree"}
    with pytest.raises(RecrawlError, match="knows the future"):
        tune(hourly[1], Budget(6), ("oracle",))


def test_policies_that_found_the_same_are_a_tie(hourly: tuple[History, World]) -> None:
    world = hourly[1]
    assert tune(world, Budget(world.n_pages), ("round-robin", "windowed-outdegree")).is_tie
    assert not tune(world, Budget(6), ("round-robin", "windowed-outdegree"), window=20).is_tie


def test_candidates_may_have_settings_which_are_shown_and_kept(hourly: tuple[History, World]) -> None:
    candidates = [("round-robin", {}), ("expected-harvest", {"favour": "freshness"})]
    found = tune(hourly[1], Budget(6), candidates)
    assert label(found.best) == "expected-harvest (favour freshness)"
    assert found.record("crawl")["settings"]["favour"] == "freshness"
    assert found.against_next is not None
    assert found.against_next.policy == "expected-harvest (favour freshness)"


def test_the_default_stays_unless_another_is_better_by_more_than_chance(hourly: tuple[History, World]) -> None:
    close = [("expected-harvest", {"explore": share}) for share in (0.0, 0.1, 0.25, 0.4, 0.6)]
    found = tune(hourly[1], Budget(6), close)
    assert label(found.best) == "expected-harvest" or (found.against_next is not None and found.against_next.low > 0)
    poor = tune(hourly[1], Budget(6), ["round-robin", "expected-harvest"])
    assert poor.best.policy == "expected-harvest"
