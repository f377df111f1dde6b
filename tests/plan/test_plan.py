import csv
import io
import json
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import recrawl as rc
from planning import explain, make, request, surveyed
from recrawl.errors import NotEnoughData, RecrawlError
from recrawl.history import History
from recrawl.history.plans import stored
from recrawl.plan.default import FALLBACK, SHORT_FALLBACK, default_policy, recommend
from recrawl.plan.formats import FORMATS, records
from recrawl.plan.options import PlanOptions
from recrawl.plan.planner import Planner, make_plan, matching
from recrawl.plan.score import scores, store
from recrawl.policies import named
from recrawl.policies.round_robin import RoundRobin
from recrawl.policies.windowed_outdegree import WindowedOutdegree
from recrawl.web.visit import Visit
from recrawl.world.batches import HOUR, CrawlPace, batches_of

START = datetime(2026, 1, 5, tzinfo=UTC)
DAY = timedelta(days=1)


def page(name: str, host: str = "e.org") -> str:
    return f"https://{host}/{name}"


def daily(history: History, name: str, new_per_day: int, days: int, host: str = "e.org", status: int = 200) -> None:
    """A page that gains a number of links per day, and keeps them."""
    history.add(
        Visit(
            url=page(name, host),
            at=START + day * DAY,
            status=status,
            links=[page(f"{name}-{i}", host) for i in range(5 + new_per_day * day)] if status == 200 else None,
        )
        for day in range(days)
    )


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Ten days: a lively page, a slow one, a quiet one, one that is gone, one that fails, one seen once."""
    made = History.create(tmp_path_factory.mktemp("plan") / "history")
    daily(made, "lively", 8, 10)
    daily(made, "slow", 1, 10)
    daily(made, "quiet", 0, 10)
    daily(made, "other", 3, 10, host="f.org")
    daily(made, "gone", 0, 10, status=404)
    daily(made, "broken", 0, 10, status=503)
    made.add([Visit(url=page("once"), at=START + 9 * DAY, links=[page("x")])])
    return made


NOW = START + 10 * DAY


def urls_of(plan: object) -> list[str]:
    return [url.removeprefix("https://") for url in plan.url.to_pylist()]  # type: ignore[attr-defined]


def test_pages_seen_once_are_picked_before_all_others_and_the_best_pages_come_first(history: History) -> None:
    assert urls_of(make(history, WindowedOutdegree(), request(1), NOW)) == ["e.org/once"]
    plan = make(history, WindowedOutdegree(), request(3), NOW)
    assert urls_of(plan) == ["e.org/lively", "f.org/other", "e.org/once"]
    assert plan.reason[0] == "8.0 new links per visit over the last 9 visits"
    assert plan.reason[2].startswith("visited once")
    assert plan.is_trial.tolist() == [False, False, True]
    assert plan.expected[0] == 8.0


def test_what_was_left_out_is_counted_by_cause(history: History) -> None:
    plan = make(history, WindowedOutdegree(), request(2, per_host=1, exclude=[page("slow")]), NOW)
    assert urls_of(plan) == ["f.org/other", "e.org/once"]
    assert plan.left_out == {"below cut": 2, "host cap": 1, "gone": 1, "excluded": 1}
    assert sum(plan.left_out.values()) + len(plan) == plan.n_known == 7


def test_gone_pages_come_back_only_when_asked_for(history: History) -> None:
    assert "e.org/gone" not in urls_of(make(history, RoundRobin(), request(99), NOW))
    assert "e.org/gone" in urls_of(make(history, RoundRobin(), request(99, retry_gone=True), NOW))


def test_no_page_is_due_before_now_nor_sooner_than_the_gap(history: History) -> None:
    for gap in (timedelta(0), timedelta(hours=5), timedelta(days=3)):
        plan = make(history, RoundRobin(), request(99, min_gap=gap), NOW)
        now = np.datetime64(NOW.replace(tzinfo=None), "us")
        assert (plan.due_at >= now).all()
        seen = ~np.isnat(plan.last_visit_at)
        assert (plan.due_at[seen] >= plan.last_visit_at[seen] + np.timedelta64(gap)).all()
    assert make(history, RoundRobin(), request(99, min_gap=3 * DAY), NOW).left_out["too soon"] == 6


@pytest.mark.parametrize("budget", [0, 1, 7, 1000])
def test_a_budget_is_never_exceeded(history: History, budget: int) -> None:
    plan = make(history, named("bandit"), request(budget), NOW)
    assert len(plan) == min(budget, 6)
    assert len(set(plan.page.tolist())) == len(plan)


def test_a_negative_budget_is_refused(history: History) -> None:
    with pytest.raises(ValueError, match="cannot be negative"):
        make(history, RoundRobin(), request(-1), NOW)


def test_a_plan_for_an_earlier_day_does_not_see_later_visits(history: History) -> None:
    early = START + 4.5 * DAY
    plan = make(history, WindowedOutdegree(), request(5), early)
    assert "e.org/once" not in urls_of(plan)
    assert (plan.last_visit_at <= np.datetime64(early.replace(tzinfo=None))).all()


def test_an_empty_history_is_a_clear_sentence(tmp_path: Path) -> None:
    with pytest.raises(NotEnoughData, match="no visits"):
        make(History.create(tmp_path / "h"), RoundRobin(), request(3), NOW)


def test_the_yield_grows_with_the_budget_and_its_step_is_the_gain_at_the_cut(history: History) -> None:
    plan = make(history, WindowedOutdegree(), request(3), NOW)
    assert (np.diff(plan.yield_by_budget) >= 0).all()
    step = plan.yield_by_budget[3] - plan.yield_by_budget[2]
    assert plan.at_cut(plan.yield_by_budget) == pytest.approx(step)
    assert step > 0


def test_starving_pages_are_counted_with_the_budget_that_would_reach_them(history: History) -> None:
    plan = make(history, WindowedOutdegree(), request(1), NOW + 40 * DAY)
    assert plan.n_starving == 5
    assert plan.budget_needed == 1  # six pages, a cycle a day, thirty days
    assert make(history, RoundRobin(), request(1, max_wait=2 * DAY), NOW + 40 * DAY).budget_needed == 3


def test_patterns_are_prefixes_or_shell_patterns() -> None:
    url = pa.array(["https://e.org/a?b=1", "https://e.org/ab", "https://f.org/(x)"])
    assert matching(url, ["https://e.org/a"]).tolist() == [True, True, False]
    assert matching(url, ["*/a?b=1"]).tolist() == [True, False, False]
    assert matching(url, ["https://f.org/(x)"]).tolist() == [False, False, True]
    assert matching(url, ["*"]).all()
    assert matching(url, ["*e*org*"]).tolist() == [True, True, False]


def test_records_have_the_keys_that_others_rely_on(history: History) -> None:
    row = next(records(make(history, WindowedOutdegree(), request(3), NOW)))
    keys = "rank url host expected_new_links probability probability_changed due_at last_visit_at reason"
    assert set(keys.split()) <= set(row)
    assert row["due_at"] == "2026-01-15T00:00:00Z"


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_names_every_page_in_order(history: History, name: str) -> None:
    plan = make(history, WindowedOutdegree(), request(4), NOW)
    text = b"".join(FORMATS[name](plan)).decode()
    places = [text.index(url) for url in plan.url.to_pylist()]
    assert places == sorted(places)


def test_formats_are_what_the_crawlers_take(history: History) -> None:
    plan = make(history, WindowedOutdegree(), request(3), NOW)

    def written(name: str) -> list[str]:
        return b"".join(FORMATS[name](plan)).decode().splitlines()

    items = [json.loads(line) for line in written("urlfrontier")]
    dates = [int(item["known"]["refetchableFromDate"]) for item in items]
    assert dates == sorted(dates)
    assert min(dates) > NOW.timestamp()
    assert items[1]["known"]["info"] == {"url": page("other", "f.org"), "key": "f.org", "crawlID": "DEFAULT"}
    assert written("heritrix")[0] == f"F+ {page('lively')}"
    assert written("nutch")[0].split("\t")[1:] == ["nutch.score=8.0000", "nutch.fetchInterval=1"]
    first, second = (json.loads(line) for line in written("scrapy")[:2])
    assert first["priority"] > second["priority"]
    assert first["meta"]["recrawl"]["plan"] == plan.id


def test_a_spreadsheet_runs_no_formula(history: History) -> None:
    plan = make(history, WindowedOutdegree(), request(1), NOW)
    bad = plan.__class__(**plan.__dict__ | {"reason": ["=HYPERLINK(1)"]})
    rows = list(csv.DictReader(io.StringIO(b"".join(FORMATS["csv"](bad)).decode())))
    assert rows[0]["reason"] == "'=HYPERLINK(1)"


def test_plans_are_kept_once_and_scored_by_their_visits(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    daily(history, "lively", 8, 6)
    daily(history, "slow", 1, 6)
    daily(history, "quiet", 0, 6)
    plan = make(history, WindowedOutdegree(), request(2), START + 5.5 * DAY)
    for _ in range(2):
        store(history, plan)
    assert stored(history.beside).num_rows == 2
    assert next(scores(history)).visited == 0
    links = [page(f"lively-{i}") for i in range(52)]
    history.add([Visit(url=page("lively"), at=START + 6 * DAY, links=links)])
    history.add([Visit(url=page("quiet"), at=START + 6 * DAY, links=[page(f"quiet-{i}") for i in range(5)])])
    (score,) = scores(History.open(tmp_path / "h"))
    assert (score.planned, score.visited, score.found, score.hits) == (2, 1, 7, 1)
    assert score.expected == pytest.approx(8.0)
    assert score.round_robin_visited >= 1
    assert next(scores(history, horizon=timedelta(hours=1))).visited == 0


def test_pages_that_fail_count_as_visits_without_links(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    for name, n in (("lively", 8), ("down", 6), ("lost", 4), ("slow", 1)):
        daily(history, name, n, 6)
    plan = make(history, WindowedOutdegree(), request(4), START + 5.5 * DAY)
    store(history, plan)
    at = START + 6 * DAY
    history.add([Visit(url=page("lively"), at=at, links=[page(f"lively-{i}") for i in range(52)])])
    history.add([Visit(url=page("down"), at=at, status=503), Visit(url=page("lost"), at=at, status=404)])
    (score,) = scores(history)
    assert (score.planned, score.visited, score.failed) == (4, 3, 2)
    assert score.found == 7
    assert score.expected == pytest.approx(8 + 6 + 4)
    assert score.hits == 1
    history.add([Visit(url=page("down"), at=at + timedelta(hours=1), links=[page(f"down-{i}") for i in range(40)])])
    (score,) = scores(history)
    assert (score.visited, score.failed) == (3, 1)  # it was only away for a while


def test_round_robin_is_compared_only_where_half_of_its_pages_were_visited(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    for i in range(6):
        daily(history, f"p{i}", i, 6)
    store(history, make(history, WindowedOutdegree(), request(4), START + 5.5 * DAY))
    compared = []
    for i, name in enumerate(("p0", "p1", "p2", "p3")):
        history.add([Visit(url=page(name), at=START + 6 * DAY + timedelta(minutes=i), links=[])])
        (score,) = scores(history)
        compared.append((score.round_robin_visited, score.round_robin_found_per_visit is None))
    assert score.round_robin_planned == 4
    assert all(is_none == (n < 2) for n, is_none in compared)
    assert {is_none for _, is_none in compared} == {True, False}


def test_a_visit_counts_for_the_last_plan_before_it(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    daily(history, "lively", 8, 8)
    for day in (3.5, 5.5):
        store(history, make(history, RoundRobin(), request(1), START + day * DAY))
    first, second = scores(history)
    assert (first.visited, second.visited) == (1, 1)
    assert first.until <= second.made_at


def test_an_explanation_says_what_would_have_to_change(history: History) -> None:
    situation = surveyed(history.as_of(NOW), WindowedOutdegree())
    explanation = explain(situation, request(3), page("slow"), NOW)
    assert not explanation.is_picked
    assert explanation.rank == 4
    assert "a budget of 4 pages would reach it" in explanation.what_would_change
    assert (explanation.n_visits, explanation.n_hits, explanation.n_new_links) == (10, 9, 9)
    assert explain(situation, request(4), page("slow"), NOW).is_picked
    capped = explain(situation, request(3, per_host=1), page("lively"), NOW)
    assert capped.cause == "host cap"
    assert "--per-host" in capped.what_would_change
    assert explain(situation, request(3), page("gone"), NOW).cause == "gone"
    with pytest.raises(RecrawlError, match="never visited"):
        rc.explain(history, page("nowhere"), now=NOW)


def test_an_explanation_has_the_factors_of_the_policy_and_the_pages_that_show_the_same_links(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    for day in range(12):
        links = [page(f"x{i}") for i in range(3 * (day + 1))]
        history.add([Visit(url=page(name), at=START + day * DAY, links=links) for name in ("one", "two")])
    now = START + 12.5 * DAY
    explanation = explain(surveyed(history, named("expected-harvest")), request(1), page("one"), now)
    assert explanation.weighed.keys() == {"urgency", "safety"}
    assert all(0 <= value <= 1 for value in explanation.weighed.values())
    ((other, share),) = explanation.overlaps
    assert other == page("two")
    assert share > 0.7
    freshest = surveyed(history, named("expected-harvest", favour="freshness"))
    assert explain(freshest, request(1), page("one"), now).weighed == {}  # nothing waits
    assert explain(surveyed(history, WindowedOutdegree()), request(1), page("one"), now).weighed == {}


def test_a_plan_has_what_the_policy_expects_also_of_a_page_with_few_links(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    for day in range(12):
        for name, n in (("large", 40), ("small", 1)):
            links = [page(f"{name}-{day}-{i}") for i in range(n)]  # all of them new every day
            history.add([Visit(url=page(name), at=START + day * DAY, links=links)])
    plan = make(history, named("expected-harvest"), request(2), START + 30 * DAY)
    small = plan.url.to_pylist().index(page("small"))
    assert plan.expected[small] > 1.2  # it may have grown
    assert (plan.low <= plan.expected).all()
    assert (plan.high >= plan.expected).all()
    assert (plan.high == np.floor(plan.high)).all()
    for url, expected in zip(plan.url.to_pylist(), plan.expected.tolist(), strict=True):
        explanation = explain(surveyed(history, named("expected-harvest")), request(2), url, START + 30 * DAY)
        assert explanation.expected == pytest.approx(expected)


def test_explain_and_plan_agree(history: History) -> None:
    situation = surveyed(history.as_of(NOW), named("windowed-clique"))
    plan = make_plan(situation, request(3), NOW)
    for url in situation.url.to_pylist():
        explanation = explain(situation, request(3), url, NOW)
        assert explanation.is_picked == (url in plan.url.to_pylist())


def test_without_a_recommendation_the_length_of_the_history_decides(history: History, tmp_path: Path) -> None:
    assert default_policy(history.as_of(START + timedelta(days=1.5))).policy == SHORT_FALLBACK
    longer = History.create(tmp_path / "h")
    daily(longer, "lively", 1, 20)
    assert default_policy(longer).policy == FALLBACK
    recommend(longer, {"policy": "bandit", "every": "auto", "settings": {"window": 28}})
    default = default_policy(longer)
    assert (default.policy, default.settings) == ("bandit", {"window": 28})
    assert default_policy(longer, "21d").policy == SHORT_FALLBACK
    recommend(longer, {"policy": "lost", "every": "auto"})
    assert default_policy(longer).policy == FALLBACK
    assert "lost, which recrawl tune recommended, cannot be used: No policy named 'lost'" in default_policy(longer).why
    (longer.store.folder / "tuned.json").write_text("{damaged")
    assert default_policy(longer).policy == FALLBACK


@pytest.mark.slow
def test_a_regression_on_pages_that_were_always_visited_together_does_not_explode(tmp_path: Path) -> None:
    """Age hardly varies then: nothing is known of how new links grow with it, and nothing may be made of that."""
    history = History.create(tmp_path / "h")
    random = np.random.default_rng(0)
    for i, rate in enumerate((0.5, 2.0, 6.0, 12.0)):
        n_links = 300
        for cycle in range(60):
            n_links += int(random.poisson(rate))
            links = [page(f"{i}-{j}") for j in range(n_links - 300, n_links)]
            at = START + cycle * timedelta(hours=3) + timedelta(seconds=float(random.uniform(0, 30)))
            history.add([Visit(url=page(f"p{i}"), at=at, links=links)])
    for hours in (1, 3, 9):
        plan = make(history, named("regression"), request(4), START + 59 * timedelta(hours=3) + timedelta(hours=hours))
        expected = dict(zip(urls_of(plan), plan.expected, strict=True))
        assert expected["e.org/p3"] < 60
        assert expected["e.org/p3"] > expected["e.org/p0"]


def test_waiting_counts_from_the_visit_and_not_from_the_end_of_its_cycle(history: History) -> None:
    weekly = make_plan(surveyed(history, RoundRobin(), "7d"), request(9), NOW)
    last = dict(zip(urls_of(weekly), weekly.last_visit_at.tolist(), strict=True))
    assert last["e.org/lively"] == (START + 9 * DAY).replace(tzinfo=None)
    assert weekly.expected.max() > 0  # although the second week ends after the plan is made


def test_an_explanation_has_the_number_that_the_plan_shows(history: History) -> None:
    situation, wanted = surveyed(history, WindowedOutdegree()), request(4)
    plan = make_plan(situation, wanted, NOW)
    for url, expected in zip(plan.url.to_pylist(), plan.expected.tolist(), strict=True):
        assert explain(situation, wanted, url, NOW).expected == pytest.approx(expected)


@pytest.mark.parametrize("name", ["regression-round-robin", "bandit", "average-count", "round-robin"])
def test_of_a_page_that_was_visited_once_a_plan_says_just_that(tmp_path: Path, name: str) -> None:
    history = History.create(tmp_path / "h")
    daily(history, "old", 1, 6)
    daily(history, "once", 1, 1)
    plan = make_plan(surveyed(history.as_of(NOW), named(name)), request(2), NOW)
    reasons = dict(zip(urls_of(plan), plan.reason, strict=True))
    assert reasons["e.org/once"] == "visited once: a second visit shows how it changes"
    assert reasons["e.org/old"] != reasons["e.org/once"]


def test_no_page_is_planned_that_the_policy_itself_calls_less_likely_than_the_threshold(history: History) -> None:
    plan = make(history, named("expected-harvest"), request(9, threshold=0.6), NOW)
    assert 0 < len(plan) < 5
    assert plan.probability.min() >= 0.6
    assert plan.left_out["unpromising"] > 0


@pytest.mark.parametrize("name", ["lively", "quiet", "once"])
def test_what_keeps_a_page_out_does_not_change_what_is_expected_of_it(history: History, name: str) -> None:
    situation = surveyed(history.as_of(NOW), named("expected-harvest"))
    free = explain(situation, request(3), page(name), NOW)
    for wanted in (request(3, exclude=[page("")]), request(3, min_gap=99 * DAY), request(3, threshold=1.0)):
        barred = explain(situation, wanted, page(name), NOW)
        assert not barred.is_picked
        assert barred.expected == pytest.approx(free.expected, rel=0.01)
        assert barred.probability == pytest.approx(free.probability, rel=0.01)


def test_a_gone_page_is_said_to_bring_as_little_as_with_retry_gone(history: History) -> None:
    situation = surveyed(history.as_of(NOW), named("expected-harvest"))
    gone, retried = (explain(situation, request(3, retry_gone=retry), page("gone"), NOW) for retry in (False, True))
    assert gone.expected == pytest.approx(retried.expected)
    assert gone.probability == pytest.approx(retried.probability)
    assert gone.probability < 0.5


def test_a_page_with_new_links_has_changed(history: History) -> None:
    plan = make(history, named("expected-harvest"), request(9), NOW)
    assert (plan.probability_changed >= plan.probability).all()


def test_reasons_add_up_and_name_trials(history: History) -> None:
    plan = make(history, named("expected-harvest"), request(9), NOW)
    reasons = dict(zip(plan.url.to_pylist(), plan.reason, strict=True))
    assert reasons[page("once")].endswith("; read only once so far, tried to learn how it changes")
    lively = re.match(
        r"about ([\d.]+) unseen links: ([\d.]+) per (hour|day) for ([\d.]+) (h|days)", reasons[page("lively")]
    )
    assert lively
    stock, rate, unit, waited, of = lively.groups()
    hours = float(waited) * (1 if of == "h" else 24)
    assert float(stock) <= 1.1 * float(rate) * hours / (1 if unit == "hour" else 24)


def test_plans_that_expect_other_things_have_other_names(history: History) -> None:
    one, same = (make(history, named("expected-harvest"), request(5), NOW) for _ in range(2))
    other = make(history, named("expected-harvest", rhythm=False, lifetimes=False), request(5), NOW)
    assert one.id == same.id
    assert one.id != other.id


def test_a_crawl_without_pauses_is_cut_into_periods_that_suit_it(tmp_path: Path) -> None:
    steady = History.create(tmp_path)
    steady.add(Visit(url=page(str(i % 7)), at=START + i * DAY / 20, links=[]) for i in range(400))
    rule = CrawlPace.of(steady.timeline.page, steady.timeline.at).rule()
    assert (rule.kind, rule.length) == ("period", HOUR)
    assert rule.why == "in batches of 1 h: visits come without pauses, and a page is visited about every 6 h"
    assert len(batches_of(steady.timeline).ends) == 479  # up to the last visit
    assert default_policy(steady).policy == FALLBACK
    assert default_policy(steady, every="crawl").policy == SHORT_FALLBACK
    assert default_policy(steady, every="1d").policy == FALLBACK


def test_the_default_policy_does_not_depend_on_what_was_learnt_before(tmp_path: Path) -> None:
    """Three crawls of other pages look like three batches, until all pages are visited again a month later."""
    history = History.create(tmp_path / "h")
    urls = [f"https://e.org/{i}" for i in range(6)]
    history.add([Visit(url=url, at=START + timedelta(hours=18 * (i // 2)), links=[]) for i, url in enumerate(urls)])
    made = Planner(history, PlanOptions(budget=2), START + timedelta(days=5), carry=True).plan()
    history.add([Visit(url=url, at=START + timedelta(days=31), links=[]) for url in urls])
    now = START + timedelta(days=40)
    carried = Planner(history, PlanOptions(budget=2), now, carry=True).plan()
    shutil.rmtree(tmp_path / "h" / "states", ignore_errors=True)
    fresh = Planner(History.open(tmp_path / "h"), PlanOptions(budget=2), now).plan()
    assert made.policy
    assert carried.to_arrow() == fresh.to_arrow()
    assert carried.policy == fresh.policy


@pytest.mark.parametrize("policy", ["lambda-crawl", "freshness-value", "expected-harvest", "bandit", "history-aware"])
def test_an_explanation_gives_the_reason_of_the_plan(policy: str, tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    chance = np.random.default_rng(0)
    history.add(
        Visit(
            url=f"https://e.org/{i}", at=START + timedelta(days=day), links=[], text_digest=str(chance.integers(1 + i))
        )
        for i in range(20)
        for day in range(9)
    )
    goal = "content" if policy in ("lambda-crawl", "freshness-value") else "links"
    planner = Planner(history, PlanOptions(budget=3, policy=policy, goal=goal), START + timedelta(days=9, hours=7))
    for url, reason in zip(*(planner.plan().to_arrow()[name].to_pylist() for name in ("url", "reason")), strict=True):
        assert planner.explain(url).reason == reason
