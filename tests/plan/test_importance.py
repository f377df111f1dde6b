"""Plans count a page by how much it matters, as far as that was stated by their moment, with and without carried state."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import recrawl as rc
from made_hints import NOW as HINTED_NOW
from made_hints import hinted_history, url
from planning import make, request
from recrawl.cli import app
from recrawl.history import History
from recrawl.history.states import States
from recrawl.plan.options import PlanOptions
from recrawl.plan.planner import Planner
from recrawl.policies import known, named
from recrawl.testing import tiny_history
from recrawl.web.visit import Visit
from recrawl.world.pages import Need

START = datetime(2026, 1, 5, tzinfo=UTC)
QUICK = [
    name for name, policy in known().items() if Need.FUTURE not in policy.needs and not name.startswith("predicted")
]
#: One of each kind; the others learn and are kept like one of these.
ALL_KINDS = ("average-count", "lambda-crawl", "windowed-clique", "learning-to-rank", "bandit", "expected-harvest")


def made_up(seed: int, n_days: int = 8) -> list[Visit]:
    """Daily visits to pages that gain links at different paces; importances are stated now and then, and change."""
    chance = np.random.default_rng(seed)
    n_pages = int(chance.integers(5, 12))
    visits, n_links = [], np.zeros(n_pages, int)
    for day in range(n_days):
        for page in range(n_pages):
            n_links[page] += int(chance.poisson(0.7 * page))
            links = [f"https://h{page % 3}.example/n{page}-{i}" for i in range(n_links[page] + 1)]
            weight = float(chance.choice([0.0, 0.25, 1.0, 3.0, 20.0])) if chance.random() < 0.3 else None
            status = 500 if chance.random() < 0.1 else 200
            at = START + timedelta(days=day, minutes=page)
            visits.append(
                Visit(url=f"https://h{page % 3}.example/{page}", at=at, status=status, links=links, importance=weight)
            )
    return visits


def plain_importance(visits: list[Visit]) -> dict[str, float]:
    stated = [visit for visit in sorted(visits, key=lambda visit: visit.at) if visit.importance is not None]
    return {visit.url: float(visit.importance or 0.0) for visit in stated}


def plain_averages(visits: list[Visit]) -> dict[str, float]:
    """New links per visit that can be compared with an earlier copy, in plain Python."""
    counts: dict[str, list[int]] = defaultdict(list)
    copy: dict[str, set[str]] = {}
    for visit in sorted(visits, key=lambda visit: visit.at):
        if visit.status == 200:
            shown = set(visit.links or ())
            if visit.url in copy:
                counts[visit.url].append(len(shown - copy[visit.url]))
            copy[visit.url] = shown
    return {url: sum(counts[url]) / max(len(counts[url]), 1) for url in {visit.url for visit in visits}}


@pytest.mark.parametrize("seed", range(6))
def test_a_plan_is_that_of_a_plain_version(seed: int, tmp_path: Path) -> None:
    visits = made_up(seed)
    history = History.create(tmp_path)
    history.add(visits)
    for day in (3, 8):
        past = [visit for visit in visits if visit.at < START + timedelta(days=day)]
        weights, average = plain_importance(past), plain_averages(past)
        worth = {page: average[page] * weights.get(page, 1.0) for page in average}
        matter = [page for page in worth if weights.get(page, 1.0) > 0]
        budget = len(matter) - 2
        plan = rc.plan(
            history, budget=budget, policy="average-count", now=START + timedelta(days=day) - timedelta(hours=1)
        )
        chosen = plan.url.to_pylist()
        assert [worth[page] for page in chosen] == sorted((worth[page] for page in matter), reverse=True)[:budget]
        assert set(chosen) <= set(matter)
        assert plan.expected.tolist() == [average[page] for page in chosen]
        assert plan.importance is not None
        assert plan.importance.tolist() == [weights.get(page, 1.0) for page in chosen]


def planned(history: History, policy: str, now: datetime, *, carry: bool = False, relearn: bool = False) -> str:
    options = PlanOptions(budget="4", policy=policy, relearn=relearn)
    return repr(Planner(history, options, now, carry=carry).plan().to_arrow().to_pydict())


@pytest.mark.parametrize(
    "policy", [name if name in ALL_KINDS else pytest.param(name, marks=pytest.mark.more) for name in QUICK]
)
def test_with_and_without_carried_state_the_plan_is_the_same_to_the_byte(policy: str, tmp_path: Path) -> None:
    """Importances change from night to night, and some are stated only afterwards, for visits that are learnt already."""
    visits = made_up(5)
    history, weights = History.create(tmp_path), []
    for day in range(8):
        tonight = [visit for visit in visits if visit.at.date() == (START + timedelta(days=day)).date()]
        history.add([replace(visit, importance=None) if i % 2 else visit for i, visit in enumerate(tonight)])
        if day % 3 == 2:
            history.add([visit for visit in visits if visit.at <= tonight[-1].at])  # the rest of the importances, late
        now = tonight[-1].at + timedelta(minutes=1)
        carried = planned(history, policy, now, carry=True)
        assert carried == planned(history, policy, now, relearn=True), f"day {day}"
        weights.append(carried)
    assert States(history.beside).checkpoints()  # something was carried
    assert any("importance" in plan for plan in weights)


def test_nothing_sees_the_future(tmp_path: Path) -> None:
    visits = made_up(1)
    whole, cut = History.create(tmp_path / "whole"), History.create(tmp_path / "cut")
    now = START + timedelta(days=4)
    whole.add(visits)
    cut.add([visit for visit in visits if visit.at <= now])
    for policy in ("expected-harvest", "average-count", "lambda-crawl"):
        assert planned(whole, policy, now) == planned(cut, policy, now)


def with_importance(history: History, **importance: float) -> datetime:
    """State importances of the tiny history, a day after its last visits; returns a moment after that."""
    at = datetime(2026, 3, 8, tzinfo=UTC)
    history.add(Visit(url=f"https://e.org/{name}", at=at, status=500, importance=n) for name, n in importance.items())
    return at + timedelta(hours=1)


def test_a_page_that_matters_comes_before_one_with_more_links() -> None:
    with tiny_history() as history:
        plain = rc.plan(history, budget=2, policy="average-count", now=datetime(2026, 3, 8, 1, tzinfo=UTC))
        now = with_importance(history, blog=10.0)
        plan = rc.plan(history, budget=2, policy="average-count", now=now)
    assert plain.url.to_pylist() == ["https://e.org/news", "https://e.org/blog"]
    assert plan.url.to_pylist() == ["https://e.org/blog", "https://e.org/news"]
    assert plan.reason[0].endswith("; importance 10")
    assert "importance" not in plan.reason[1]
    assert plan.worth.tolist() == [10.0, 4.0]
    assert plan.expected.tolist() == [1.0, 4.0]


@pytest.mark.parametrize("goal", ["content", "both"])
def test_other_goals_weigh_too(goal: str) -> None:
    with tiny_history() as history:
        now = with_importance(history, blog=50.0)
        plan = rc.plan(history, budget=2, goal=goal, now=now)
    assert plan.url[0].as_py() == "https://e.org/blog"


@pytest.mark.parametrize("policy", ["round-robin", "average-count", "expected-harvest"])
def test_importance_0_is_planned_only_if_nothing_else_is_left(policy: str) -> None:
    with tiny_history() as history:
        now = with_importance(history, news=0.0)
        two, three = (rc.plan(history, budget=n, policy=policy, now=now) for n in (2, 3))
        why = rc.explain(history, "https://e.org/news", budget=2, policy=policy, now=now)
        picked = rc.explain(history, "https://e.org/news", budget=3, policy=policy, now=now)
    assert "https://e.org/news" not in two.url.to_pylist()
    assert two.left_out == {"unimportant": 1}
    assert three.url.to_pylist()[-1] == "https://e.org/news"
    assert (why.is_picked, why.cause, why.rank, why.importance) == (False, "unimportant", 3, 0.0)
    assert why.what_would_change.startswith("its importance is 0")
    assert (picked.is_picked, picked.rank) == (True, 3)
    assert picked.reason.endswith("importance 0")


def test_what_is_stated_alike_for_all_changes_nothing() -> None:
    with tiny_history() as history:
        plain = planned(history, "expected-harvest", datetime(2026, 3, 7, 1, tzinfo=UTC))
        at = datetime(2026, 3, 7, tzinfo=UTC)
        history.add(
            Visit(url=f"https://e.org/{name}", at=at + timedelta(minutes=i), importance=1.0)
            for i, name in enumerate(("news", "blog", "about"))
        )
        assert history.store.read("importance").num_rows == 3
        assert planned(history, "expected-harvest", datetime(2026, 3, 7, 1, tzinfo=UTC)) == plain


def test_hinted_pages_are_compared_by_what_they_are_worth(tmp_path: Path) -> None:
    history = hinted_history(tmp_path)
    hinted, first = url("honest", 4), history.visits().to_arrow()["at"].to_pylist()[0]
    for importance, is_first in ((None, True), (2.0, True), (0.001, False)):
        history.add([Visit(url=hinted, at=first, importance=importance)])
        plan = make(history, named("round-robin"), request(20), HINTED_NOW)
        by_url = dict(zip(plan.url.to_pylist(), plan.reason, strict=True))
        assert (plan.url[0].as_py() == hinted) == is_first
        assert by_url.get(hinted, "").startswith("its sitemap says") == is_first
        first += timedelta(seconds=1)


def test_rows_and_explanations_show_it_where_it_is_stated(tmp_path: Path) -> None:
    run = CliRunner().invoke

    def read(*arguments: str) -> Any:
        result = run(app, [*arguments, "--history", str(folder), "--as-of", now.isoformat()])
        assert result.exit_code == 0, result.output
        return result.stdout

    with tiny_history() as history:
        folder, now = history.folder, datetime(2026, 3, 8, 1, tzinfo=UTC)
        options = ("--budget", "2", "--policy", "average-count", "--dry-run")
        before = [json.loads(line) for line in read("plan", *options, "--json").splitlines()]
        assert all("importance" not in row for row in before)
        now = with_importance(history, blog=10.0)
        rows = [json.loads(line) for line in read("plan", *options, "--json").splitlines()]
        assert [row["importance"] for row in rows] == [10.0, 1.0]
        table = list(csv.DictReader(io.StringIO(read("plan", *options, "--format", "csv"))))
        assert [row["importance"] for row in table] == ["10.0", "1.0"]
        assert "importance 10" in read("plan", *options)
        page = "https://e.org/blog"
        assert "importance: 10" in read("explain", page, "--budget", "2")
        assert json.loads(read("explain", page, "--budget", "2", "--json"))["importance"] == 10.0
        assert "importance" not in read("explain", "https://e.org/news", "--budget", "2")
