"""Which visits belong together: rounds by recorded crawl, by a period, or by the times at which they end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from recrawl.core.arrays import Flags, Ints
from recrawl.core.times import US_PER_DAY
from recrawl.errors import NotEnoughData
from recrawl.history import Timeline
from recrawl.web.visit import Outcome
from recrawl.world.every import Every, parse_rounds

MAX_ROUNDS = 1_000_000
#: Share of a period. The last one has not ended if its newest visit comes earlier than usual by more than this.
CLEARLY = 0.1
#: Pauses separate crawls if each is this many times as long as any pause within a crawl.
CLEAR_RATIO = 10
SHORTEST = 60_000_000  #: microseconds: a page that is fetched twice within a crawl does not split it
SHORTEST_PAUSE = 300_000_000  #: microseconds between two crawls that are recognised by their pauses
MIN_PAUSES = 3  #: fewer pauses do not separate crawls
#: Pauses are used only if they make this many times as many rounds: a few crawls in two parts are no reason to.
FINER = 1.5


@dataclass(frozen=True)
class Rounds:
    """Which round each visit belongs to (-1: none), and when each round ends (microseconds, UTC)."""

    of_visit: Ints
    ends: Ints


def rounds_of(timeline: Timeline, every: Every = "crawl") -> Rounds:
    """Rounds by crawl (``"crawl"``), by period (``"7d"`` or a timedelta) or by explicit times."""
    chosen = parse_rounds(every) if isinstance(every, str) else every
    if isinstance(chosen, str):
        return by_crawl(timeline)
    return by_period(timeline, chosen) if isinstance(chosen, timedelta) else by_times(timeline, chosen)


def by_crawl(timeline: Timeline) -> Rounds:
    """Rounds as they were crawled: visits close in time belong together.

    A new round begins where nothing was fetched for longer than half the usual time between two visits of a page. Crawls that
    fetch only some of the pages follow each other faster than that. They are recognised by the pauses between them, where all of
    these are much longer than those within a crawl.
    """
    gaps = np.diff(timeline.at)[np.diff(timeline.page) == 0]
    if not len(gaps):
        return _one_round(timeline)
    moments = np.sort(timeline.at)  # several times as fast as numpy's unique
    moments = moments[np.append(True, moments[1:] != moments[:-1])]
    pauses = np.diff(moments)
    rounds = _split(timeline, moments, pauses > max(np.median(gaps) / 2, SHORTEST))
    longest_within = _longest_within_crawls(pauses)
    if longest_within is None:
        return rounds
    finer = _split(timeline, moments, pauses > longest_within)
    return finer if len(finer.ends) > FINER * len(rounds.ends) else rounds


def _one_round(timeline: Timeline) -> Rounds:
    ends = np.array([timeline.at.max()]) if timeline.n_visits else timeline.at[:0]
    return Rounds(np.zeros(timeline.n_visits, np.int64), ends)


def _split(timeline: Timeline, moments: Ints, is_pause: Flags) -> Rounds:
    ends = moments[np.append(is_pause, True)]
    return Rounds(np.searchsorted(ends, timeline.at), ends)


def _longest_within_crawls(pauses: Ints) -> int | None:
    """The longest pause that lies within a crawl, where pauses are of two clearly different kinds; else None."""
    ordered = np.sort(pauses)
    longer = ordered[1:]
    ratio = longer / np.maximum(ordered[:-1], 1)
    n_longer = np.arange(len(longer), 0, -1)
    clear = np.flatnonzero((ratio >= CLEAR_RATIO) & (longer >= SHORTEST_PAUSE) & (n_longer >= MIN_PAUSES))
    return int(ordered[clear[np.argmax(ratio[clear])]]) if len(clear) else None


def by_period(timeline: Timeline, every: timedelta) -> Rounds:
    """Rounds of equal length, from the first visit's day on (from its hour or minute, for periods under a day or an hour)."""
    return by_step(timeline.at, every // timedelta(microseconds=1))


def by_step(at: Ints, step: int) -> Rounds:
    """The same for times, with a length in microseconds."""
    if not len(at):
        return Rounds(np.empty(0, np.int64), np.empty(0, np.int64))
    start = period_start(int(at.min()), step)
    of_visit = (at - start) // step
    if of_visit.max() >= MAX_ROUNDS:
        every = timedelta(microseconds=step)
        raise NotEnoughData(f"a period of {every} makes {of_visit.max() + 1:,} rounds; choose a longer one")
    return Rounds(of_visit, start + step * np.arange(1, of_visit.max() + 2) - 1)


def period_start(first: int, step: int) -> int:
    """When the first period begins: with the day of the first visit, or its hour or minute for periods below a day or an hour.

    >>> period_start(3 * US_PER_DAY + 5_000_000, US_PER_DAY) == 3 * US_PER_DAY
    True
    """
    unit = next(unit for unit in (US_PER_DAY, US_PER_DAY // 24, US_PER_DAY // 1440, 1) if step >= unit)
    return first // unit * unit


def by_times(timeline: Timeline, times: Sequence[datetime]) -> Rounds:
    """Rounds that end at the given times; later visits belong to none."""
    ends = np.sort([int(time.astimezone(UTC).timestamp() * 1_000_000) for time in times]).astype(np.int64)
    of_visit = np.searchsorted(ends, timeline.at)
    return Rounds(np.where(of_visit < len(ends), of_visit, -1), ends)


def has_ended(timeline: Timeline, every: Every) -> bool:
    """Whether the last round is complete: False if its newest visit comes clearly earlier in the period than in earlier ones.

    Only a period can be cut short by where the data end. A crawl once a week may well come at the same early hour in each of them.
    """
    chosen = parse_rounds(every) if isinstance(every, str) else every
    if not isinstance(chosen, timedelta) or not timeline.n_visits:
        return True
    rounds, step = by_period(timeline, chosen), chosen // timedelta(microseconds=1)
    newest = np.full(len(rounds.ends), -1.0)
    into_period = (timeline.at - rounds.ends[rounds.of_visit] + step) / step
    np.maximum.at(newest, rounds.of_visit, into_period)
    earlier = newest[:-1][newest[:-1] >= 0]
    return not len(earlier) or bool(newest[-1] >= np.quantile(earlier, 0.1) - CLEARLY)


def last_in_round(timeline: Timeline, rounds: Rounds, counts: Flags | None = None) -> Ints:
    """The last successful visit to every page in every round (of those that count), in order of page and time."""
    usable = (timeline.outcome <= Outcome.UNCHANGED) & (rounds.of_visit >= 0)
    seen = np.flatnonzero(usable if counts is None else usable & counts)
    page, of_round = timeline.page[seen], rounds.of_visit[seen]
    last = np.append((np.diff(page) != 0) | (np.diff(of_round) != 0), True)[: len(seen)]
    chosen: Ints = seen[last]
    return chosen
