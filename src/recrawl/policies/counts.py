"""Visit the pages that gained most links before, or changed most often: one number per page, and nothing to train."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.select import take
from recrawl.world.pages import Pages, Visits


class PreviousCount(Policy):
    """Visit the pages that had most new links when they were last visited.

    Most pages go on as they did, so this is hard to beat where visits are evenly spaced, such as from week to week. Where they
    are not, it is unfair: the count of a page that was just visited is small only because it had no time to grow. New links are
    those that the copy before did not have. Pages visited only once come first.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> quiet, busy = [{1}] * 6, [{10}, {11}, {12}, {13}, {14}, {15}]
    >>> case = Case(tiny_world(list(zip(quiet, busy))), (Budget(1),))
    >>> [choice.page.tolist() for choice in choices(PreviousCount(), case)]
    [[0], [1], [1], [1], [1]]

    References: NNL-Pr of Dang et al. (2022), Table 4.
    """

    name: ClassVar[str] = "previous-count"
    paper: ClassVar[str | None] = "NNL-Pr"
    parted: ClassVar[bool] = True
    weighs: ClassVar[bool] = True

    def start(self, pages: Pages) -> None:
        """Forget all counts."""
        self.count_ = np.zeros(len(pages))

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The highest count first."""
        reason = "{count:.0f} new links at the last visit"
        detail = {"count": self.count_}
        return take(
            self.count_,
            pages,
            budget,
            first=pages.is_new,
            reason=reason,
            detail=detail,
            expected=self.count_,
            weighs=True,
        )

    def observe(self, visits: Visits) -> None:
        """Keep the newest count of each page."""
        known = visits.n_new_since >= 0
        self.count_[visits.page[known]] = visits.n_new_since[known]


class AverageCount(Policy):
    """Visit the pages that had most new links on average over all their visits.

    Steadier than `previous-count` where counts vary by chance. All visits count alike, however long ago; `windowed-outdegree`
    forgets. New links are those that the copy before did not have. Pages visited only once come first.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> quiet, busy = [{1}] * 6, [{10}, {11}, {12}, {13}, {14}, {15}]
    >>> case = Case(tiny_world(list(zip(quiet, busy))), (Budget(1),))
    >>> [choice.page.tolist() for choice in choices(AverageCount(), case)]
    [[0], [1], [1], [1], [1]]

    References: NNL-Av of Dang et al. (2022), Table 4.
    """

    name: ClassVar[str] = "average-count"
    paper: ClassVar[str | None] = "NNL-Av"
    parted: ClassVar[bool] = True
    weighs: ClassVar[bool] = True

    def start(self, pages: Pages) -> None:
        """Forget all counts."""
        self.sum_ = np.zeros(len(pages))
        self.n_ = np.zeros(len(pages), np.int64)

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The highest average first."""
        mean = self.sum_ / np.maximum(self.n_, 1)
        reason = "{mean:.1f} new links per visit over {n} visits"
        detail = {"mean": mean, "n": self.n_}
        return take(mean, pages, budget, first=pages.is_new, reason=reason, detail=detail, expected=mean, weighs=True)

    def observe(self, visits: Visits) -> None:
        """Add to the averages."""
        known = visits.n_new_since >= 0
        self.sum_[visits.page[known]] += visits.n_new_since[known]
        self.n_[visits.page[known]] += 1


class ContentChangeRate(Policy):
    """Visit the pages that had changed at the greatest share of their visits.

    Good for keeping copies up to date where the budget reaches the busy pages. How much a change brings does not count, so this
    finds busy pages rather than new links. Text and links both count, as far as they are known; the paper's digest leaves the
    links out. Pages visited only once come first.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> quiet, busy = [{1}] * 6, [{10}, {11}, {12}, {13}, {14}, {15}]
    >>> case = Case(tiny_world(list(zip(quiet, busy))), (Budget(1),))
    >>> [choice.page.tolist() for choice in choices(ContentChangeRate(), case)]
    [[0], [1], [1], [1], [1]]

    References: CCR of Dang et al. (2022), Table 4.
    """

    name: ClassVar[str] = "content-change-rate"
    paper: ClassVar[str | None] = "CCR"
    parted: ClassVar[bool] = True
    weighs: ClassVar[bool] = True

    def start(self, pages: Pages) -> None:
        """Forget all changes."""
        self.n_changed_ = np.zeros(len(pages), np.int64)
        self.n_ = np.zeros(len(pages), np.int64)

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The highest share first."""
        rate = self.n_changed_ / np.maximum(self.n_, 1)
        reason = "changed at {n_changed} of {n} visits"
        detail = {"n_changed": self.n_changed_, "n": self.n_}
        return take(rate, pages, budget, first=pages.is_new, reason=reason, detail=detail, weighs=True)

    def observe(self, visits: Visits) -> None:
        """Add to the shares."""
        known = visits.changed >= 0
        self.n_changed_[visits.page[known]] += visits.changed[known]
        self.n_[visits.page[known]] += 1
