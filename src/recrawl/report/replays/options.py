"""What a replay and a tuning can be asked for: records that the command line and the API share, with one check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recrawl.core.options import check_values, option, read_values, same_option
from recrawl.errors import BadOption, BadRecord
from recrawl.plan.budgets import pages_of, share_or_number
from recrawl.plan.focus_options import ThresholdOptions
from recrawl.plan.options import PlanOptions, check_takes_rates
from recrawl.world.notions import ANY
from recrawl.world.readings import BETWEEN, CANDIDATES, CARRY, KNOWN

if TYPE_CHECKING:
    from recrawl.models.link_relevance import Focus
    from recrawl.policies.base import Policy

#: Some of every kind, by what they are to find.
DEFAULT_POLICIES = {
    "links": "round-robin, windowed-outdegree, windowed-clique, regression, regression-round-robin, bandit, "
    "expected-harvest, oracle",
    "content": "round-robin, nutch-adaptive, stormcrawler-adaptive, lambda-crawl, freshness-value, history-aware, "
    "freshness-oracle",
}


def listed(text: str) -> list[str]:
    """The parts of a text, separated by commas, each once.

    >>> listed("bandit, round-robin,bandit")
    ['bandit', 'round-robin']
    """
    parts = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not parts:
        raise ValueError(f"{text!r} names nothing")
    return parts


def check_budgets(text: str) -> None:
    """Refuse texts that are not budgets, separated by commas."""
    for part in listed(text):
        share_or_number(part)


def _check_one_budget(text: str) -> None:
    if "," in text:
        raise ValueError(f"{text!r} is more than one: a policy is recommended for one budget; tune once for each")
    check_budgets(text)


def read_time(value: str | datetime) -> datetime:
    """A time with its zone."""
    from recrawl.web.visit import parse_at

    try:
        return parse_at(value)
    except BadRecord as error:
        raise ValueError(f"{error}; write a time with its zone, such as 2025-03-01T00:00:00Z") from None


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """Everything that a replay can be asked for, checked as soon as it is made.

    >>> ReplayOptions(policies="bandits")
    Traceback (most recent call last):
    recrawl.errors.UnknownPolicy: No policy named 'bandits'. Did you mean 'bandit'? Known: ...
    """

    policies: str | Policy | Sequence[str | Policy] | None = option(
        None,
        "Policies, separated by commas, or 'all'. Default: some of every kind that suit the goal.",
        flags=("--policies", "-p"),
        metavar="NAMES",
    )
    budget: str = option(
        "10%",
        "Pages per cycle, or a share such as 10%; several, separated by commas, are compared.",
        flags=("--budget", "-b"),
        metavar="PAGES",
        check=check_budgets,
    )
    goal: str = option(
        "links",
        "What counts: new links, or changes of content. Histories without links, such as capture indexes, have content only.",
        choices=tuple(DEFAULT_POLICIES),
    )
    every: str = same_option(PlanOptions, "every")
    since: str | datetime | None = option(
        None, "Ignore everything recorded before this time.", flags=("--from",), metavar="TIME", check=read_time
    )
    until: str | datetime | None = option(
        None,
        "Ignore everything recorded after this time.",
        flags=("--until", "--as-of"),
        metavar="TIME",
        check=read_time,
    )
    candidates: str = option(
        KNOWN, "Pages that may be chosen: those known by then, or all that were ever known.", choices=CANDIDATES
    )
    between: str = option(
        CARRY,
        "What a visit shows where none was recorded: the page as last recorded (carry), or nothing.",
        choices=BETWEEN,
    )
    links: str = same_option(PlanOptions, "links")
    observed: int = option(0, "Number of cycles that every policy sees completely before it chooses.", minimum=0)
    change: str = same_option(PlanOptions, "change")
    related: int = option(30, "Number of related pages per page, for policies that use them.", minimum=0)
    relevance: str | None = same_option(PlanOptions, "relevance")
    relevant_above: float | None = same_option(ThresholdOptions, "relevant_above")
    window: int | None = option(None, "Number of past cycles that policies with a window look at.", minimum=1)
    per_host: int | None = same_option(PlanOptions, "per_host", minimum=1)
    per_site: int | None = same_option(PlanOptions, "per_site", minimum=1)
    roots: str = same_option(PlanOptions, "roots")
    rates: str | None = same_option(PlanOptions, "rates")
    settings: tuple[str, ...] = same_option(PlanOptions, "settings")
    workers: int | None = option(None, "Number of processes. Default: one per core for long replays.", minimum=1)
    resume: str | None = option(
        None, "Store finished runs in this directory, and reuse those already there.", metavar="DIR"
    )
    seed: int = option(0, "Random seed.")

    def __post_init__(self) -> None:
        read_values(self)
        check_values(self)
        if self.goal == "content" and self.focus is not None:
            raise BadOption(
                "goal content counts changes of pages: leave relevance and relevant-above out, or use goal links"
            )
        if self.rates is not None:
            check_takes_rates(self.rates, [each for each in self._named() if isinstance(each, str)])
        self.made_policies()  # what is named must be there, before anything slow begins

    def made_policies(self) -> list[Policy]:
        """The policies, with their settings."""
        from recrawl.policies.base import Policy
        from recrawl.policies.settings import made, parse

        given = self._named()
        parse(self.settings, [each for each in given if isinstance(each, str)])
        updates = "content" if self.goal == "content" else None
        common = {"window": self.window, "seed": self.seed, "updates": updates, "rates": self.rates}
        return [each if isinstance(each, Policy) else made(each, self._settings_of(each), **common) for each in given]

    def _named(self) -> list[str | Policy]:
        from recrawl.policies.base import Policy
        from recrawl.policies.registry import known

        if self.policies == "all":
            return list(known())
        if isinstance(self.policies, Policy):
            return [self.policies]
        return checked_names(DEFAULT_POLICIES[self.goal] if self.policies is None else self.policies)

    def _settings_of(self, policy: str) -> list[str]:
        return [text for text in self.settings if text.strip().startswith(f"{policy}.")]

    @property
    def focus(self) -> Focus | None:
        """Which links count as relevant; None: all count."""
        from recrawl.models.link_relevance import Focus

        return Focus.of(self.relevance, self.relevant_above)

    def notes(self) -> list[str]:
        """The conditions that a reader of the results must know."""
        from recrawl.world.notions import notion_or_any

        caps = ((self.per_host, "host"), (self.per_site, "site"))
        notes = [f"at most {cap:,} per {of} and cycle" for cap, of in caps if cap]
        if self.focus is not None:
            notes.append("only relevant links count")
        if self.roots != "domain":
            notes.append(f"sites by {self.roots}")
        if self.rates is not None:
            notes.append(f"rates by {self.rates}")
        if notion_or_any(self.change) is not None:
            notes.append(f"a copy is current until a change of the kind {self.change!r}")
        return notes


@dataclass(frozen=True, kw_only=True)
class TuneOptions:
    """Everything that a tuning can be asked for, checked as soon as it is made.

    >>> TuneOptions(budget="5%,10%")
    Traceback (most recent call last):
    recrawl.errors.BadOption: budget: '5%,10%' is more than one: a policy is recommended for one budget; tune once for each
    """

    budget: str = option(
        "10%",
        "Pages per cycle: a number, or a share such as 10%.",
        flags=("--budget", "-b"),
        metavar="PAGES",
        check=_check_one_budget,
    )
    policies: str | Sequence[str] | None = option(
        None,
        "Policies to try beside the default one, separated by commas. Default: quick ones of every kind.",
        metavar="NAMES",
    )
    goal: str = same_option(ReplayOptions, "goal")
    change: str = same_option(PlanOptions, "change")
    window: int = same_option(ReplayOptions, "window", default=168)
    every: str = same_option(PlanOptions, "every")
    roots: str = same_option(PlanOptions, "roots")
    candidates: str = same_option(ReplayOptions, "candidates")
    between: str = same_option(ReplayOptions, "between")
    links: str = same_option(PlanOptions, "links")
    relevance: str | None = same_option(PlanOptions, "relevance")
    workers: int | None = same_option(ReplayOptions, "workers")
    seed: int = same_option(ReplayOptions, "seed")

    def __post_init__(self) -> None:
        read_values(self)
        check_values(self)
        if self.goal == "content" and self.links != "all":
            raise BadOption(
                f"goal content counts changes of pages, whatever their links: leave links {self.links} out, or use goal links"
            )
        if self.goal == "content" and self.relevance is not None:
            raise BadOption(
                f"goal content counts changes of pages: leave relevance {self.relevance} out, or use goal links"
            )
        if self.goal == "links" and self.change != ANY:
            raise BadOption(f"change {self.change} is what makes a copy outdated: it needs goal content")
        if self.policies is not None:
            checked_names(self.policies)  # what is named must be there, before anything slow begins

    @property
    def focus(self) -> Focus | None:
        """Which links count as relevant; None: all count."""
        from recrawl.models.link_relevance import Focus

        return Focus.of(self.relevance)

    def tried(self) -> Sequence[Any]:
        """Names of policies, or those that are tried where none is named; the default policy is always among them."""
        from recrawl.policies import DEFAULT, DEFAULT_FOR_CONTENT

        if self.policies is None:
            from recrawl.replay.tune import candidates_for

            return candidates_for(self.goal, self.roots)
        names, default = checked_names(self.policies), DEFAULT_FOR_CONTENT if self.goal == "content" else DEFAULT
        return names if default in names else [*names, default]


def checked_names(policies: str | Sequence[Any]) -> list[Any]:
    """Names of policies, separated by commas or in a list, each once; an unknown one is refused. Policies stay as they are."""
    from recrawl.policies.base import Policy
    from recrawl.policies.registry import policy_class

    try:
        given = listed(policies) if isinstance(policies, str) else list(dict.fromkeys(policies))
        if not given:
            raise ValueError("an empty list names nothing")
    except (TypeError, ValueError) as error:
        raise BadOption(f"policies: {error}") from None
    for each in given:
        if isinstance(each, str):
            policy_class(each)
        elif not isinstance(each, Policy):
            raise BadOption(f"policies: {each!r} is neither the name of a policy nor a recrawl.Policy")
    return given


def budget_pages(text: str, n_pages: int, on_note: Any = lambda note: None) -> list[int]:
    """Budgets in pages or as shares of the pages, separated by commas, as pages: each once, none above all there are.

    >>> budget_pages("10%,20%,12,1", 117)
    [12, 23, 1]
    """
    budgets = []
    for part in listed(text):
        pages = pages_of(part, n_pages)
        if pages > n_pages:
            on_note(f"budget {part} is above the number of pages: {n_pages:,} are used")
        budgets.append(min(pages, n_pages))
    return list(dict.fromkeys(budgets))
