"""A policy's choice → a plan: what to show of every page picked, and what was left out; from all pages at once, or from parts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from recrawl.core.arrays import Flags, Floats, Ints, Times
from recrawl.core.hashing import hash64
from recrawl.core.times import NEVER, microseconds
from recrawl.plan.plan import Plan, PlanRequest
from recrawl.plan.situation import Situation
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget, Cause
from recrawl.policies.choice import Choice
from recrawl.web import urls
from recrawl.world.roots import DOMAINS, site_names


@dataclass(frozen=True, kw_only=True)
class ChosenPages:
    """What a plan shows of each page, in the order in which the policy picked them."""

    page: Ints
    url: pa.Array
    expected: Floats
    low: Floats
    high: Floats
    probability: Floats
    probability_changed: Floats
    last_visit: Ints
    last_change: Ints
    reason: list[str]
    worth: Floats
    is_trial: Flags
    importance: Floats | None


@dataclass(frozen=True, kw_only=True)
class ExpectedGains:
    """What the pages that a policy would pick first are expected to bring, in that order."""

    links: Floats
    changed: Floats


def chosen_pages(situation: Situation, request: PlanRequest, now: datetime, choice: Choice) -> ChosenPages:
    """What to show of the pages picked."""
    page, spread = choice.page, choice.spreads()
    expected, likely = situation.expected(choice, now)
    return ChosenPages(
        page=situation.page[page],
        url=situation.url.take(pa.array(page)),
        expected=expected,
        low=spread.low,
        high=spread.high,
        probability=likely,
        probability_changed=situation.changed_given_links(request, now, page, likely),
        last_visit=situation.pages.last_visit[page],
        last_change=situation.last_change[page],
        reason=[request.in_focus(choice.why(i, situation.page_names(int(page[i])))) for i in range(len(choice))],
        worth=situation.worth(choice, request, now),
        is_trial=choice.trials,
        importance=None if situation.pages.importance is None else situation.pages.importance[page],
    )


def expected_gains(situation: Situation, request: PlanRequest, now: datetime, ranked: Choice) -> ExpectedGains:
    """What the pages of a choice are expected to bring."""
    links, likely = situation.expected(ranked, now)
    return ExpectedGains(links=links, changed=situation.changed_given_links(request, now, ranked.page, likely))


def waiting(
    situation: Situation, request: PlanRequest, budget: Budget, choice: Choice, now: datetime
) -> tuple[int, int]:
    """How many pages that may be fetched wait for too long and were not picked, and how many may be fetched."""
    may = np.ones(len(situation.pages), np.bool_) if budget.barred is None else budget.barred == 0
    starving = may & (situation.pages.age_hours(now) > hours_of(request.max_wait))
    starving[choice.page] = False
    return int(starving.sum()), int(may.sum())


def left_out(counts: Ints | None, n_not_picked: int) -> dict[str, int]:
    """How many pages were not picked for each cause; `counts` of them by `Cause`, None: the policy does not say."""
    if counts is None:
        return {Cause.BELOW_CUT.words: n_not_picked}
    return {cause.words: int(counts[cause]) for cause in Cause if cause and counts[cause]}


def assembled(
    *,
    chosen: ChosenPages,
    ranked: ExpectedGains,
    request: PlanRequest,
    now: datetime,
    policy: Policy,
    n_known: int,
    left_out: dict[str, int],
    n_starving: int,
    n_may: int,
    cycle_hours: float,
    memo: dict[str, float],
) -> Plan:
    """The plan: the pages by what they are worth, whatever was picked first.

    A crawl that stops early has the best pages then. Equal ones stay in the policy's order, and a policy that picks pages together
    keeps its order.
    """
    order = np.arange(len(chosen.page)) if policy.keeps_order else np.argsort(-chosen.worth, kind="stable")
    page, expected, last = chosen.page[order], chosen.expected[order], chosen.last_visit[order]
    url = chosen.url.take(pa.array(order))
    return Plan(
        id=_plan_id(now, policy.name, page, expected),
        made_at=now,
        policy=policy.name,
        request=request,
        page=page,
        url=url,
        host=[urls.host(text) for text in url.to_pylist()],
        expected=expected,
        low=chosen.low[order],
        high=chosen.high[order],
        probability=chosen.probability[order],
        probability_changed=chosen.probability_changed[order],
        last_visit_at=_times(last),
        last_change_at=_times(chosen.last_change[order]),
        due_at=_times(np.maximum(microseconds(now), np.where(last == NEVER, NEVER, last + _us(request.min_gap)))),
        reason=[chosen.reason[int(i)] for i in order],
        worth=chosen.worth[order],
        is_trial=chosen.is_trial[order],
        importance=None if chosen.importance is None else chosen.importance[order],
        n_known=n_known,
        left_out=left_out,
        links_by_budget=np.cumsum(ranked.links),
        changed_by_budget=np.cumsum(ranked.changed),
        n_starving=n_starving,
        budget_needed=int(np.ceil(n_may * cycle_hours / hours_of(request.max_wait))),
        cycle_hours=cycle_hours,
        memo=memo,
        chosen_by=repr(policy),
        site=None if request.roots == DOMAINS else site_names(url, request.roots),
    )


def _plan_id(now: datetime, policy: str, page: Ints, expected: Floats) -> str:
    digest = hash64(f"{now.isoformat()} {policy} ".encode() + page.tobytes() + expected.tobytes()) & 0xFFFFFFFF
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{digest:08x}"


def _times(us: Ints) -> Times:
    return np.where(us == NEVER, np.datetime64("NaT", "us"), us.view("datetime64[us]"))


def _us(gap: timedelta) -> int:
    return gap // timedelta(microseconds=1)


def hours_of(length: timedelta) -> float:
    """A length of time in hours."""
    return length / timedelta(hours=1)
