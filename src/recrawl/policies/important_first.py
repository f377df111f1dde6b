"""Pages of no importance come last, whatever a policy makes of the others."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget, Cause
from recrawl.policies.choice import Choice, PageName, by_number
from recrawl.policies.explanation import Explanation
from recrawl.world.pages import Pages, Visits


def choose_important(policy: Policy, pages: Pages, budget: Budget, now: datetime) -> Choice:
    """The policy's choice; pages with importance 0 only get what the others leave of the budget.

    >>> from recrawl.policies import RoundRobin
    >>> pages = Pages.unseen(site=np.arange(3), host=np.arange(3))
    >>> pages.importance = np.array([0.0, 1.0, 2.0])
    >>> now = datetime(2026, 3, 2).astimezone()
    >>> [choose_important(RoundRobin(), pages, Budget(n), now).page.tolist() for n in (2, 3)]
    [[1, 2], [1, 2, 0]]
    """
    if pages.importance is None or pages.importance.all():
        return policy.choose(pages, budget, now)
    n, matters = len(pages), pages.importance > 0
    barred = np.zeros(n, np.int8) if budget.barred is None else budget.barred
    without = np.where((barred == 0) & ~matters, np.int8(Cause.UNIMPORTANT), barred)
    choice = policy.choose(pages, replace(budget, barred=without), now)
    if len(choice) >= budget.pages:
        return choice
    rest = budget.rest(choice, n)
    assert rest.barred is not None
    others = np.where((rest.barred == 0) & matters, np.int8(Cause.BELOW_CUT), rest.barred)
    per_cycle = (
        budget.per_cycle or budget.pages
    )  # what can be fetched in a cycle is not less because most of it is spent
    return choice.then(policy.choose(pages, replace(rest, barred=others, per_cycle=per_cycle), now))


class ImportantFirst(Policy):
    """Another policy, with pages of no importance last, and how much each page matters in its reason.

    Used by plans where the importance of pages is known. Whether it weighs the others is up to the inner policy.
    """

    name: ClassVar[str] = "important-first"

    def __init__(self, inner: Policy) -> None:
        self.inner = inner
        self.needs = inner.needs

    def start(self, pages: Pages) -> None:
        """The inner policy forgets everything."""
        self.inner.start(pages)

    def extend(self, pages: Pages, n_before: int) -> None:
        """More pages are known."""
        self.inner.extend(pages, n_before)

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """What the inner policy chooses, those of no importance last."""
        choice = choose_important(self.inner, pages, budget, now)
        if pages.importance is None:
            return choice
        importance = pages.importance[choice.page]

        def reason(i: int, name: PageName) -> str:
            why = choice.why(i, name)
            return why if importance[i] == 1 else f"{why}; importance {importance[i]:g}"

        return replace(choice, reason=reason)

    def explain(
        self, pages: Pages, page: int, now: datetime, budget: Budget | None = None, name: PageName = by_number
    ) -> Explanation:
        """What the inner policy thinks of one page, with its rank among all."""
        inner = self.inner.explain(pages, page, now, budget, name)
        return replace(super().explain(pages, page, now, budget, name), overlaps=inner.overlaps, experts=inner.experts)

    def observe(self, visits: Visits) -> None:
        """The inner policy learns."""
        self.inner.observe(visits)
