"""All that is known of the pages at one moment: what a plan is made from and explained by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

import numpy as np
import pyarrow as pa

from recrawl.core.arrays import Floats, Ints
from recrawl.insight.hints.of_pages import Hints
from recrawl.models.change_expectation import ChangeExpectation
from recrawl.plan.plan import PlanRequest
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice, PageName
from recrawl.policies.hinted import Hinted
from recrawl.policies.important_first import ImportantFirst
from recrawl.world.notions import ANY
from recrawl.world.pages import Need, Pages


class LinkExpectations(Protocol):
    """What a visit to each page would bring, and what its visits have brought."""

    size: Floats  # links on the page when it was last seen; NaN: not known
    n_links: Floats  # new links found on it so far
    n_hits: Floats  # times that any were found

    def expect(self, pages: Pages, now: datetime, of: Ints | None = None) -> tuple[Floats, Floats]:
        """New links expected of a visit now, and the probability of at least one; for some pages, or for all."""


@dataclass(kw_only=True)
class Situation:
    """All that is known of the pages at one moment, with the policy that learnt from it."""

    page: Ints  # ids in the history
    url: pa.Array
    pages: Pages
    policy: Policy
    expectation: LinkExpectations
    last_change: Ints  # microseconds; NEVER
    cycle_hours: float  # usual time between two cycles
    changes: ChangeExpectation | None = None  # None: changes of pages were not looked at
    hints: Hints | None = None  # what sitemaps and feeds say; None: none was read

    def chooser(self, request: PlanRequest) -> Policy:
        """The policy that chooses; hinted pages come first where hints have proven true, unless it uses hints itself.

        Pages of no importance come last.
        """
        policy = self.policy
        if self.hints and request.use_hints and Need.SIGNALS not in policy.needs:
            policy = Hinted(policy, self.hints, self.expectation, request.goal)
        return policy if self.pages.importance is None else ImportantFirst(policy)

    def changed(self, now: datetime, of: Ints | None = None) -> Floats:
        """The probability that the copy kept of each page is out of date; NaN where it is not known."""
        if self.changes is None:
            return np.full(len(self.pages) if of is None else len(of), np.nan)
        changed = self.changes.expect(now, of, self.pages)
        if self.hints is None:
            return changed
        hinted = self.hints.probability if of is None else self.hints.probability[of]
        return np.where(np.isnan(hinted), changed, hinted)

    def expected(self, choice: Choice, now: datetime) -> tuple[Floats, Floats]:
        """New links expected of the pages picked and the probability of any: as the policy says, else as their past does.

        None is above the number of links on the page, unless the policy also says how sure it is: then it knows what a page may
        show.
        """
        by_past, likely = self.expectation.expect(self.pages, now, choice.page)
        likely = _filled(choice.spreads().any, likely)
        if choice.expected is None:
            return by_past, likely
        expected = _filled(choice.expected, by_past)
        if choice.spread is None:
            expected = np.fmin(expected, self.expectation.size[choice.page])
        return expected, likely

    def expected_of_all(self, request: PlanRequest, now: datetime) -> tuple[Floats, Floats]:
        """The same for every page, whatever may keep it out of the plan."""
        expected, likely = self.expectation.expect(self.pages, now)
        choice = self.chooser(request).choose(self.pages, Budget(len(self.pages), per_cycle=request.pages), now)
        expected[choice.page], likely[choice.page] = self.expected(choice, now)
        return expected, likely

    def probability(self, request: PlanRequest, now: datetime) -> Floats:
        """How likely each page has what the goal asks for: new links, a change, or either."""
        if request.goal == "content":
            return self.changed(now)
        links = self.expected_of_all(request, now)[1]
        return links if request.goal == "links" else np.fmax(links, self.changed(now))

    def changed_given_links(self, request: PlanRequest, now: datetime, page: Ints, any_link: Floats) -> Floats:
        """The probability that each of some pages changed: at least that of a new link, if any difference counts.

        Where changes are what a plan is made for, they stay as it was made by. NaN where they are not known.
        """
        changed = self.changed(now, page)
        return np.maximum(changed, any_link) if request.change == ANY and request.goal == "links" else changed

    def worth(self, choice: Choice, request: PlanRequest, now: datetime) -> Floats:
        """What the pages picked are worth for the goal.

        Worth is multiplied by the importance of the page; a policy's own score has that in it already.
        For both goals at once only the policy's own score has one number for both.
        """
        expected, likely = self.expected(choice, now)
        weight = 1.0 if self.pages.importance is None else self.pages.importance[choice.page]
        worth: Floats = {
            "links": expected * weight,
            "content": np.nan_to_num(self.changed_given_links(request, now, choice.page, likely)) * weight,
            "both": choice.score,
        }[request.goal]
        return worth

    def order(self, worth: Floats) -> Ints:
        """The order of pages of these worths, in the policy's order so far: the best first, whatever the policy picked first.

        A crawl that stops early has the best pages then. Equal ones stay in the policy's order, and a policy that picks pages
        together keeps its order.
        """
        return np.arange(len(worth)) if self.policy.keeps_order else np.argsort(-worth, kind="stable")

    def page_names(self, of: int) -> PageName:
        """What other pages are called in a sentence about one: by their path, if they are on the same host."""
        host = self.pages.host

        def name(page: int) -> str:
            url = str(self.url[page].as_py())
            return "/" + url.split("/", 3)[-1] if host[page] == host[of] else url

        return name

    def everything(self, request: PlanRequest, budget: Budget, now: datetime) -> Choice:
        """The choice without a limit, as if the budget were all there is to spend per cycle."""
        unlimited = replace(budget, pages=len(self.pages), per_cycle=budget.pages)
        return self.chooser(request).choose(self.pages, unlimited, now)


def _filled(values: Floats, otherwise: Floats) -> Floats:
    return np.where(np.isnan(values), otherwise, values)
