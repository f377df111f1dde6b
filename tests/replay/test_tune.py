from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import recrawl as rc
from recrawl.errors import RecrawlError
from recrawl.history import History
from recrawl.plan.default import default_policy, recommend
from recrawl.policies.budget import Budget
from recrawl.replay.summary import summarise
from recrawl.replay.tune import label, tune
from recrawl.report.replays.options import TuneOptions
from recrawl.synth import SynthSettings, batches
from recrawl.web.visit import Visit
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


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Pages that change in every cycle, which no budget keeps current, and pages that change now and then, which one does."""
    history = History.create(tmp_path_factory.mktemp("content") / "history")
    start = datetime(2026, 1, 5, tzinfo=UTC)
    for i in range(24):
        period = 1 if i < 8 else 5 + i
        visits = [
            Visit(url=f"https://e.org/{i}", at=start + timedelta(hours=6 * n), text=f"{n // period}", links=[])
            for n in range(120)
        ]
        history.add(visits)
    return history


def test_for_content_the_policy_that_kept_most_copies_current_is_recommended(copies: History) -> None:
    names = ["round-robin", "change-frequency"]
    tuning = rc.tune(copies, budget=3, policies=names, goal="content", keep=True)
    fresh = {row.policy: row.freshness for row in map(summarise, tuning.runs)}
    replayed = rc.replay(copies, [*names, "freshness-value"], budget=3, goal="content").records()
    assert fresh == {row["policy"]: row["freshness"] for row in replayed}
    assert list(fresh.values()) == sorted(fresh.values(), reverse=True)
    assert repr(tuning).endswith(f"{fresh[tuning.best.policy]:.0%} of the copies current)")
    assert tuning.best.policy == "freshness-value"
    assert tuning.against_round_robin is not None
    gain = fresh["freshness-value"] - fresh["round-robin"]
    assert tuning.against_round_robin.difference == pytest.approx(gain)
    assert tuning.against_round_robin.low <= gain <= tuning.against_round_robin.high
    record = tuning.record("auto")
    assert (record["goal"], record["freshness"]) == ("content", fresh)


def test_a_recommendation_for_content_plans_for_content_only(copies: History) -> None:
    better = rc.tune(copies, budget=3, policies=["lambda-crawl"], goal="content").record("auto")
    recommend(copies, better | {"policy": "lambda-crawl", "settings": {"bounds": [0.01, 4.0], "prior_days": 2.0}})
    plan = rc.plan(copies, budget=3, goal="content")
    assert plan.policy == "lambda-crawl"
    assert "bounds=(0.01, 4.0)" in plan.chosen_by
    assert rc.plan(copies, budget=3).policy == "expected-harvest"
    assert rc.plan(copies, budget=3, goal="content", every="1d").policy == "freshness-value"
    assert rc.plan(copies, budget=3, goal="content", change="digest").policy == "freshness-value"
    assert rc.plan(copies, budget=3, goal="content", rates="simple").chosen_by.count("rates='simple'") == 1
    recommend(copies, better | {"policy": "lost", "place": None})
    assert "lost, which recrawl tune recommended, cannot be used" in default_policy(copies, goal="content").why
    assert default_policy(copies, goal="content").policy == "freshness-value"


def test_with_roots_whole_sites_are_tried_and_the_recommendation_is_for_these_roots(copies: History) -> None:
    assert "whole-sites" in [name for name, _ in TuneOptions(roots="/~*/").tried()]
    assert "whole-sites" not in [name for name, _ in TuneOptions().tried()]
    tuning = rc.tune(copies, budget=3, policies=["whole-sites"], goal="content", roots="host")
    recommend(copies, tuning.record("auto") | {"policy": "whole-sites", "settings": {}})
    assert default_policy(copies, goal="content", roots="host").policy == "whole-sites"
    assert default_policy(copies, goal="content").policy == "freshness-value"
    recommend(copies, tuning.record("auto") | {"policy": "lambda-crawl", "settings": {}, "roots": "domain"})
    assert default_policy(copies, goal="content", roots="host").policy == "lambda-crawl"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"goal": "content", "links": "internal"},
            "goal content counts changes of pages, whatever their links: leave links internal out, or use goal links",
        ),
        ({"change": "digest"}, "change digest is what makes a copy outdated: it needs goal content"),
        ({"goal": "both"}, "No goal named 'both'. Known: links, content"),
        ({"roots": "no.txt"}, "roots: there is no file 'no.txt'; use domain, host, a pattern"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(RecrawlError) as error:
        TuneOptions(**options)  # type: ignore[arg-type]
    assert str(error.value).startswith(sentence)
