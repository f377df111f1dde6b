"""Visit the pages with most new links and most likely changes, with a weight between the two."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.core.arrays import Flags, Floats
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.select import take
from recrawl.world.pages import Pages, Visits


def weighed(links: Floats, changed: Floats, weight: float, counts: Flags) -> Floats:
    """Both gains in one number: each in units of its mean over the pages that count, `weight` for the links.

    A page with more of both is never below another, whatever the weight.

    >>> every = np.array([True, True])
    >>> weighed(np.array([3.0, 1.0]), np.array([0.2, 0.6]), 0.5, every)  # means 2 and 0.4
    array([1., 1.])
    >>> weighed(np.array([3.0, 1.0]), np.array([0.2, 0.6]), 0.75, every)
    array([1.25, 0.75])
    """
    return weight * _in_means(links, counts) + (1.0 - weight) * _in_means(changed, counts)


def _in_means(gain: Floats, counts: Flags) -> Floats:
    mean = float(gain[counts].mean()) if counts.any() else 0.0
    return gain / mean if mean > 0 else np.zeros(len(gain))


class LinksAndContent(Policy):
    """Visit the pages with most expected new links and the highest probability of change, with a weight between the two.

    For crawls that must find new links and keep copies up to date at once. Weight 1 ranks by expected new links, 0 by the
    probability of change; among equal pages the one that is best in both comes first. Gone pages do not count for the means,
    since what is expected of them grows for ever.

    >>> LinksAndContent(weight=0.7)
    LinksAndContent(weight=0.7)
    >>> from recrawl.testing import Case, choices, tiny_world
    >>> quiet, busy = [{1}] * 6, [{10}, {11}, {12}, {13}, {14}, {15}]
    >>> case = Case(tiny_world(list(zip(quiet, busy))), (Budget(1),))
    >>> [choice.page.tolist() for choice in choices(LinksAndContent(), case)]
    [[0], [1], [1], [1], [1]]
    """

    name: ClassVar[str] = "links-and-content"
    weighs: ClassVar[bool] = True

    def __init__(self, weight: float = 0.5) -> None:
        if not 0 <= weight <= 1:
            raise ValueError(f"weight is {weight}; it must be from 0 (only changes count) to 1 (only new links)")
        self.weight = weight

    def start(self, pages: Pages) -> None:
        """Forget all visits."""
        from recrawl.models.change_expectation import ChangeExpectation
        from recrawl.models.link_expectation import LinkExpectation

        self.links_, self.changes_ = LinkExpectation(len(pages)), ChangeExpectation(len(pages))

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The highest weighed gain first."""
        links, changed = self.links_.expect(pages, now)[0], self.changes_.expect(now, pages=pages)
        return take(
            weighed(links, changed, self.weight, ~pages.is_gone),
            pages,
            budget,
            ties=pages.weighed(weighed(links, changed, 0.5, ~pages.is_gone)),
            reason="{links:.1f} new links and {changed:.0%} changed expected, last visit {hours:.1f} h ago",
            detail={"links": links, "changed": changed, "hours": pages.age_hours(now)},
            expected=links,
            weighs=True,
        )

    def observe(self, visits: Visits) -> None:
        """Learn what the visits brought and whether pages changed."""
        self.links_.observe(visits)
        self.changes_.observe(visits)
