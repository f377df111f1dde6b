"""Visit pages when they are due, as Nutch's AdaptiveFetchSchedule does."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.core.arrays import Floats, Ints, Ints8
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.due import AT_ONCE, SECONDS_PER_DAY, seconds, take_due
from recrawl.policies.weights import given_or_stated, weights_for
from recrawl.world.pages import Pages, Visits

NEVER_MODIFIED = 0.0  #: as in Nutch: a time of modification up to 1970 means that it is not known


def next_interval(
    interval: Floats,
    modified: Floats,
    at: Floats | float,
    changed: Ints8,
    *,
    grow: float = 0.4,
    shrink: float = 0.2,
    minimum: float = 60.0,
    maximum: float = 365 * SECONDS_PER_DAY,
    sync_rate: float | None = 0.3,
    intended_offset: bool = False,
) -> tuple[Floats, Floats, Floats]:
    """The new interval, time of modification and time of the next visit of pages visited at `at`; all in seconds.

    `changed` is 1, 0, or -1 where there was nothing to compare with. `sync_rate` moves the next visit towards the time of change
    (None: off). An offset above the maximum becomes 0, since the original divides whole numbers; `intended_offset` makes it
    the share of the maximum that was meant. A page quiet for longer than its interval gets that time for an interval; the comment
    in the original says the opposite of its code.

    >>> day, hour_ago = SECONDS_PER_DAY, np.array([1e9 - 3600])
    >>> interval, _, due = next_interval(np.array([30 * day]), hour_ago, 1e9, np.array([1], np.int8))
    >>> interval / day, (due - 1e9) / day
    (array([24.]), array([24.]))
    """
    modified = np.where((modified <= NEVER_MODIFIED) | (changed == 1), at, modified)
    interval = interval * np.where(changed == 1, 1 - shrink, np.where(changed == 0, 1 + grow, 1.0))
    offset: Floats = np.zeros_like(interval)
    if sync_rate is not None:
        quiet = at - modified
        interval = np.maximum(interval, quiet)
        offset = np.floor(sync_rate * quiet + 0.5)
        offset = np.where(offset > maximum, sync_rate * maximum if intended_offset else 0.0, offset)
    interval = np.clip(interval, minimum, maximum)
    return interval, modified, at - offset + interval


def interval_when_gone(interval: Floats, hard_maximum: float = 90 * SECONDS_PER_DAY) -> Floats:
    """Half as long again, but nearly the hard maximum where that would reach it: a page is never given up."""
    return np.where(1.5 * interval < hard_maximum, 1.5 * interval, 0.9 * hard_maximum)


class NutchAdaptive(Policy):
    """Visit the pages that are due, with intervals that shrink when a page has changed and grow when it has not.

    What most installations of Nutch run; the defaults are made for months. Where cycles are hours, nearly nothing is due, and
    whatever changed first fills the budget. An interval begins at `first_days`, shrinks and grows by `shrink` and `grow`, stays
    between `minimum_seconds` and `maximum_days`; `sync_rate` and `intended_offset`: see `next_interval`. A page that is due in more
    than `hard_maximum_days` is due at once, with an interval cut to 0.9 of that. Gone pages are tried again after one and a half
    intervals, failed ones after a day, and from the third failure in a row on as gone.

    Due pages come by `score` (one number per page; by default its importance, as the visits state it), then by how long they have
    been due. The rest of the budget goes to those due soonest; with `only_due` it is not used, as in the crawler itself.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> quiet, busy = [{1}] * 6, [{10}, {11}, {12}, {13}, {14}, {15}]
    >>> case = Case(tiny_world(list(zip(quiet, busy)), hours=range(0, 24 * 6, 24)), (Budget(1),))
    >>> [choice.page.tolist() for choice in choices(NutchAdaptive(), case)]
    [[0], [1], [1], [1], [1]]

    References: Apache Nutch, AdaptiveFetchSchedule, AbstractFetchSchedule and CrawlDbReducer.
    """

    name: ClassVar[str] = "nutch-adaptive"
    paper: ClassVar[str | None] = "Nutch"
    weighs: ClassVar[bool] = True

    def __init__(
        self,
        first_days: float = 30.0,
        grow: float = 0.4,
        shrink: float = 0.2,
        minimum_seconds: float = 60.0,
        maximum_days: float = 365.0,
        sync_rate: float | None = 0.3,
        intended_offset: bool = False,
        hard_maximum_days: float = 90.0,
        retry_days: float = 1.0,
        n_tries: int = 3,
        score: Floats | None = None,
        only_due: bool = False,
    ) -> None:
        self.first_days, self.grow, self.shrink = first_days, grow, shrink
        self.minimum_seconds, self.maximum_days = minimum_seconds, maximum_days
        self.hard_maximum_days = hard_maximum_days
        self.sync_rate, self.intended_offset = sync_rate, intended_offset
        self.retry_days, self.n_tries = retry_days, n_tries
        self.score, self.only_due = score, only_due

    def start(self, pages: Pages) -> None:
        """All pages are due at once."""
        self.score_ = weights_for(pages, self.score, "score")
        self.interval_: Floats = np.full(len(pages), self.first_days * SECONDS_PER_DAY)
        self.modified_: Floats = np.full(len(pages), NEVER_MODIFIED)
        self.due_: Floats = np.full(len(pages), AT_ONCE)
        self.n_failures_: Ints = np.zeros(len(pages), np.int64)

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The due pages."""
        due, interval = self._pulled_in(seconds(now))
        score = given_or_stated(self.score, self.score_, pages)
        return take_due(pages, budget, now, due=due, interval=interval, score=score, only_due=self.only_due)

    def _pulled_in(self, now: float) -> tuple[Floats, Floats]:
        """When pages are due and their intervals, none further away than the hard maximum."""
        hard = self.hard_maximum_days * SECONDS_PER_DAY
        remote = self.due_ - now > hard
        interval = np.where(remote & (self.interval_ > hard), 0.9 * hard, self.interval_)
        return np.where(remote, now, self.due_), interval

    def observe(self, visits: Visits) -> None:
        """Set when each page is due again."""
        at, failed = visits.at / 1e6, visits.failed
        if visits.memo is not None:  # Nutch pulls pages in whenever it chooses: these visits were chosen by it
            self.due_, self.interval_ = self._pulled_in(seconds(visits.ended_at))
        self.n_failures_[visits.page] = np.where(failed, self.n_failures_[visits.page] + 1, 0)
        given_up = visits.gone | (self.n_failures_[visits.page] >= self.n_tries)
        self._answered(visits.page[visits.came], at[visits.came], visits.changed[visits.came])
        self.due_[visits.page[failed & ~given_up]] = at[failed & ~given_up] + self.retry_days * SECONDS_PER_DAY
        gone = visits.page[given_up]
        self.interval_[gone] = interval_when_gone(self.interval_[gone], self.hard_maximum_days * SECONDS_PER_DAY)
        self.due_[gone] = at[given_up] + self.interval_[gone]

    def _answered(self, page: Ints, at: Floats, changed: Ints8) -> None:
        self.interval_[page], self.modified_[page], self.due_[page] = next_interval(
            self.interval_[page],
            self.modified_[page],
            at,
            changed,
            grow=self.grow,
            shrink=self.shrink,
            minimum=self.minimum_seconds,
            maximum=self.maximum_days * SECONDS_PER_DAY,
            sync_rate=self.sync_rate,
            intended_offset=self.intended_offset,
        )
