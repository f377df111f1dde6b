"""The evaluation of Jayawardana et al. (2020), HACS, on any history: can a page's next update be predicted from earlier ones?

At every reference time t the rate of each page is estimated from its captures in the last w weeks, and the pages whose probability
of an update by t + e is at least θ are chosen. What is chosen at t depends on captures up to t only; it is scored by the captures
after t. All results are plain rows; tables and plots are made from them elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.core.times import NEVER
from recrawl.core.words import duration
from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.insight.rates import (
    ESTIMATORS,
    NEW,
    UNDEFINED,
    interpolated_intervals,
    last_updates,
    observed_intervals,
    probability_of_change,
    update_times,
)
from recrawl.papers.updates.captures import HOSTS, VISITS, Captures, captures_of
from recrawl.papers.updates.laws import laws
from recrawl.papers.updates.scores import ChoiceCounts, best_rows, score_rows, weighted_precisions
from recrawl.web.pdf import WITH
from recrawl.world.roots import Roots

Row: TypeAlias = dict[str, Any]
UPDATES = ("interpolated", "observed")
AFTER_ALL = np.iinfo(np.int64).max
WEEK = timedelta(days=7) // timedelta(microseconds=1)
ROUNDING = 1e-12  # where crawls are even, 1 - (1/2)² is θ = 0.75 on one machine and just below it on another


@dataclass(frozen=True)
class UpdateSettings:
    """The settings of `recrawl evaluate --method history-aware`; the defaults are the paper's."""

    windows: tuple[float, ...] = tuple(range(1, 13))  # weeks of history
    thetas: tuple[float, ...] = tuple(i / 10 for i in range(11))
    ahead: timedelta = timedelta(days=7)  # e
    every: str = VISITS  # or rounds, as for a panel
    level: str = "page"
    goal: str = "links"  # an update is a new link, or with content another checksum
    roots: Roots = HOSTS  # of the sites
    estimator: str = "maximum-likelihood"
    updates: str = "interpolated"
    pdf: str = WITH  # whether new links to PDF files count with all others, alone, or not
    since: datetime | None = None  # the earliest reference time
    until: datetime | None = None  # the end of the last evaluated interval
    seed: int = 0  # of the order among pages that are equal in a ranking


@dataclass
class UpdateEvaluation:
    """All rows, by part, and what they were measured on."""

    settings: UpdateSettings
    n_pages: int  # or sites
    n_captures: int
    n_updates: int
    first: str  # the time of the first and the last capture
    last: str
    n_outside: int = 0  # pages under no root, which are left out
    rows: dict[str, list[Row]] = field(default_factory=dict)


def evaluate_updates(
    history: History, settings: UpdateSettings, on_step: Callable[[str], None] = lambda what: None
) -> UpdateEvaluation:
    """Scores by window and threshold (Table I, Figs. 8 to 10), rankings (Fig. 11), and the laws of updates (Figs. 4 to 6)."""
    captures = captures_of(
        history, settings.every, settings.level, goal=settings.goal, roots=settings.roots, pdf=settings.pdf
    )
    evaluation = _described(captures, settings)
    times = reference_times(captures, settings)
    evaluation.rows = {"scores": [], "best": [], "rankings": []}
    for weeks in settings.windows:
        on_step(f"{weeks_text(weeks)} of history")
        counts = count(captures, times, weeks, settings)
        if counts is None:
            continue
        scores = list(score_rows(counts, weeks, settings.thetas))
        evaluation.rows["scores"] += scores
        evaluation.rows["best"] += best_rows(scores)
        evaluation.rows["rankings"] += counts.ranking_rows(weeks)
    if not evaluation.rows["scores"]:
        raise NotEnoughData(
            f"no moment between {evaluation.first} and {evaluation.last} has {weeks_text(min(settings.windows))} of captures "
            f"before it and {duration(24 * _days(settings.ahead))} after it; use shorter --windows or --ahead, or another --from "
            "and --until"
        )
    on_step("the laws of updates")
    evaluation.rows |= laws(captures.between(*_period(captures, settings)), settings.estimator)
    return evaluation


