import json
import math
import typing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from tests.made_visits import days, made_visits
from typer.testing import CliRunner

from planning import explain, make, request
from recrawl.cli import app
from recrawl.history import History
from recrawl.history.plans import PLANS, stored
from recrawl.models.change_expectation import RATES, ChangeExpectation
from recrawl.plan.default import default_policy, recommend
from recrawl.plan.formats import FORMATS, records
from recrawl.plan.options import GOALS
from recrawl.plan.plan import Plan
from recrawl.plan.planner import make_plan
from recrawl.plan.score import scores, store
from recrawl.plan.survey import survey
from recrawl.policies import Policy, named
from recrawl.policies.links_and_content import LinksAndContent, weighed
from recrawl.testing import check_generated, check_policy
from recrawl.web.visit import Visit

START = datetime(2026, 1, 5, tzinfo=UTC)
DAY = timedelta(days=1)
N_DAYS = 20
NOW = START + (N_DAYS + 1) * DAY


def page(name: str, host: str = "e.org") -> str:
    return f"https://{host}/{name}"


def watched(history: History, name: str, changes_at: set[int], new_links: int, host: str = "e.org") -> None:
    """A page that was visited daily; on some days its text is another, and it has so many links more."""
    visits, n_links, text = [], 5, 0
    for day in range(N_DAYS + 1):
        if day in changes_at:
            n_links, text = n_links + new_links, day
        links = [page(f"{name}/{i}", host) for i in range(n_links)]
        visits.append(Visit(url=page(name, host), at=START + day * DAY, links=links, text=f"as of {text}"))
    history.add(visits)


def on(n: int) -> set[int]:
    """So many days, evenly spread."""
    return {round(N_DAYS * (i + 1) / n) for i in range(n)}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """New links a day 1.6, 1.2 and none; changes a visit 0.1, 0.6, 0.8 and none."""
    made = History.create(tmp_path_factory.mktemp("goals") / "history")
    watched(made, "bursts", on(2), 16)
    watched(made, "mixed", on(12), 2)
    watched(made, "ticker", on(16), 0)
    watched(made, "quiet", set(), 0)
    return made


def policy_for(goal: str) -> Policy:
    return {"links": named("average-count"), "content": named("freshness-value"), "both": LinksAndContent()}[goal]


def planned(history: History, goal: str, **asked: typing.Any) -> Plan:
    return make(history, policy_for(goal), request(asked.pop("pages", 1), goal=goal, **asked), NOW)


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


def test_every_page_is_told_with_both_numbers(history: History) -> None:
    for goal in GOALS:
        told = {row["url"]: row for row in records(planned(history, goal, pages=4))}
        changed = {name: told[page(name)]["probability_changed"] for name in ("bursts", "mixed", "ticker", "quiet")}
        assert changed == pytest.approx({"bursts": 0.1, "mixed": 0.6, "ticker": 0.8, "quiet": 0.0}, abs=0.09)
        assert told[page("mixed")]["expected_new_links"] == pytest.approx(1.2, abs=0.3)
    plan = planned(history, "both")
    assert plan.reason == [
        f"1.2 new links and {plan.probability_changed[0]:.0%} changed expected, last visit 24.0 h ago"
    ]


def test_the_yield_counts_what_the_goal_asks_for(history: History) -> None:
    for goal in GOALS:
        plan = planned(history, goal, pages=2)
        gain = plan.probability_changed if goal == "content" else plan.expected
        assert plan.yield_by_budget[1] == pytest.approx(gain.sum())
        assert plan.gain_at_cut == pytest.approx(plan.yield_by_budget[2] - plan.yield_by_budget[1])
        assert plan.changed_by_budget[1] == pytest.approx(plan.probability_changed.sum())
        assert len(plan.links_by_budget) == len(plan.changed_by_budget) == 4
        nutch = b"".join(FORMATS["nutch"](plan)).decode()
        assert f"nutch.score={gain[0]:.4f}" in nutch


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
    told = {goal: sorted(names(planned(history, goal, pages=9, threshold=0.5))) for goal in GOALS}
    assert told == {"links": ["mixed"], "content": ["mixed", "ticker"], "both": ["mixed", "ticker"]}


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_the_policy_for_both_keeps_the_contract_of_policies(weight: float) -> None:
    check_policy(lambda: LinksAndContent(weight))
    check_generated(lambda: LinksAndContent(weight), 20)


@pytest.mark.parametrize("weight", [-0.1, 1.1, math.nan])
def test_a_weight_beyond_its_bounds_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="from 0"):
        LinksAndContent(weight)


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
def test_a_page_that_promises_more_of_both_is_never_below_another(many: History, weight: float) -> None:
    plan = make(many, LinksAndContent(weight), request(99, goal="both"), NOW)
    links, changed = plan.expected, plan.probability_changed
    better = (links[:, None] >= links) & (changed[:, None] >= changed)
    better &= (links[:, None] > links) | (changed[:, None] > changed)
    assert better.any()
    assert not np.tril(better).any()  # [i, j]: page i, of a lower rank, beats page j


