"""What a plan is made for: new links, changed content, or both; and what counts as a change."""

from __future__ import annotations

import typing
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from made_goals import DAY, N_DAYS, NOW, START, goal_history, on, page, trembles, turns, two_wordy_pages, watched, wordy
from planning import explain, make, request, surveyed
from recrawl.history import History
from recrawl.history.plans import PLANS, stored
from recrawl.plan.default import default_policy, recommend
from recrawl.plan.formats import FORMATS, records
from recrawl.plan.options import GOALS
from recrawl.plan.plan import Plan
from recrawl.plan.planner import make_plan
from recrawl.plan.score import scores, store
from recrawl.policies import Policy, named
from recrawl.policies.links_and_content import LinksAndContent
from recrawl.web.visit import Visit


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return goal_history(tmp_path_factory.mktemp("goals") / "history")


def policy_for(goal: str) -> Policy:
    return {"links": named("average-count"), "content": named("freshness-value"), "both": LinksAndContent()}[goal]


def planned(history: History, goal: str, **options: typing.Any) -> Plan:
    return make(history, policy_for(goal), request(options.pop("pages", 1), goal=goal, **options), NOW)


def names(plan: Plan) -> list[str]:
    return [url.removeprefix("https://e.org/") for url in plan.url.to_pylist()]


@pytest.mark.parametrize(("goal", "best"), [("links", "bursts"), ("content", "ticker"), ("both", "mixed")])
def test_each_goal_picks_another_page(history: History, goal: str, best: str) -> None:
    assert names(planned(history, goal)) == [best]


def test_the_weight_leads_from_one_goal_to_the_other(history: History) -> None:
    best = [
        names(make(history, LinksAndContent(weight), request(1, goal="both"), NOW))[0] for weight in (0, 0.3, 0.8, 1)
    ]
    assert best == ["ticker", "mixed", "bursts", "bursts"]


def test_every_page_has_both_numbers(history: History) -> None:
    for goal in GOALS:
        rows = {row["url"]: row for row in records(planned(history, goal, pages=4))}
        changed = {name: rows[page(name)]["probability_changed"] for name in ("bursts", "mixed", "ticker", "quiet")}
        assert changed == pytest.approx({"bursts": 0.1, "mixed": 0.6, "ticker": 0.8, "quiet": 0.0}, abs=0.09)
        assert rows[page("mixed")]["expected_new_links"] == pytest.approx(1.2, abs=0.3)
    plan = planned(history, "both")
    assert plan.reason == [
        f"1.2 new links and {plan.probability_changed[0]:.0%} changed expected, last visit 24.0 h ago"
    ]


def test_the_yield_counts_what_the_goal_asks_for(history: History) -> None:
    for goal in GOALS:
        plan = planned(history, goal, pages=2)
        gain = plan.probability_changed if goal == "content" else plan.expected
        assert plan.yield_by_budget[1] == pytest.approx(gain.sum())
        assert plan.changed_by_budget[1] == pytest.approx(plan.probability_changed.sum())
        assert len(plan.links_by_budget) == len(plan.changed_by_budget) == 4
        if goal != "both":  # there the policy has one number for both
            assert plan.worth.tolist() == gain.tolist()
        assert (np.diff(plan.worth) <= 0).all()
        nutch = b"".join(FORMATS["nutch"](plan)).decode()
        assert f"nutch.score={plan.worth[0]:.4f}" in nutch


@pytest.mark.parametrize("goal", GOALS)
def test_budget_caps_gaps_and_exclusions_hold_for_every_goal(tmp_path: Path, goal: str) -> None:
    history = History.create(tmp_path / "h")
    for host in ("e.org", "f.org"):
        for i in range(4):
            watched(history, f"p{i}", on(2 + 4 * i), i, host)
    history.add([Visit(url=page("gone"), at=START + day * DAY, status=404) for day in range(3)])
    for budget in (0, 1, 3, 99):
        plan = planned(history, goal, pages=budget)
        assert len(plan) == len(set(plan.page.tolist())) == min(budget, 8)
    assert sorted(planned(history, goal, pages=99, per_host=1).host) == ["e.org", "f.org"]
    assert set(planned(history, goal, pages=99, exclude=["https://f.org/"]).host) == {"e.org"}
    assert planned(history, goal, pages=99, min_gap=2 * DAY).left_out["too soon"] == 8
    assert len(planned(history, goal, pages=99, retry_gone=True)) == 9


