"""Visit pages when they are due, as StormCrawler's AdaptiveScheduler does."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints, Ints8
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.due import AT_ONCE, take_due
from recrawl.policies.weights import given_or_stated, weights_for
from recrawl.world.pages import Pages, Visits


def next_interval(
    interval: Ints,
    changed: Ints8,
    *,
    grow: float = 0.5,
    shrink: float = 0.5,
    minimum: int = 60,
    maximum: int = 20_160,
    first: int = 1_440,
) -> Ints:
    """The new interval of pages that answered, in whole minutes.

    `changed` is 1, 0, or -1 where there was nothing to compare with: then the interval is the `first` one again. The closer to
    the minimum, the smaller the steps down.

    >>> next_interval(np.array([1440, 1440, 90]), np.array([0, 1, -1], np.int8))
    array([2160, 750, 1440])
    """
    longer = np.minimum(((1 + grow) * interval).astype(np.int64), maximum)
    shorter = ((1 - shrink) * interval + shrink * minimum).astype(np.int64)
    return np.where(changed == 1, shorter, np.where(changed == 0, longer, first))


class StormcrawlerAdaptive(Policy):
    """Visit the pages that are due, with intervals that are halved when a page has changed and grow by half when it has not.

    What StormCrawler runs; the defaults suit pages that change daily to weekly. Intervals are whole minutes, at first
    `first_minutes`, between `minimum_minutes` and `maximum_minutes`. A failed page is tried again after `failed_minutes` and a
    gone one after `gone_minutes`; both lose what was known of them, so that the next answer counts as the first.

    Due pages come by `score` (one number per page; by default its importance, as the visits state it), then by how long they have
    been due. The rest of the budget goes to those due soonest; with `only_due` it is not used, as in the crawler itself.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> quiet, busy = [{1}] * 6, [{10}, {11}, {12}, {13}, {14}, {15}]
    >>> case = Case(tiny_world(list(zip(quiet, busy)), hours=range(0, 6 * 6, 6)), (Budget(1),))
    >>> [choice.page.tolist() for choice in choices(StormcrawlerAdaptive(), case)]
    [[0], [1], [1], [1], [1]]

    References: Apache StormCrawler, AdaptiveScheduler and DefaultScheduler.
    """

    name: ClassVar[str] = "stormcrawler-adaptive"
    paper: ClassVar[str | None] = "StormCrawler"
    weighs: ClassVar[bool] = True

    def __init__(
        self,
        first_minutes: int = 1_440,
        grow: float = 0.5,
        shrink: float = 0.5,
        minimum_minutes: int = 60,
        maximum_minutes: int = 20_160,
        failed_minutes: int = 120,
        gone_minutes: int = 44_640,
        score: Floats | None = None,
        only_due: bool = False,
    ) -> None:
        self.first_minutes, self.grow, self.shrink = first_minutes, grow, shrink
        self.minimum_minutes, self.maximum_minutes = minimum_minutes, maximum_minutes
        self.failed_minutes, self.gone_minutes = failed_minutes, gone_minutes
        self.score, self.only_due = score, only_due

    def start(self, pages: Pages) -> None:
        """All pages are due at once."""
        self.score_ = weights_for(pages, self.score, "score")
        self.interval_: Ints = np.full(len(pages), self.first_minutes)
        self.due_: Floats = np.full(len(pages), AT_ONCE)
        self.forgotten_: Flags = np.zeros(len(pages), np.bool_)  # failed since it last answered

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The due pages."""
        interval = self.interval_ * np.float64(60.0)
        score = given_or_stated(self.score, self.score_, pages)
        return take_due(pages, budget, now, due=self.due_, interval=interval, score=score, only_due=self.only_due)

    def observe(self, visits: Visits) -> None:
        """Set when each page is due again."""
        page = visits.page
        answer = next_interval(
            self.interval_[page],
            np.where(self.forgotten_[page], -1, visits.changed).astype(np.int8),
            grow=self.grow,
            shrink=self.shrink,
            minimum=self.minimum_minutes,
            maximum=self.maximum_minutes,
            first=self.first_minutes,
        )
        no_answer = np.where(visits.gone, self.gone_minutes, self.failed_minutes)
        self.interval_[page] = np.where(visits.came, answer, no_answer)
        self.forgotten_[page] = ~visits.came
        self.due_[page] = visits.at / 1e6 + 60.0 * self.interval_[page]
