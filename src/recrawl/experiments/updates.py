"""The evaluation of HACS (paper 004) on any history: can a page's next update be told from those before?

At every reference time t the rate of each page is estimated from its captures in the last w weeks, and the pages whose probability
of an update by t + e is at least θ are chosen. What is chosen at t depends on captures up to t only; what came later is the truth
it is scored by. All results are plain rows; tables and plots are made of them elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import NotEnoughData
from recrawl.experiments.captures import VISITS, Captures, captures_of
from recrawl.experiments.updates_laws import laws
from recrawl.experiments.updates_scores import Counts, best_rows, score_rows, weighted_precisions
from recrawl.history import History
from recrawl.rates import (
    ESTIMATORS,
    NEVER,
    NEW,
    UNDEFINED,
    interpolated_intervals,
    last_updates,
    observed_intervals,
    probability_of_change,
    update_times,
)

Row: TypeAlias = dict[str, Any]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
UPDATES = ("interpolated", "observed")
AFTER_ALL = np.iinfo(np.int64).max
WEEK = timedelta(days=7) // timedelta(microseconds=1)
ROUNDING = 1e-12  # where crawls are even, 1 - (1/2)² is θ = 0.75 on one machine and just below it on another


@dataclass(frozen=True)
class UpdateSettings:
    """What `recrawl evaluate --method history-aware` is asked to do; the paper's choices as defaults."""

    windows: tuple[float, ...] = tuple(range(1, 13))  # weeks of history
    thetas: tuple[float, ...] = tuple(i / 10 for i in range(11))
    ahead: timedelta = timedelta(days=7)  # e
    every: str = VISITS  # or rounds, as for a panel
    level: str = "page"
    estimator: str = "maximum-likelihood"
    updates: str = "interpolated"
    since: datetime | None = None  # the earliest reference time
    until: datetime | None = None  # the end of the last evaluated interval
    seed: int = 0  # of the order among pages that a ranking holds equal


@dataclass
class UpdateEvaluation:
    """All rows, by part, and what they were measured on."""

    settings: UpdateSettings
    n_pages: int  # or sites
    n_captures: int
    n_updates: int
    first: str  # the time of the first and the last capture
    last: str
    rows: dict[str, list[Row]] = field(default_factory=dict)


def evaluate_updates(
    history: History, settings: UpdateSettings, on_step: Callable[[str], None] = lambda what: None
) -> UpdateEvaluation:
    """Scores by window and threshold (Table I, Figs. 8 to 10), rankings (Fig. 11), and the laws of updates (Figs. 4 to 6)."""
    captures = captures_of(history, settings.every, settings.level)
    found = _described(captures, settings)
    times = reference_times(captures, settings)
    found.rows = {"scores": [], "best": [], "rankings": []}
    for weeks in settings.windows:
        on_step(f"{weeks:g} weeks of history")
        counts = count(captures, times, weeks, settings)
        if counts is None:
            continue
        scores = list(score_rows(counts, weeks, settings.thetas))
        found.rows["scores"] += scores
        found.rows["best"] += best_rows(scores)
        found.rows["rankings"] += counts.ranking_rows(weeks)
    if not found.rows["scores"]:
        raise NotEnoughData(
            f"no moment between {found.first} and {found.last} has {min(settings.windows):g} weeks of captures before it and "
            f"{_days(settings.ahead):g} days after it; ask for shorter --windows or --ahead, or for another --from and --until"
        )
    on_step("the laws of updates")
    found.rows |= laws(captures.between(*_period(captures, settings)), settings.estimator)
    return found


def reference_times(captures: Captures, settings: UpdateSettings) -> Ints:
    """The times t: the end of each round, or one every `ahead` where visits are captures; none without a known outcome."""
    first, last = captures.at.min(), captures.at.max()
    if settings.every == VISITS:
        times = np.arange(first, last + 1, settings.ahead // timedelta(microseconds=1))
    else:
        times = np.unique(captures.at)
    since, until = _period(captures, settings)
    return times[(times >= since) & (times + _microseconds(settings.ahead) <= until)]


def count(captures: Captures, times: Ints, weeks: float, settings: UpdateSettings) -> Counts | None:
    """What is chosen and what is right at each reference time, for one window; None where no time has a whole window before it.

    The paper chooses among all pages with a capture in the window. Of these, only the ones are scored whose window holds an
    interval (from one capture no rate can be told) and whose next capture tells whether they were updated.
    """
    window = round(weeks * WEEK)
    times = times[times - window >= captures.at.min()]
    if not len(times):
        return None
    updates = update_moments(captures, settings.updates)
    random = np.random.default_rng([settings.seed, window % (1 << 32)])
    ahead = _microseconds(settings.ahead)
    counts = Counts.of(len(times), len(settings.thetas))
    for i, now in enumerate(times.tolist()):
        known = known_at(captures, now, window, settings).only(is_told(captures, now))
        following = next_updates(updates, now)[known.page]
        updated = following <= now + ahead
        chosen = known.probability[:, None] >= np.array(settings.thetas) - ROUNDING
        counts.n_known[i], counts.n_updated[i] = len(known.page), updated.sum()
        counts.n_chosen[i], counts.n_right[i] = chosen.sum(axis=0), (chosen & updated[:, None]).sum(axis=0)
        counts.ranked[i] = weighted_precisions(known.probability, known.quiet_since, following, random)
    return counts


@dataclass(frozen=True)
class Known:
    """The pages of which the window that ends at a reference time holds an interval at least, and what it tells about them."""

    page: Ints
    probability: Floats  # of an update by t + e; 0 where the window shows none
    quiet_since: Ints  # the last update in the window, or else the first capture in it

    def only(self, wanted: NDArray[np.bool_]) -> Known:
        """Of these pages, the wanted ones; `wanted` has an entry for every page there is."""
        kept = wanted[self.page]
        return Known(self.page[kept], self.probability[kept], self.quiet_since[kept])


def known_at(captures: Captures, now: int, window: int, settings: UpdateSettings) -> Known:
    """f and g of HACS section II-E: from the captures in [t - w, t] to the probability of an update by t + e.

    The window's first capture of a page only begins its first interval: what it is compared with lies outside.
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
    return Known(page, probability, quiet_since)


def is_told(captures: Captures, now: int) -> NDArray[np.bool_]:
    """Whether a page's next capture tells if it was updated; if there is none, nobody knows, and it is not scored."""
    following = captures.until(now)
    changed = np.append(captures.changed, np.int8(UNDEFINED))
    told: NDArray[np.bool_] = (following < captures.start[1:]) & (changed[following] != UNDEFINED)
    return told


def update_moments(captures: Captures, updates: str) -> Captures:
    """The updates alone, at the times that they are given; a page's first capture is none."""
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
    return UpdateEvaluation(settings, len(captures.start) - 1, len(captures.at), n_updates, first, last)


def _period(captures: Captures, settings: UpdateSettings) -> tuple[int, int]:
    """From where to where is evaluated, in microseconds."""
    first, last = int(captures.at.min()), int(captures.at.max())
    if settings.since:
        first = max(first, round(settings.since.timestamp() * 1e6))
    if settings.until:
        last = min(last, round(settings.until.timestamp() * 1e6))
    return first, last


def _microseconds(length: timedelta) -> int:
    return length // timedelta(microseconds=1)


def _days(length: timedelta) -> float:
    return length / timedelta(days=1)
