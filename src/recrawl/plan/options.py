"""What a plan can be asked for: one record, which the command line, Scrapy's settings and the API share, with one check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recrawl.core.options import check_values, option, read_values
from recrawl.core.times import parse_period
from recrawl.errors import BadOption, BadPlugin
from recrawl.plan.budgets import share_or_number
from recrawl.web.link_kinds import LINKS
from recrawl.world.notions import ANY
from recrawl.world.rate_names import checked_rates

if TYPE_CHECKING:
    from recrawl.policies.base import Policy

GOALS = ("links", "content", "both")
FAVOURS = ("coverage", "freshness")


def _check_change(text: str) -> None:
    from recrawl.errors import RecrawlError
    from recrawl.world.notions import notion_or_any

    try:
        notion_or_any(text)
    except RecrawlError as error:
        is_name = "Known: " in str(error)
        raise ValueError(f"{error}, or {ANY}" if is_name else str(error)) from None


def _check_rounds(text: str) -> None:
    from recrawl.world.every import parse_rounds

    parse_rounds(text)


def _check_relevance(text: str) -> None:
    from recrawl.errors import RecrawlError
    from recrawl.models.link_relevance import Focus

    try:
        Focus.of(text)
    except RecrawlError as error:
        raise ValueError(str(error)) from None


def check_roots(text: str) -> None:
    """Refuse what names no roots of websites, also a file that is not there."""
    from recrawl.world.roots import parse_roots

    parse_roots(text)


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """Everything that a plan can be asked for, checked as soon as it is made.

    >>> PlanOptions(goal="both", policy="bandit")
    Traceback (most recent call last):
    recrawl.errors.BadOption: goal both weighs links and changes itself: leave policy and settings out, or use goal links or content
    """

    budget: str = option(
        "10%",
        "Number of pages to pick, or a share of the known pages such as 10%.",
        flags=("--budget", "-b"),
        metavar="N",
        check=share_or_number,
    )
    goal: str = option(
        "links", "What to find: new links, pages whose copy is out of date (content), or both.", choices=GOALS
    )
    weight: float | None = option(
        None,
        "With goal both: weight of the links, from 0 (content only) to 1 (links only). Default: 0.5.",
        minimum=0.0,
        maximum=1.0,
    )
    change: str = option(
        ANY,
        "What makes a copy outdated: any difference, or significant, digest or shingles[:similarity].",
        metavar="KIND",
        check=_check_change,
    )
    policy: str | Policy | None = option(
        None,
        "Policy that selects the pages: a name, or path/to/mine.py:Mine. Default: the one recommended by recrawl tune for the "
        "goal, else expected-harvest; freshness-value for goal content.",
        flags=("--policy", "-p"),
        metavar="NAME",
    )
    favour: str | None = option(
        None,
        "Find most links in the long run (coverage: links that stay can wait), or as many as possible now (freshness).",
        choices=FAVOURS,
    )
    model: str | None = option(
        None, "Plan by the predictions of a model that recrawl train wrote.", flags=("--model", "-m"), metavar="FILE"
    )
    per_host: int | None = option(None, "Maximum number of pages per host.", minimum=0)
    per_site: int | None = option(
        None, "Maximum number of pages per site: registered domain, or as --roots says.", minimum=0
    )
    roots: str = option(
        "domain",
        "What a site is: everything of a registered domain or host, or everything under a root, by a pattern such as '/~*/' or a "
        "file with one root per line.",
        metavar="domain|host|PATTERN|FILE",
        check=check_roots,
    )
    min_gap: str | None = option(
        None,
        "Minimum time between two visits to the same page, such as 6h or 7d.",
        metavar="PERIOD",
        check=parse_period,
    )
    threshold: float | None = option(
        None,
        "Minimum probability that a page has new links; with goal content, that it changed; with both, either.",
        minimum=0.0,
        maximum=1.0,
    )
    exclude: tuple[str, ...] = option(
        (), "Skip URLs with this prefix or glob pattern (*, ?). Repeatable.", metavar="PATTERN"
    )
    retry_gone: bool = option(False, "Include pages that answered 404 or 410.")
    unwatched: bool = option(False, "Include pages that are not watched (see recrawl watch).")
    rates: str | None = option(
        None,
        "How policies that use rates of change estimate them: maximum-likelihood (default), simple, regular, law-of-large-numbers "
        "or stochastic-approximation.",
        metavar="NAME",
        check=checked_rates,
    )
    settings: tuple[str, ...] = option(
        (),
        "Setting of the policy, such as bandit.window=28. Repeatable.",
        flags=("--set",),
        metavar="POLICY.SETTING=VALUE",
    )
    every: str = option(
        "auto",
        "How past visits are grouped into batches: 'auto' (recorded crawls where there are pauses, else a period that suits the "
        "data), 'crawl', a period such as 1h or 7d, or the times at which batches end.",
        metavar="PERIOD",
        check=_check_rounds,
    )

    links: str = option("all", "Links that count: internal, external or all.", choices=LINKS)
    relevance: str | None = option(
        None,
        "Count only new links to relevant pages: by the relevance recorded with visits to these pages, else by this classifier "
        "(from recrawl relevance); 'recorded': without a classifier. Relevant is what is above 0.5, or as in FILE:0.8.",
        metavar="FILE|recorded",
        check=_check_relevance,
    )
    relearn: bool = option(
        False, "Learn from the whole history again instead of continuing from what was learnt before."
    )

    def __post_init__(self) -> None:
        read_values(self)
        check_values(self)
        self._check_contradictions()
        self._check_names()

    def _check_contradictions(self) -> None:
        by_policy = self.policy is not None or bool(self.settings)
        if self.model and by_policy:
            raise BadOption("model plans by its own predictions: leave policy and settings out")
        if self.model and self.goal != "links":
            raise BadOption(f"model predicts new links only: leave model out, or goal {self.goal}")
        if self.model and self.change != ANY:
            raise BadOption(f"model predicts new links only: leave model out, or change {self.change}")
        if self.model and self.links != "all":
            raise BadOption(f"model predicts the links that it was trained for: leave model out, or links {self.links}")
        if self.model and self.roots != "domain":
            raise BadOption(f"model plans by registered domains: leave model out, or roots {self.roots}")
        _check_focus(self)
        if self.rates is not None and (self.model or self.goal == "both"):
            raise BadOption(f"rates {self.rates} is for policies that estimate rates: leave model and goal both out")
        if self.goal == "both" and by_policy:
            raise BadOption(
                "goal both weighs links and changes itself: leave policy and settings out, or use goal links or content"
            )
        if self.favour is not None and (by_policy or self.model or self.goal != "links"):
            raise BadOption(
                f"favour {self.favour} is for plans by expected-harvest: leave policy, settings, model and goal out, or use "
                f"policy expected-harvest with the setting expected-harvest.favour={self.favour}"
            )
        if self.weight is not None and self.goal != "both":
            raise BadOption(f"weight {self.weight:g} weighs links against content: it needs goal both")

    def _check_names(self) -> None:
        """What is named must be there, before anything slow begins."""
        if self.model is not None and not Path(self.model).is_file():
            raise BadOption(f"model {self.model}: there is no such file; recrawl train writes one")
        if self.rates is not None and isinstance(self.policy, str):
            check_takes_rates(self.rates, [self.policy])
        if self.policy is None and not self.settings:
            return
        from recrawl.policies.settings import parse

        names = {text.partition("=")[0].rpartition(".")[0].strip() for text in self.settings} - {""}
        if isinstance(self.policy, str):
            self._check_policy(self.policy)
            names = {self.policy}
        elif isinstance(self.policy, type):
            raise BadOption(
                f"policy is the class {self.policy.__name__}; give its name, or an object: {self.policy.__name__}()"
            )
        elif self.policy is not None and not hasattr(self.policy, "choose"):
            raise BadOption(f"policy is {self.policy!r}; give a name, or an object of a policy's class")
        elif self.policy is not None:
            _refuse_future(self.policy.name, self.policy.needs)
            if self.settings:
                raise BadOption(
                    "settings belong to a policy that is named: give an object its settings when it is made"
                )
        for name in sorted(names):
            self._check_policy(name)
        parse(self.settings, sorted(names))

    def _check_policy(self, name: str) -> None:
        from recrawl.policies.registry import policy_class

        try:
            policy = policy_class(name)
        except BadPlugin as error:
            raise BadOption(f"policy: {error}") from None
        _refuse_future(policy.name, policy.needs)


def _check_focus(options: PlanOptions) -> None:
    """Refuse relevance where no links are counted, or where a model counts them by itself."""
    if options.relevance is not None and options.goal == "content":
        raise BadOption(
            f"goal content counts changes of pages: leave relevance {options.relevance} out, or use goal links"
        )
    if options.relevance is not None and options.model is not None:
        raise BadOption(f"model predicts all new links: leave model out, or relevance {options.relevance}")


def check_takes_rates(rates: str, policies: Sequence[str]) -> None:
    """Refuse an estimator that none of these policies would use."""
    from recrawl.policies.registry import known, policy_class

    if not any("rates" in policy_class(name).default_settings() for name in policies):
        takers = [name for name in known() if "rates" in policy_class(name).default_settings()]
        raise BadOption(f"rates {rates}: {', '.join(policies)} estimates no rates; those that do: {', '.join(takers)}")


def _refuse_future(name: str, needs: Any) -> None:
    from recrawl.world.pages import Need

    if Need.FUTURE in needs:
        raise BadOption(
            f"policy {name} knows the future: it can only be replayed. Try recrawl replay --policies {name}"
        )
