"""What the commands that plan share: their options, and the situation that all of them begin with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from recrawl.cli.common import (
    ANY,
    HISTORY,
    AsOfOption,
    ChangeOption,
    EveryOption,
    HistoryOption,
    note,
    open_history,
    optional_period,
    steps,
)
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


class Favour(StrEnum):
    """What matters more."""

    coverage = "coverage"
    freshness = "freshness"


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
        help="Who chooses. Default: what recrawl tune recommended, else expected-harvest; freshness-value for --goal content.",
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", "-m", metavar="FILE", help="Plan by the predictions of a model that recrawl train made."),
]
FavourOption = Annotated[
    Favour | None,
    typer.Option(
        "--favour",
        help="Find most links in the end (coverage: those that stay can wait), or as many as possible now (freshness).",
    ),
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
        callback=optional_period,
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


@dataclass(frozen=True)
class Asked:
    """What a plan is asked for, apart from its budget."""

    goal: GoalOption = Goal.links
    weight: WeightOption = None
    change: ChangeOption = ANY
    policy: PolicyOption = None
    favour: FavourOption = None
    model: ModelOption = None
    per_host: PerHostOption = None
    per_site: PerSiteOption = None
    min_gap: MinGapOption = None
    threshold: ThresholdOption = None
    exclude: ExcludeOption = None
    retry_gone: RetryGoneOption = False
    settings: SetOption = None
    every: EveryOption = "crawl"
    history: HistoryOption = HISTORY
    as_of: AsOfOption = None

    def situation(self, budget: str) -> tuple[History, Situation, datetime, Request]:
        """What every command that plans begins with."""
        self.check()
        opened: History = open_history(self.history, self.as_of)
        situation = _foreseen(opened, self.model) if self.model else self._surveyed(opened)
        return opened, situation, opened.until or datetime.now(UTC), self._request(budget, len(situation.pages))

    def _request(self, budget: str, n_pages: int) -> Request:
        from recrawl.cli.policy_options import budget_pages
        from recrawl.panel import parse_period
        from recrawl.plan.make import Request

        return Request(
            pages=budget_pages(budget, n_pages)[0],
            per_host=self.per_host,
            per_site=self.per_site,
            min_gap=parse_period(self.min_gap) if self.min_gap else timedelta(0),
            exclude=tuple(self.exclude or ()),
            retry_gone=self.retry_gone,
            every=self.every,
            threshold=self.threshold,
            goal=self.goal.value,
            change=self.change,
        )

    def check(self) -> None:
        """Refuse what contradicts itself before anything is read."""
        by_policy = self.policy or self.settings
        if self.model and by_policy:
            raise typer.BadParameter("--model plans by its own predictions: leave --policy and --set out")
        if self.model and self.goal is not Goal.links:
            raise typer.BadParameter(f"--model predicts new links only: leave --model out, or --goal {self.goal}")
        if self.model and self.change != ANY:
            raise typer.BadParameter(f"--model predicts new links only: leave --model out, or --change {self.change}")
        if self.goal is Goal.both and by_policy:
            raise typer.BadParameter(
                "--goal both weighs what it expects itself: leave --policy and --set out, or use --goal links or content"
            )
        if self.favour is not None and (by_policy or self.model or self.goal is not Goal.links):
            raise typer.BadParameter(
                f"--favour {self.favour} is for plans by expected-harvest: leave --policy, --set, --model and --goal out, or use "
                f"--policy expected-harvest --set expected-harvest.favour={self.favour}"
            )
        if self.weight is not None and self.goal is not Goal.both:
            raise typer.BadParameter(f"--weight {self.weight:g} weighs links against content: it needs --goal both")

    def _surveyed(self, history: History) -> Situation:
        from recrawl.change import notion_or_any
        from recrawl.plan.make import survey

        policy = self._policy(history)
        with steps("what was visited") as on_step:
            return survey(history, policy, self.every, on_step, notion_or_any(self.change))

    def _policy(self, history: History) -> Policy:
        """Who chooses."""
        from recrawl.cli.policy_options import made_policies
        from recrawl.plan.default import default_policy
        from recrawl.plan.goals import ForBoth

        if self.goal is Goal.both:
            return ForBoth() if self.weight is None else ForBoth(self.weight)
        if self.policy is None:
            goal: Literal["links", "content"] = "content" if self.goal is Goal.content else "links"
            chosen_by = default_policy(history, self.every, goal, self.favour.value if self.favour else None)
            note(chosen_by.why)
            name, known = chosen_by.policy, chosen_by.settings
        else:
            name, known = self.policy, {}
        (one,) = made_policies(name, self.settings or (), **known)
        if one.sees_future:
            raise typer.BadParameter(
                f"{name} knows the future; it can only be replayed. Try recrawl replay --policies {name}"
            )
        return one


def _foreseen(history: History, model: str) -> Situation:
    from recrawl.plan.foreseen import foresee

    with steps("what was visited") as on_step:
        return foresee(history, model, on_step, note)
