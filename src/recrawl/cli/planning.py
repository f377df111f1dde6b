"""What ``recrawl plan`` and ``recrawl explain`` share: their options, and the situation that both begin with."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.common import checked_period, note, open_history, steps
from recrawl.cli.policy_options import checked_budgets

if TYPE_CHECKING:
    from recrawl.history import History
    from recrawl.plan import Request
    from recrawl.plan.make import Situation

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
    typer.Option("--policy", "-p", help="Who chooses. Default: what recrawl tune recommended, else a fallback."),
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
    typer.Option("--threshold", min=0.0, max=1.0, help="Only pages at least so likely to have new links."),
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
    model: str | None = None,
) -> tuple[Any, Situation, datetime, Request]:
    """What both commands begin with."""
    from datetime import UTC

    from recrawl.cli.policy_options import budget_pages
    from recrawl.panel import parse_period
    from recrawl.plan.make import Request

    opened = open_history(history, as_of)
    situation = _foreseen(opened, model, policy, settings) if model else _surveyed(opened, policy, settings, every)
    request = Request(
        pages=budget_pages(budget, len(situation.pages))[0],
        per_host=per_host,
        per_site=per_site,
        min_gap=parse_period(min_gap) if min_gap else timedelta(0),
        exclude=tuple(exclude or ()),
        retry_gone=retry_gone,
        every=every,
        threshold=threshold,
    )
    return opened, situation, opened.until or datetime.now(UTC), request


def _foreseen(history: History, model: str, policy: str | None, settings: list[str] | None) -> Situation:
    from recrawl.plan.foreseen import foresee

    if policy or settings:
        raise typer.BadParameter("--model plans by its own predictions: leave --policy and --set out")
    with steps("what was visited") as on_step:
        return foresee(history, model, on_step, note)


def _surveyed(history: History, policy: str | None, settings: list[str] | None, every: str) -> Situation:
    from recrawl.cli.policy_options import made_policies
    from recrawl.plan.default import default_policy
    from recrawl.plan.make import survey

    if policy is None:
        chosen_by = default_policy(history, every)
        note(chosen_by.why)
        name, known = chosen_by.policy, chosen_by.settings
    else:
        name, known = policy, {}
    (one,) = made_policies(name, settings or (), **known)
    if one.sees_future:
        raise typer.BadParameter(
            f"{name} knows the future; it can only be replayed. Try recrawl replay --policies {name}"
        )
    with steps("what was visited") as on_step:
        return survey(history, one, every, on_step)
