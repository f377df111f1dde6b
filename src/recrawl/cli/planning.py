"""What ``recrawl plan`` and ``recrawl explain`` share: their options, and the situation that both begin with."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.common import checked_period, note, open_history, steps
from recrawl.cli.policy_options import checked_budgets

if TYPE_CHECKING:
    from recrawl.history import History
    from recrawl.plan import Request
    from recrawl.plan.make import Situation
    from recrawl.policies import Policy


class Goal(StrEnum):
    """What a plan is made for."""

    links = "links"
    content = "content"
    both = "both"


GoalOption = Annotated[
    Goal, typer.Option("--goal", help="What to find: new links, pages whose copy is out of date (content), or both.")
]
WeightOption = Annotated[
    float | None,
    typer.Option(
        "--weight",
        min=0.0,
        max=1.0,
        help="For --goal both: how much links count, from 0 (only content) to 1; 0.5 if not given.",
    ),
]
BudgetOption = Annotated[
    str,
    typer.Option(
        "--budget",
        "-b",
        metavar="N",
        help="How many pages: a number, or a share such as 10%.",
        callback=checked_budgets,
    ),
]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        "-p",
        help="Who chooses. Default: what recrawl tune recommended, else a fallback; freshness-value for --goal content.",
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", "-m", metavar="FILE", help="Plan by the predictions of a model that recrawl train made."),
]
PerHostOption = Annotated[int | None, typer.Option("--per-host", min=0, help="At most so many pages of one host.")]
PerSiteOption = Annotated[
    int | None, typer.Option("--per-site", min=0, help="At most so many pages of one registered domain.")
]
MinGapOption = Annotated[
    str | None,
    typer.Option(
        "--min-gap",
        metavar="PERIOD",
        help="No page sooner after its last visit.",
        callback=lambda p: p and checked_period(p),
    ),
]
ExcludeOption = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="PATTERN", help="No URL that begins so, or fits so (*, ?); repeat it."),
]
RetryGoneOption = Annotated[bool, typer.Option("--retry-gone", help="Also pages that answered 404 or 410.")]
ThresholdOption = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        min=0.0,
        max=1.0,
        help="Only pages at least so likely to have new links; with --goal content, to have changed; with both, either.",
    ),
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="POLICY.SETTING=VALUE", help="A setting of the policy; repeat it.")
]


def situation_of(
    history: str,
    as_of: str | None,
    policy: str | None,
    settings: list[str] | None,
    every: str,
    budget: str,
    threshold: float | None,
    per_host: int | None,
    per_site: int | None,
    min_gap: str | None,
    exclude: list[str] | None,
    retry_gone: bool,
    model: str | None,
    goal: Goal,
    weight: float | None,
) -> tuple[Any, Situation, datetime, Request]:
    """What both commands begin with."""
    from datetime import UTC

    from recrawl.cli.policy_options import budget_pages
    from recrawl.panel import parse_period
    from recrawl.plan.make import Request

    _check_goal(goal, weight, model, policy, settings)
    opened = open_history(history, as_of)
    if model:
        situation = _foreseen(opened, model)
    else:
        situation = _surveyed(opened, _policy(opened, goal, weight, policy, settings, every), every)
    request = Request(
        pages=budget_pages(budget, len(situation.pages))[0],
        per_host=per_host,
        per_site=per_site,
        min_gap=parse_period(min_gap) if min_gap else timedelta(0),
        exclude=tuple(exclude or ()),
        retry_gone=retry_gone,
        every=every,
        threshold=threshold,
        goal=goal.value,
    )
    return opened, situation, opened.until or datetime.now(UTC), request


def _check_goal(
    goal: Goal, weight: float | None, model: str | None, policy: str | None, settings: list[str] | None
) -> None:
    """Refuse what contradicts itself before anything is read."""
    if model and (policy or settings):
        raise typer.BadParameter("--model plans by its own predictions: leave --policy and --set out")
    if model and goal is not Goal.links:
        raise typer.BadParameter(f"--model predicts new links only: leave --model out, or --goal {goal}")
    if goal is Goal.both and (policy or settings):
        raise typer.BadParameter(
            "--goal both weighs what it expects itself: leave --policy and --set out, or use --goal links or content"
        )
    if weight is not None and goal is not Goal.both:
        raise typer.BadParameter(f"--weight {weight:g} weighs links against content: it needs --goal both")


def _foreseen(history: History, model: str) -> Situation:
    from recrawl.plan.foreseen import foresee

    with steps("what was visited") as on_step:
        return foresee(history, model, on_step, note)


def _policy(
    history: History, goal: Goal, weight: float | None, policy: str | None, settings: list[str] | None, every: str
) -> Policy:
    """Who chooses."""
    from recrawl.cli.policy_options import made_policies
    from recrawl.plan.default import default_policy
    from recrawl.plan.goals import ForBoth

    if goal is Goal.both:
        return ForBoth() if weight is None else ForBoth(weight)
    if policy is None:
        chosen_by = default_policy(history, every, "content" if goal is Goal.content else "links")
        note(chosen_by.why)
        name, known = chosen_by.policy, chosen_by.settings
    else:
        name, known = policy, {}
    (one,) = made_policies(name, settings or (), **known)
    if one.sees_future:
        raise typer.BadParameter(
            f"{name} knows the future; it can only be replayed. Try recrawl replay --policies {name}"
        )
    return one


def _surveyed(history: History, policy: Policy, every: str) -> Situation:
    from recrawl.plan.make import survey

    with steps("what was visited") as on_step:
        return survey(history, policy, every, on_step)
