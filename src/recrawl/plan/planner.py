"""History + options → plan. Read this first: everything else serves it.

The only way to a plan: the API, the commands, the Scrapy add-on and ``recrawl crawl`` all use `Planner`.
"""

from __future__ import annotations

import copy
import fnmatch
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from recrawl.core.arrays import Flags, Ints
from recrawl.core.options import record_of
from recrawl.core.times import parse_moment, parse_period
from recrawl.history import History
from recrawl.plan.assembly import assembled, chosen_pages, expected_gains, hours_of, left_out, waiting
from recrawl.plan.budgets import pages_of
from recrawl.plan.default import default_policy
from recrawl.plan.explain import PlanExplanation
from recrawl.plan.explain import explain as explain_page
from recrawl.plan.known import known_page
from recrawl.plan.learning import Learning
from recrawl.plan.options import PlanOptions, check_takes_rates
from recrawl.plan.plan import Plan, PlanRequest
from recrawl.plan.situation import Situation
from recrawl.plan.survey import survey
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget, Cause
from recrawl.policies.registry import blaming, check_choice
from recrawl.world.notions import notion_or_any
from recrawl.world.roots import Roots, parse_roots

if TYPE_CHECKING:
    from recrawl.models.link_relevance import Focus

Report = Callable[[str], None]


def ignore(message: str) -> None:
    """Default callback: do nothing."""


class Planner:
    """Makes plans from a history, and explains them.

    `now`: plan as of that moment, from what was known then. `forbidden`: ids of pages that must not be fetched. `carry`: keep what
    is learnt beside the history, so that the next plan only learns what is new. `on_step` is called with what is going on,
    `on_note` with what the user should know.
    """

    def __init__(
        self,
        history: History,
        options: PlanOptions | None = None,
        now: datetime | str | None = None,
        *,
        forbidden: Ints | None = None,
        carry: bool = False,
        on_step: Report = ignore,
        on_note: Report = ignore,
    ) -> None:
        self.options = PlanOptions() if options is None else options
        now = parse_moment(now) if isinstance(now, str) else now
        self.history = history.detached() if now is None else history.as_of(now)
        self.now = now or history.until or datetime.now(UTC)
        self.forbidden, self.carry = forbidden, carry
        self.on_step, self.on_note = on_step, on_note
        self._finish_keeping: Callable[[], None] = lambda: None

    def plan(self) -> Plan:
        """The pages to fetch next."""
        try:
            return make_plan(self.situation, self.request, self.now)
        finally:
            self._finish_keeping()

    def explain(self, url: str) -> PlanExplanation:
        """Why a page is, or is not, in the plan."""
        page = known_page(self.history, url)  # at once, before the past is read
        try:
            return explain_page(self.situation, self.request, self.budget, page, self.now)
        finally:
            self._finish_keeping()

    @cached_property
    def situation(self) -> Situation:
        """What the past shows; read once, when it is first needed."""
        options = self.options
        if options.model is not None:
            from recrawl.plan.by_model import (
                situation_by_model,  # models take seconds to load, and most plans need none
            )

            return situation_by_model(self.history, options.model, self.on_step, self.on_note)
        for note in self.roots.notes():
            self.on_note(note)
        learning = Learning(
            history=self.history,
            policy=self.chosen_policy(),
            now=self.now,
            every=options.every,
            notion=notion_or_any(options.change),
            links=options.links,  # type: ignore[arg-type]  # checked
            focus=self.focus,
            roots=self.roots,
            carry=self.carry,
            relearn=options.relearn,
            on_step=self.on_step,
            on_note=self.on_note,
        )
        self._finish_keeping = learning.finish_keeping
        return survey(learning)

    @cached_property
    def focus(self) -> Focus | None:
        """Which links count as relevant; None: all count."""
        from recrawl.models.link_relevance import Focus

        return Focus.of(self.options.relevance)

    @cached_property
    def roots(self) -> Roots:
        """What a site is."""
        return parse_roots(self.options.roots)

    @cached_property
    def request(self) -> PlanRequest:
        """The options with everything worked out that depends on the history."""
        unwatched = self.unwatched
        return self.request_for(len(self.situation.pages) - int(np.isin(self.situation.page, unwatched).sum()))

    def request_for(self, n_pages: int) -> PlanRequest:
        """The same where that many pages are known and watched."""
        options = self.options
        pages = pages_of(options.budget, n_pages)
        if pages > n_pages:
            self.on_note(f"budget {options.budget} is above the number of known pages: {n_pages:,} are used")
        return PlanRequest(
            pages=min(pages, n_pages),
            per_host=options.per_host,
            per_site=options.per_site,
            min_gap=parse_period(options.min_gap) if options.min_gap else timedelta(0),
            exclude=options.exclude,
            threshold=options.threshold,
            retry_gone=options.retry_gone,
            every=options.every,
            goal=options.goal,
            forbidden=self.forbidden,
            unwatched=self.unwatched,
            change=options.change,
            links=options.links,
            focus=self.focus,
            roots=self.roots,
        )

    @property
    def budget(self) -> Budget:
        """What may be fetched, with the pages barred that must not be."""
        return budget_of(self.situation, self.request, self.now)

    @cached_property
    def unwatched(self) -> Ints:
        """Ids of the pages that are known and not watched."""
        if self.options.unwatched:
            return np.empty(0, np.int64)
        from recrawl.history.watching import unwatched

        return unwatched(self.history)

    def chosen_policy(self) -> Policy:
        """The policy that the options name, or the default."""
        from recrawl.policies.settings import made

        options = self.options
        if isinstance(options.policy, Policy):
            return copy.deepcopy(options.policy)  # the caller's own stays as it is
        if options.goal == "both":
            from recrawl.policies.links_and_content import LinksAndContent

            return LinksAndContent(0.5 if options.weight is None else options.weight)
        common = {"updates": "content" if options.goal == "content" else None, "rates": options.rates}
        if options.policy is not None:
            return made(options.policy, options.settings, **common)
        default = default_policy(
            self.history,
            options.every,
            options.goal,
            options.favour,
            roots=options.roots,
            change=options.change,
            links=options.links,
            focus=self.focus,
        )
        self.on_note(f"planning {default.why}")
        if options.rates is not None:
            check_takes_rates(options.rates, [default.policy])
        asked = {name: value for name, value in common.items() if value is not None}
        return made(default.policy, options.settings, **default.settings | asked)


