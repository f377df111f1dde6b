"""Visit the pages that were most probably updated since their last known update."""

from __future__ import annotations

import math
from collections import deque
from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.core.arrays import Floats, Ints, Ints8
from recrawl.core.times import NEVER, US_PER_DAY, microseconds
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.page_updates import checked_kind, updates_in
from recrawl.policies.select import take
from recrawl.world.pages import Need, Pages, Visits
from recrawl.world.rate_names import checked_rates


class HistoryAware(Policy):
    """Visit the pages with the highest probability of an update since their last known one, p = 1 - exp(-λ(now + ahead - τ)).

    Good for pages that change rarely and independently of each other, such as personal home pages, and for archived histories with
    irregular captures. An update is a link never before seen on the page; with `updates` "content" it is any change since the
    capture before, if only of its checksum, so that capture indexes are enough. The rate λ is estimated by `rates` (maximum
    likelihood) from the visits of the last `window` cycles, or of the last `window_days` where given; both reach back from the last
    cycle, so that a window of 1 holds one interval. With `interpolated`, updates are taken to have happened halfway between the
    visit that shows them and the one before. The paper's t is the last crawl and e the time to the next, so t + e is now, and
    `ahead_days` is 0; set it for a plan that is carried out later.

    Where no update is in the window p is 0, and of such pages the longest waiting come first. Pages visited only once have no p
    and come before all others, since nothing else would ever show how they change. With `threshold` (θ) only those and pages with
    p ≥ θ are visited, even if that leaves a part of the budget; pages without an update in the window are then not visited any
    more.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> quiet, busy = [{1}] * 6, [{10}, {11}, {12}, {13}, {14}, {15}]
    >>> case = Case(tiny_world(list(zip(quiet, busy))), (Budget(1),))
    >>> [choice.page.tolist() for choice in choices(HistoryAware(), case)]
    [[0], [1], [1], [1], [1]]

    References: HACS of Jayawardana et al. (2020), Eq. 5 and section II-E; section V for updates of content.
    """

    name: ClassVar[str] = "history-aware"
    paper: ClassVar[str | None] = "HACS"
    parted: ClassVar[bool] = True
    weighs: ClassVar[bool] = True
    needs = frozenset({Need.UPDATES})

    def __init__(
        self,
        window: int = 168,
        window_days: float | None = None,
        interpolated: bool = True,
        ahead_days: float = 0.0,
        threshold: float | None = None,
        updates: str = "links",
        rates: str = "maximum-likelihood",
    ) -> None:
        self.window, self.window_days = window, window_days
        self.interpolated, self.ahead_days, self.threshold = interpolated, ahead_days, threshold
        self.updates, self.rates = checked_kind(updates), checked_rates(rates)

    def start(self, pages: Pages) -> None:
        """Forget all updates."""
        from recrawl.policies.visit_log import VisitLog

        self.log_ = VisitLog(len(pages), at=np.int64, updated=np.int8)
        self.cycles_: deque[tuple[int, int]] = deque()  # time, and number of visits noted
        self.per_day_: Floats = np.zeros(len(pages))
        self.last_update_: Ints = np.full(len(pages), NEVER)

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The highest probability first."""
        from recrawl.insight.rates import probability_of_change

        p = probability_of_change(self.per_day_, self.last_update_, microseconds(now), self.ahead_days)
        hours, worth = pages.age_hours(now), pages.weighed(p)
        return take(
            worth,
            pages,
            budget,
            ties=hours,
            first=pages.is_new,
            may=None if self.threshold is None else pages.is_new | (p >= self.threshold),
            reason="updated with probability {probability:.2f}: {per_day:.3f} updates per day, last visit {hours:.0f} h ago",
            detail={"probability": p, "per_day": self.per_day_, "hours": hours},
        )

    def observe(self, visits: Visits) -> None:
        """Estimate the pages again that were visited or whose oldest visits left the window."""
        seen, updated = updates_in(visits, self.updates)
        self._note(visits.page[seen], visits.at[seen], updated[seen], microseconds(visits.ended_at))

    def _note(self, page: Ints, at: Ints, updated: Ints8, ended: int) -> None:
        self.log_.add(page, at=at, updated=updated)
        self.cycles_.append((ended, len(page)))
        self._estimate(np.union1d(page, self.log_.drop(self._n_too_old(ended))))

    def _n_too_old(self, now: int) -> int:
        oldest = -math.inf if self.window_days is None else now - self.window_days * US_PER_DAY
        most = self.window + 1 if self.window_days is None else math.inf
        n = 0
        while self.cycles_ and (len(self.cycles_) > most or self.cycles_[0][0] < oldest):
            n += self.cycles_.popleft()[1]
        return n

    def _estimate(self, page: Ints) -> None:
        from recrawl.insight.rates import ESTIMATORS, interpolated_intervals, last_updates, observed_intervals

        start, row = self.log_.of(page)
        visits = start, self.log_["at"][row], self.log_["updated"][row]
        between = interpolated_intervals if self.interpolated else observed_intervals
        self.per_day_[page] = ESTIMATORS[self.rates](between(*visits))
        self.last_update_[page] = last_updates(*visits, interpolated=self.interpolated)
