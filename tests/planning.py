"""Plans for tests, from a policy and a request that need not come from options."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from recrawl.history import History
from recrawl.plan.explain import PlanExplanation
from recrawl.plan.explain import explain as explain_page
from recrawl.plan.learning import Learning
from recrawl.plan.plan import Plan, PlanRequest
from recrawl.plan.planner import budget_of, make_plan
from recrawl.plan.situation import Situation
from recrawl.plan.survey import survey
from recrawl.policies import Policy
from recrawl.world.every import Every
from recrawl.world.notions import Notion, notion_or_any


def request(pages: int, **more: Any) -> PlanRequest:
    return PlanRequest(pages=pages, **more)


def surveyed(history: History, policy: Policy, every: Every = "auto", notion: Notion | None = None) -> Situation:
    return survey(
        Learning(history=history, policy=policy, now=history.until or datetime.now(UTC), every=every, notion=notion)
    )  # type: ignore[arg-type]


def make(history: History, policy: Policy, wanted: PlanRequest, now: datetime) -> Plan:
    situation = surveyed(history.as_of(now), policy, wanted.every, notion_or_any(wanted.change))
    return make_plan(situation, wanted, now)


def explain(situation: Situation, wanted: PlanRequest, url: str, now: datetime) -> PlanExplanation:
    return explain_page(situation, wanted, budget_of(situation, wanted, now), url, now)
