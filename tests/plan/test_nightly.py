"""Plans night by night, with imports in between, learn what a replay of the same nights learns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from recrawl.history import History
from recrawl.plan.learning import Learning
from recrawl.plan.options import PlanOptions
from recrawl.plan.planner import Planner
from recrawl.plan.score import store
from recrawl.policies import Bandit, Regression
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.replay.run import replay
from recrawl.web.visit import Visit
from recrawl.world.recording import record

START = datetime(2026, 1, 5, tzinfo=UTC)
N_PAGES, NIGHTS, BUDGET = 12, 30, 4
END = START + timedelta(days=NIGHTS, hours=1)


def shown(page: int, night: int) -> list[str]:
    """Page p gains about p / 3 links per night, and keeps the last few."""
    newest = page * night // 3
    return [f"https://e.org/{page}/{i}" for i in range(max(0, newest - 9), newest + 1)]


def visit(page: int, night: int) -> Visit:
    return Visit(url=f"https://e.org/page{page:02}", at=START + timedelta(days=night), links=shown(page, night))


def bandit() -> Bandit:
    return Bandit(inner=Regression(window=10, bootstrap=4), exploration=0.5)


def pulls(policy: Policy) -> tuple[list[float], list[float]]:
    assert isinstance(policy, Bandit)
    return policy.n_.tolist(), policy.sum_.tolist()


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    whole = History.create(tmp_path_factory.mktemp("whole") / "h")
    whole.add(visit(page, night) for night in range(NIGHTS + 1) for page in range(N_PAGES))
    policy = bandit()
    rows = list(replay(record(whole), policy, Budget(BUDGET)))
    assert len(rows) == NIGHTS
    return policy


@pytest.mark.parametrize("carry", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_thirty_nightly_plans_with_imports_in_between_give_the_arm_pulls_of_the_replay(
    replayed: Policy, tmp_path: Path, carry: bool
) -> None:
    history = History.create(tmp_path / "h")
    history.add(visit(page, 0) for page in range(N_PAGES))
    for night in range(1, NIGHTS + 1):
        now = START + timedelta(days=night)
        plan = Planner(history, PlanOptions(budget=str(BUDGET), policy=bandit()), now, carry=carry).plan()
        store(history, plan)
        pages = [int(url.removeprefix("https://e.org/page")) for url in plan.url.to_pylist()]
        history.add(visit(page, night) for page in pages)
    learnt = Learning(history=history, policy=bandit(), now=END).learn()
    assert pulls(learnt.policy) == pulls(replayed)
    assert sum(pulls(replayed)[0]) == NIGHTS - 4  # all nights but those of the bootstrap
    assert np.ptp(pulls(replayed)[0]) > 0  # and not all arms alike


def test_visits_that_were_not_made_for_a_plan_pull_no_arm(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    history.add(visit(page, night) for night in range(12) for page in range(N_PAGES))
    store(history, Planner(history, PlanOptions(budget="2", policy=bandit()), START + timedelta(days=8)).plan())
    assert sum(pulls(Learning(history=history, policy=bandit(), now=END).learn().policy)[0]) == 0


def test_another_policy_learns_nothing_from_a_bandits_plan(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    history.add(visit(page, night) for night in range(9) for page in range(N_PAGES))
    store(history, Planner(history, PlanOptions(budget="3", policy=bandit()), START + timedelta(days=9)).plan())
    history.add(visit(page, 9) for page in (9, 10, 11))
    other = Bandit(inner=Regression(window=9, bootstrap=4))
    assert sum(pulls(Learning(history=history, policy=other, now=END).learn().policy)[0]) == 0