def test_the_threshold_is_about_what_the_goal_asks_for(history: History) -> None:
    picked = {goal: sorted(names(planned(history, goal, pages=9, threshold=0.5))) for goal in GOALS}
    assert picked == {"links": ["mixed"], "content": ["mixed", "ticker"], "both": ["mixed", "ticker"]}


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Pages whose changes and new links have little to do with each other."""
    history, random = History.create(tmp_path_factory.mktemp("many") / "history"), np.random.default_rng(4)
    for i in range(40):
        watched(history, f"{i:02}", on(int(random.integers(1, N_DAYS))), int(random.integers(0, 5)))
    return history


def test_weight_1_is_the_order_of_expected_links_and_0_that_of_probable_change(many: History) -> None:
    for weight, by in ((1.0, "expected"), (0.0, "probability_changed")):
        plan = make(many, LinksAndContent(weight), request(99, goal="both"), NOW)
        assert (np.diff(getattr(plan, by)) <= 0).all()
        assert len(plan) == 40


@pytest.mark.parametrize("weight", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_a_page_with_more_of_both_is_never_below_another(many: History, weight: float) -> None:
    plan = make(many, LinksAndContent(weight), request(99, goal="both"), NOW)
    links, changed = plan.expected, plan.probability_changed
    better = (links[:, None] >= links) & (changed[:, None] >= changed)
    better &= (links[:, None] > links) | (changed[:, None] > changed)
    assert better.any()
    assert not np.tril(better).any()  # [i, j]: page i, of a lower rank, beats page j


def changing(rates: np.ndarray, n_days: int, random: np.random.Generator, first: int = 0) -> list[Visit]:
    """Pages whose text changes at random, visited on most days."""
    return [
        Visit(url=page(f"{i:03}"), at=START + day * DAY, links=[page("a")], text=str(version))
        for i, versions in enumerate(np.cumsum(random.poisson(rates[:, None], (len(rates), n_days)), axis=1))
        for day, version in enumerate(versions)
        if day >= first and (day == n_days - 1 or random.random() < 0.7)
    ]


def test_as_many_pages_change_as_the_plan_expects(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rates = random.gamma(0.5, 0.6, 500) * (random.random(500) < 0.8)
    visits, made_at = changing(rates, 9, random), START + 8 * DAY - timedelta(minutes=1)
    history = History.create(tmp_path / "h")
    history.add(visit for visit in visits if visit.at < made_at)
    plan = make(history, LinksAndContent(0.0), request(500, goal="both"), made_at)
    store(history, plan)
    store(history, make(history, LinksAndContent(0.0), request(60, goal="both"), made_at - timedelta(minutes=1)))
    assert [score.changed for score in scores(history)] == [0, 0]
    history.add(visit for visit in visits if visit.at > made_at)
    _, score = scores(History.open(tmp_path / "h"))
    assert score.compared == score.visited == len(plan) > 450
    assert score.expected_changed == pytest.approx(plan.probability_changed.sum())
    assert score.changed == pytest.approx(score.expected_changed, rel=0.15)
    by_page = {visit.url: visit.text for visit in visits if visit.at < made_at}
    after = {visit.url: visit.text for visit in visits if visit.at > made_at}
    assert score.changed == sum(by_page[url] != after[url] for url in plan.url.to_pylist())
    best = plan.url.to_pylist()[:100]
    expected = plan.probability_changed[:100].sum()
    assert sum(by_page[url] != after[url] for url in best) == pytest.approx(expected, rel=0.15)


def test_plans_stored_before_changes_were_expected_can_still_be_read_and_scored(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    watched(history, "mixed", on(12), 2)
    old = make(history, LinksAndContent(), request(1), START + 5.5 * DAY)
    store(history, old)
    rows = stored(history.beside)
    older = pa.schema([field for field in PLANS if field.name != "changed"])
    rows = rows.select(older.names).cast(older)
    write_deltalake(tmp_path / "h" / "plans", rows, mode="overwrite", schema_mode="overwrite")
    store(history, make(history, LinksAndContent(), request(1, goal="both"), START + 8.5 * DAY))
    first, second = scores(history)
    assert (first.visited, first.changed, first.expected_changed) == (1, None, None)
    assert second.visited == second.compared == 1
    assert stored(history.beside)["changed"].null_count == 1
    assert first.record()["expected"] > 0


def test_explain_gives_both_numbers(history: History) -> None:
    situation = surveyed(history.as_of(NOW), LinksAndContent())
    explanation = explain(situation, request(1, goal="both"), page("ticker"), NOW)
    assert (explanation.is_picked, explanation.policy) == (False, "links-and-content")
    assert (explanation.n_changed, explanation.n_compared) == (16, N_DAYS)
    assert explanation.probability_changed == pytest.approx(0.8, abs=0.09)
    plan = make_plan(situation, request(2, goal="both"), NOW)
    for url in situation.url.to_pylist():
        assert explain(situation, request(2, goal="both"), url, NOW).is_picked == (url in plan.url.to_pylist())


def test_what_was_tuned_for_links_does_not_plan_for_content(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    recommend(history, {"policy": "bandit", "every": "auto"})
    assert default_policy(history).policy == "bandit"
    assert default_policy(history, goal="content").policy == "freshness-value"


def test_experts_read_words_when_they_plan(tmp_path: Path) -> None:
    made = History.create(tmp_path / "history")
    for name, at in (("a", on(10)), ("b", on(7)), ("c", on(4))):
        watched(made, name, at, 0)
    policy = named("related-experts", n_train=8, k=2)
    plan = make(made, policy, request(3, goal="content"), NOW)
    assert len(plan) == 3
    assert not any("words are not known" in reason for reason in plan.reason)


# -- what counts as a change ----------------------------------------------------------------------------------------------


@pytest.fixture
def two_pages(tmp_path: Path) -> History:
    return two_wordy_pages(tmp_path / "h")


def test_a_plan_by_a_notion_of_change_does_not_count_what_it_ignores(two_pages: History) -> None:
    plans = {
        change: make(two_pages, named("freshness-value"), request(2, goal="content", change=change), START + 19.5 * DAY)
        for change in ("any", "significant")
    }
    likely = {change: dict(zip(names(plan), plan.probability_changed, strict=True)) for change, plan in plans.items()}
    assert likely["any"]["trembles"] > likely["any"]["turns"] > 0.2
    assert likely["significant"]["trembles"] < 0.1 < likely["significant"]["turns"]


@pytest.mark.parametrize(("change", "changed"), [("any", 2), ("significant", 1), ("shingles:0.9", 1), ("digest", 2)])
def test_a_plan_is_scored_by_its_own_notion_of_change(two_pages: History, change: str, changed: int) -> None:
    made_at = START + 19.5 * DAY
    store(two_pages, make(two_pages, named("freshness-value"), request(2, goal="content", change=change), made_at))
    for name, words in (("trembles", trembles), ("turns", turns)):
        wordy(two_pages, name, words, range(20, 21))  # both are others than on day 19
    (score,) = scores(History.open(two_pages.store.folder))
    assert (score.compared, score.changed, score.change) == (2, changed, change)


def test_plans_stored_before_notions_were_kept_count_any_change(two_pages: History) -> None:
    store(two_pages, make(two_pages, named("freshness-value"), request(2, goal="content"), START + 10.5 * DAY))
    older = pa.schema([field for field in PLANS if field.name != "change"])
    rows = stored(two_pages.beside).select(older.names).cast(older)
    write_deltalake(two_pages.store.folder / "plans", rows, mode="overwrite", schema_mode="overwrite")
    (score,) = scores(two_pages)
    assert (score.change, score.compared) == ("any", 2)