def plan(
    history: History | str | Path, *, now: datetime | str | None = None, keep: bool = False, **options: Any
) -> Plan:
    """The pages to fetch next, by the options of ``recrawl plan`` (see `PlanOptions`).

    `budget` is a number of pages or a share of the known pages; `policy` a name or a `Policy`. `now`: plan as of that moment,
    from what was known then. The history stays as it is, unless `keep` stores the plan in it, so that `recrawl.score` can later
    say how right it was.

    >>> import recrawl as rc
    >>> from recrawl.testing import tiny_history
    >>> with tiny_history() as history:
    ...     tonight = rc.plan(history, budget=2, policy="average-count")
    ...     print(tonight)
    ...     print(tonight.url[0])
    Plan(2 pages by average-count, 5.0 new links expected)
    https://e.org/news
    """
    asked = record_of(PlanOptions, options)  # what is wrong with the options is said before the history is opened
    history = History.of(history)
    made = Planner(history, asked, now, carry=keep).plan()
    if keep:
        from recrawl.plan.score import store

        store(history, made)
    return made


def explain(
    history: History | str | Path, url: str, *, now: datetime | str | None = None, **options: Any
) -> PlanExplanation:
    """Why a page is, or is not, in the plan that the same options would give.

    >>> import recrawl as rc
    >>> from recrawl.testing import tiny_history
    >>> with tiny_history() as history:
    ...     why = rc.explain(history, "https://e.org/about", budget=1, policy="average-count")
    >>> why.is_picked, why.rank, why.cause
    (False, 3, 'below cut')
    """
    asked = record_of(PlanOptions, options)
    return Planner(History.of(history), asked, now).explain(url)


def make_plan(situation: Situation, request: PlanRequest, now: datetime) -> Plan:
    """The policy's choice as a plan."""
    pages, budget = situation.pages, budget_of(situation, request, now)
    policy = situation.chooser(request)
    twice = min(2 * budget.pages + 1, len(pages))
    with blaming(situation.policy):
        choice = policy.choose(pages, budget, now)
        ranked = policy.choose(pages, replace(budget, pages=twice, per_cycle=budget.pages), now)
        check_choice(choice, ranked)
    n_starving, n_may = waiting(situation, request, budget, choice, now)
    counts = None if choice.cause is None else np.bincount(choice.cause, minlength=len(Cause))
    return assembled(
        chosen=chosen_pages(situation, request, now, choice),
        ranked=expected_gains(situation, request, now, ranked),
        request=request,
        now=now,
        policy=situation.policy,
        n_known=len(pages),
        left_out=left_out(counts, len(pages) - len(choice)),
        n_starving=n_starving,
        n_may=n_may,
        cycle_hours=situation.cycle_hours,
        memo=dict(choice.memo),
    )


def budget_of(situation: Situation, request: PlanRequest, now: datetime) -> Budget:
    """The budget, with the pages that must not be fetched barred."""
    pages = situation.pages
    barred = np.zeros(len(pages), np.int8)

    def bar(which: Flags, cause: Cause) -> None:
        barred[which & (barred == 0)] = cause

    if request.exclude:
        bar(matching(situation.url, request.exclude), Cause.EXCLUDED)
    if request.forbidden is not None:
        bar(np.isin(situation.page, request.forbidden), Cause.EXCLUDED)
    if request.unwatched is not None:
        bar(np.isin(situation.page, request.unwatched), Cause.NOT_WATCHED)
    if not request.retry_gone:
        bar(pages.is_gone, Cause.GONE)
    bar(pages.age_hours(now) < hours_of(request.min_gap), Cause.TOO_SOON)
    if request.threshold is not None:
        bar(situation.probability(request, now) < request.threshold, Cause.UNPROMISING)
    return Budget(request.pages, request.per_host, request.per_site, barred)


def matching(url: pa.Array, patterns: Sequence[str]) -> Flags:
    """Which URLs match one of the patterns with ``*`` and ``?``; a pattern without any of these is a prefix.

    Brackets mean themselves, since they enclose IPv6 addresses.

    >>> matching(pa.array(["https://e.org/a/1", "https://e.org/b"]), ["https://e.org/a/", "*c"]).tolist()
    [True, False]
    >>> matching(pa.array(["https://[2001:db8::1]/a"]), ["https://[2001:db8::1]/"]).tolist()
    [True]
    """
    matches = np.zeros(len(url), np.bool_)
    for pattern in patterns:
        plain = (pattern if any(sign in pattern for sign in "*?") else pattern + "*").replace("[", "[[]")
        # Atomic groups save Python time; Arrow's engine does not know them and does not need them.
        expression = fnmatch.translate(plain).replace(r"\Z", r"\z").replace("(?>", "(?:")
        matches |= np.asarray(pa.compute.match_substring_regex(url, f"^{expression}"))
    return matches