def reference_times(captures: Captures, settings: UpdateSettings) -> Ints:
    """The times t: the end of each round, or one every `ahead` where visits are captures; none without a known outcome."""
    first, last = captures.at.min(), captures.at.max()
    if settings.every == VISITS:
        times = np.arange(first, last + 1, settings.ahead // timedelta(microseconds=1))
    else:
        times = np.unique(captures.at)
    since, until = _period(captures, settings)
    return times[(times >= since) & (times + _microseconds(settings.ahead) <= until)]


def count(captures: Captures, times: Ints, weeks: float, settings: UpdateSettings) -> ChoiceCounts | None:
    """What is chosen and what is right at each reference time, for one window; None where no time has a whole window before it.

    The paper chooses among all pages with a capture in the window. Of these, only those are scored whose window holds an
    interval (one capture gives no rate) and whose next capture shows whether they were updated.
    """
    window = round(weeks * WEEK)
    times = times[times - window >= captures.at.min()]
    if not len(times):
        return None
    updates = update_moments(captures, settings.updates)
    random = np.random.default_rng([settings.seed, window % (1 << 32)])
    ahead = _microseconds(settings.ahead)
    counts = ChoiceCounts.of(len(times), len(settings.thetas))
    for i, now in enumerate(times.tolist()):
        rated = rated_pages(captures, now, window, settings).only(has_outcome(captures, now))
        following = next_updates(updates, now)[rated.page]
        updated = following <= now + ahead
        chosen = rated.probability[:, None] >= np.array(settings.thetas) - ROUNDING
        counts.n_known[i], counts.n_updated[i] = len(rated.page), updated.sum()
        counts.n_chosen[i], counts.n_right[i] = chosen.sum(axis=0), (chosen & updated[:, None]).sum(axis=0)
        counts.ranked[i] = weighted_precisions(rated.probability, rated.quiet_since, following, random)
    return counts


@dataclass(frozen=True)
class RatedPages:
    """The pages with at least one interval in the window that ends at a reference time, and what the window shows of them."""

    page: Ints
    probability: Floats  # of an update by t + e; 0 where the window shows none
    quiet_since: Ints  # the last update in the window, or else the first capture in it

    def only(self, wanted: Flags) -> RatedPages:
        """Of these pages, the wanted ones; `wanted` has an entry for every page there is."""
        kept = wanted[self.page]
        return RatedPages(self.page[kept], self.probability[kept], self.quiet_since[kept])


def rated_pages(captures: Captures, now: int, window: int, settings: UpdateSettings) -> RatedPages:
    """f and g of HACS section II-E: from the captures in [t - w, t] to the probability of an update by t + e.

    The window's first capture of a page only begins its first interval: what it is compared with is outside.
    """
    seen = captures.between(now - window, now)
    is_interpolated = settings.updates == "interpolated"
    build = interpolated_intervals if is_interpolated else observed_intervals
    intervals = build(seen.start, seen.at, seen.changed)
    rate = ESTIMATORS[settings.estimator](intervals)
    last = last_updates(seen.start, seen.at, seen.changed, is_interpolated)
    page = np.flatnonzero(np.diff(intervals.start))
    probability = probability_of_change(rate[page], last[page], now, _days(settings.ahead))
    quiet_since = np.where(last[page] == NEVER, seen.at[seen.start[page]], last[page])
    return RatedPages(page, probability, quiet_since)


def has_outcome(captures: Captures, now: int) -> Flags:
    """Whether a page's next capture shows if the page was updated; a page without such a capture is not scored."""
    following = captures.until(now)
    changed = np.append(captures.changed, np.int8(UNDEFINED))
    shown: Flags = (following < captures.start[1:]) & (changed[following] != UNDEFINED)
    return shown


def update_moments(captures: Captures, updates: str) -> Captures:
    """The updates alone, each at its estimated time; a page's first capture is not an update."""
    at = captures.at
    if updates == "interpolated":
        at = update_times(captures.start, captures.at, captures.changed)
    is_update = captures.changed == NEW
    n_before = np.append(0, np.cumsum(is_update))
    return Captures(n_before[captures.start], at[is_update], captures.changed[is_update])


def next_updates(updates: Captures, now: int) -> Ints:
    """The first update of each page after a moment; `AFTER_ALL` where there is none."""
    following = updates.until(now)
    moments = np.append(updates.at, AFTER_ALL)
    return np.where(following < updates.start[1:], moments[following], AFTER_ALL)


def _described(captures: Captures, settings: UpdateSettings) -> UpdateEvaluation:
    first, last = (str(np.datetime64(int(at), "us"))[:19] for at in (captures.at.min(), captures.at.max()))
    n_updates = int((captures.changed == NEW).sum())
    return UpdateEvaluation(
        settings=settings,
        n_pages=len(captures.start) - 1,
        n_captures=len(captures.at),
        n_updates=n_updates,
        first=first,
        last=last,
        n_outside=captures.n_outside,
    )


def _period(captures: Captures, settings: UpdateSettings) -> tuple[int, int]:
    """The beginning and the end of the evaluated time, in microseconds."""
    first, last = int(captures.at.min()), int(captures.at.max())
    if settings.since:
        first = max(first, round(settings.since.timestamp() * 1e6))
    if settings.until:
        last = min(last, round(settings.until.timestamp() * 1e6))
    return first, last


def weeks_text(weeks: float) -> str:
    """A number of weeks in words.

    >>> weeks_text(1.0), weeks_text(2.5)
    ('1 week', '2.5 weeks')
    """
    return f"{weeks:g} week" if weeks == 1 else f"{weeks:g} weeks"


def _microseconds(length: timedelta) -> int:
    return length // timedelta(microseconds=1)


def _days(length: timedelta) -> float:
    return length / timedelta(days=1)