gains = st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1)), min_size=1, max_size=20)


@given(gains, st.floats(0, 1))
def test_the_weighed_gain_grows_with_both(pairs: list[tuple[float, float]], weight: float) -> None:
    links, changed = np.array(pairs).T
    score = weighed(links, changed, weight, np.ones(len(links), np.bool_))
    assert np.isfinite(score).all()
    no_worse = (links[:, None] >= links) & (changed[:, None] >= changed)
    assert (score[:, None] >= score)[no_worse].all()


def test_gains_that_no_page_promises_do_not_count() -> None:
    none, some, everyone = np.zeros(3), np.array([1.0, 2.0, 3.0]), np.ones(3, np.bool_)
    assert weighed(none, some, 0.5, everyone).tolist() == [0.25, 0.5, 0.75]
    assert weighed(some, none, 0.5, ~everyone).tolist() == [0.0, 0.0, 0.0]


def test_the_probability_of_change_is_that_of_a_slow_version() -> None:
    """Page by page, rate by rate, with plain numbers: irregular visits, one that failed, one page never compared."""
    told = ChangeExpectation(4)
    told.observe(made_visits(days(0), [0, 1, 2, 3], changed=[-1, -1, -1, -1]))
    told.observe(made_visits(days(1), [0, 1], changed=[1, 0]))
    told.observe(made_visits(days(3), [0, 2], changed=[0, 0], answered=[True, False]))
    told.observe(made_visits(days(7), [0, 1, 2], changed=[1, 0, 1]))
    intervals = {0: [(1, 1), (2, 0), (4, 1)], 1: [(1, 0), (6, 0)], 2: [(7, 1)], 3: []}
    waited = {0: 3, 1: 3, 2: 3, 3: 10}
    shares = told.shares
    assert shares.sum() == pytest.approx(1.0)
    for i, seen in intervals.items():
        fits = [math.prod((1 - math.exp(-r * d)) if c else math.exp(-r * d) for d, c in seen) for r in RATES]
        total = sum(share * fit for share, fit in zip(shares, fits, strict=True))
        changed = sum(s * f * (1 - math.exp(-r * waited[i])) for s, f, r in zip(shares, fits, RATES, strict=True))
        assert told.expect(days(10))[i] == pytest.approx(changed / total, rel=1e-5)
    assert told.expect(days(10), np.array([2, 0])).tolist() == pytest.approx(told.expect(days(10))[[2, 0]].tolist())
    assert told.n_changed.tolist() == [2, 0, 1, 0]
    assert told.n_compared.tolist() == [3, 2, 1, 0]


def test_without_any_comparison_every_page_is_equally_likely_to_have_changed() -> None:
    told = ChangeExpectation(3)
    told.observe(made_visits(days(0), [0, 1], changed=[-1, -1]))
    first, second, _ = told.expect(days(1))
    assert 0 < first == second < 1
    assert len(ChangeExpectation(0).expect(days(1))) == 0


def test_pages_that_always_changed_are_not_taken_to_change_much_faster_than_they_were_visited() -> None:
    """Weekly visits cannot tell every day from every minute: the slowest rate that explains them is ln 100 / 7 a day."""
    told = ChangeExpectation(50)
    for week in range(8):
        told.observe(made_visits(days(7 * week), range(50), changed=1 if week else -1))
    assert (told.expect(days(7 * 8)) > 0.9).all()
    assert (told.expect(days(7 * 7 + 0.25)) < 1 - 100 ** (-0.25 * 1.26 / 7)).all()  # rates are steps of 1.26


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
    came = {visit.url: visit.text for visit in visits if visit.at > made_at}
    assert score.changed == sum(by_page[url] != came[url] for url in plan.url.to_pylist())
    best = plan.url.to_pylist()[:100]
    expected = plan.probability_changed[:100].sum()
    assert sum(by_page[url] != came[url] for url in best) == pytest.approx(expected, rel=0.15)


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


def test_explain_tells_both_numbers(history: History) -> None:
    situation = survey(history.as_of(NOW), LinksAndContent())
    told = explain(situation, request(1, goal="both"), page("ticker"), NOW)
    assert (told.is_picked, told.policy) == (False, "links-and-content")
    assert (told.n_changed, told.n_compared) == (16, N_DAYS)
    assert told.probability_changed == pytest.approx(0.8, abs=0.09)
    plan = make_plan(situation, request(2, goal="both"), NOW)
    for url in situation.url.to_pylist():
        assert explain(situation, request(2, goal="both"), url, NOW).is_picked == (url in plan.url.to_pylist())


def test_what_was_tuned_for_links_does_not_plan_for_content(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    recommend(history.store.folder, {"policy": "bandit", "every": "crawl"})
    assert default_policy(history).policy == "bandit"
    assert default_policy(history, goal="content").policy == "freshness-value"


def test_the_command_knows_every_goal() -> None:
    assert tuple(goal.value for goal in Told) == GOALS


def asked(history: History, *arguments: str) -> str:
    options = ["--history", str(history.store.folder), "--as-of", NOW.isoformat()]
    result = CliRunner().invoke(app, [*arguments, *options])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_commands_take_a_goal(history: History) -> None:
    plan = ("plan", "--budget", "1", "--dry-run")
    told = asked(history, *plan, "--goal", "content")
    assert "by freshness-value" in told
    assert "changed pages expected" in told
    assert "one page more would bring" in told
    told = asked(history, *plan, "--goal", "both", "--weight", "0.5")
    (row,) = (json.loads(line) for line in asked(history, *plan, "--goal", "both", "--json").splitlines())
    assert row["url"] == page("mixed")
    sentence = f"1 of 4 known pages, 1.2 new links and {row['probability_changed']:.2g} changed pages expected"
    assert sentence in " ".join(told.split())
    said = asked(history, "explain", page("mixed"), "--goal", "both", "--budget", "1")
    assert f"{row['probability_changed']:.0%} likely to have changed" in said
    assert "changed at 12 of 20 compared" in said
    (row,) = (json.loads(line) for line in asked(history, *plan, "-p", "average-count", "--json").splitlines())
    assert 0 < row["probability_changed"] < 0.2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--goal", "both", "--policy", "bandit"], "leave --policy and --set out"),
        (["--goal", "both", "--set", "bandit.window=3"], "leave --policy and --set out"),
        (["--goal", "content", "--model", "m"], "predicts new links only"),
        (["--weight", "0.5"], "needs --goal both"),
        (["--goal", "both", "--weight", "2"], "--weight"),
        (["--goal", "all"], "--goal"),
    ],
)
@pytest.mark.parametrize("command", [["plan", "--budget", "1"], ["explain", "https://e.org/mixed"]])
def test_goals_that_contradict_other_options_are_refused(
    history: History, command: list[str], options: list[str], message: str
) -> None:
    result = CliRunner().invoke(app, [*command, *options, "--history", str(history.store.folder)])
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())


def test_a_page_that_changes_faster_than_all_others_has_a_probability() -> None:
    learnt = ChangeExpectation(2_001)
    everyone, one = list(range(2_001)), [0]
    for day in range(11):
        learnt.observe(made_visits(days(day), everyone, changed=0 if day else -1))
        for minute in range(1, 13):
            learnt.observe(made_visits(days(day + minute / 1440), one, changed=1))
    told = learnt.expect(days(11))
    assert np.isfinite(told).all()
    assert told[0] > told[1:].max()


def test_experts_read_words_when_they_plan(tmp_path: Path) -> None:
    made = History.create(tmp_path / "history")
    for name, at in (("a", on(10)), ("b", on(7)), ("c", on(4))):
        watched(made, name, at, 0)
    policy = named("related-experts", n_train=8, k=2)
    plan = make(made, policy, request(3, goal="content"), NOW)
    assert len(plan) == 3
    assert not any("words are not known" in reason for reason in plan.reason)


# -- what counts as a change ----------------------------------------------------------------------------------------------


def wordy(history: History, name: str, words: typing.Callable[[int], dict[str, int]], days_seen: range) -> None:
    history.add(Visit(url=page(name), at=START + day * DAY, links=[page("a")], terms=words(day)) for day in days_seen)


def trembles(day: int) -> dict[str, int]:
    return {"x": 30 + day % 2, "y": 10}  # never the same, never significantly different


def turns(day: int) -> dict[str, int]:
    return {"x": 30, "y": 10} if day % 4 < 2 else {"x": 10, "y": 30}


@pytest.fixture
def two_pages(tmp_path: Path) -> History:
    history = History.create(tmp_path / "h")
    for name, words in (("trembles", trembles), ("turns", turns)):
        wordy(history, name, words, range(20))
    return history


def test_a_plan_by_a_notion_of_change_does_not_count_what_it_ignores(two_pages: History) -> None:
    plans = {
        change: make(two_pages, named("freshness-value"), request(2, goal="content", change=change), START + 19.5 * DAY)
        for change in ("any", "significant")
    }
    told = {change: dict(zip(names(plan), plan.probability_changed, strict=True)) for change, plan in plans.items()}
    assert told["any"]["trembles"] > told["any"]["turns"] > 0.2
    assert told["significant"]["trembles"] < 0.1 < told["significant"]["turns"]


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


def test_the_command_takes_a_notion_of_change(two_pages: History) -> None:
    folder = str(two_pages.store.folder)
    base = ["plan", "--history", folder, "--budget", "1", "--goal", "both", "--weight", "0"]
    base += ["--as-of", (START + 19.5 * DAY).isoformat()]
    result = CliRunner().invoke(app, [*base, "--change", "significant", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout.splitlines()[-1])["url"] == page("turns")
    assert stored(two_pages.beside)["change"].to_pylist() == ["significant"]
    wrong = CliRunner().invoke(app, [*base, "--change", "significent"])
    assert wrong.exit_code == 2
    model = CliRunner().invoke(
        app, ["plan", "--history", folder, "--budget", "1", "--model", "m", "--change", "digest"]
    )
    assert model.exit_code == 2
