"""How a stream of visits is cut into batches: by the pauses between recorded crawls, or by a period where there are none.

A batch only says what a crawler could know when it chose; every visit keeps its own time. The rule follows from two histograms
of the stream (`CrawlPace`), which can be carried on as visits are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np

from recrawl.core.arrays import Flags, Ints
from recrawl.core.times import NEVER, US_PER_DAY
from recrawl.core.words import count, duration
from recrawl.history import Timeline
from recrawl.world.every import Every, parse_rounds
from recrawl.world.rounds import Rounds, by_step, period_start

MINUTE, HOUR = 60_000_000, 3_600_000_000
#: Times between two visits to a page that count as alike.
USUAL = np.array(
    [MINUTE * n for n in (1, 2, 5, 10, 15, 30)]
    + [HOUR * n for n in (1, 2, 3, 6, 12)]
    + [US_PER_DAY * n for n in (1, 2, 3, 7, 14, 30, 60, 90, 180, 365)]
)
#: Periods of batches, for streams without pauses.
PERIODS = np.array([MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, US_PER_DAY])
PER_GAP = 4  #: batches, at least, between two usual visits to a page
PER_OCTAVE = 8  #: classes of the histograms for each doubling of a length
N_CLASSES = PER_OCTAVE * 52  # up to a century
CLEAR = int(np.ceil(PER_OCTAVE * np.log2(10)))  #: empty classes that separate two kinds of pauses: a factor of ten
SHORTEST_PAUSE = 5 * MINUTE  #: between two crawls that are recognised by their pauses
MIN_PAUSES = 3  #: fewer pauses do not separate crawls
#: Such pauses are used only if they make this many times as many batches: a few crawls in two parts are no reason to.
FINER = 1.5
UNKNOWN_PAUSE = 12 * HOUR  #: between two crawls, as long as pages were hardly visited again
REVISITED = 0.1  #: visits again per page, below which they say nothing: some pages are fetched twice within a crawl
ENOUGH = 0.5  #: batches per visit to a page, below which pauses do not show when pages are visited


@dataclass(frozen=True)
class BatchRule:
    """Where one batch ends and the next begins."""

    kind: str  # "pause", "period" or "times"
    length: int = 0  # microseconds: of the shortest pause, or of the period
    ends: tuple[int, ...] = ()  # of kind "times"
    why: str = field(default="", compare=False)

    def rounds(self, at: Ints, moments: Ints) -> Rounds:
        """The batch of each visit, and their ends; `moments` are all distinct times of the stream, ascending.

        Periods without a visit are batches, too: in a replay there is something to choose in each of them.
        """
        if self.kind == "times":
            ends = np.array(self.ends, np.int64)
            of_visit = np.searchsorted(ends, at)
            return Rounds(np.where(of_visit < len(ends), of_visit, -1), ends)
        if self.kind == "period" and len(moments):
            return by_step(at, self.length)
        ends = self.batch_ends(moments)
        return Rounds(np.searchsorted(ends, at), ends)

    def is_over(self, last: int, end: int, now: int) -> bool:
        """Whether the batch with a last visit and an end cannot go on any more at a moment: visits come in the order of time."""
        return last + self.length < now if self.kind == "pause" else end < now

    def is_one_batch(self, one: int, next_one: int, began: int) -> bool:
        """Whether two moments, one after the other, are in the same batch of a stream that began at another."""
        return len(np.unique(np.searchsorted(self.batch_ends(np.array([one, next_one]), began), [one, next_one]))) == 1

    def batch_ends(self, moments: Ints, began: int | None = None) -> Ints:
        """The end of every batch that holds a visit. That of a period is its last microsecond, that of a crawl its last visit.

        began: the first moment of the stream, if that is earlier.
        """
        if not len(moments):
            return moments
        if self.kind == "times":
            return np.array([*self.ends, np.iinfo(np.int64).max], np.int64)
        if self.kind == "pause":
            last: Flags = np.append(np.diff(moments) > self.length, True)
            return moments[last]
        start = period_start(int(moments[0]) if began is None else began, self.length)
        number = (moments - start) // self.length
        number = number[np.append(True, number[1:] != number[:-1])]
        ends: Ints = start + self.length * (number + 1) - 1
        return ends


@dataclass
class CrawlPace:
    """How often pages are visited, and how long the pauses between visits are: histograms of lengths."""

    gaps: Ints = field(default_factory=lambda: np.zeros(N_CLASSES, np.int64))  # between two visits to a page
    pauses: Ints = field(default_factory=lambda: np.zeros(N_CLASSES, np.int64))  # between two moments of any visits
    n_visits: int = 0
    n_pages: int = 0

    @classmethod
    def of(cls, page: Ints, at: Ints) -> CrawlPace:
        """The pace of all visits, ordered by page and time."""
        return cls().going_on(
            np.full(len(at), NEVER), NEVER, page, at, int((np.diff(page) != 0).sum()) + (len(page) > 0)
        )

    def going_on(self, last_visit: Ints, until: int, page: Ints, at: Ints, n_new_pages: int) -> CrawlPace:
        """The pace with more visits, ordered by page and time, after a moment.

        last_visit: when each of these pages was visited before, one entry per visit; NEVER where it was not.
        """
        pace = CrawlPace(self.gaps.copy(), self.pauses.copy(), self.n_visits + len(at), self.n_pages + n_new_pages)
        is_first = np.append(True, page[1:] != page[:-1])[: len(page)]
        before = np.where(is_first, last_visit, np.append(0, at[:-1])[: len(at)])
        moments = distinct_moments(at)
        pauses = np.diff(moments, prepend=moments[:1] if until == NEVER else [until])
        pace.add((at - before)[before != NEVER], pauses[1:] if until == NEVER else pauses)
        return pace

    def add(self, gaps: Ints, pauses: Ints) -> None:
        """Count more of both."""
        for histogram, lengths in ((self.gaps, gaps), (self.pauses, pauses)):
            histogram += np.bincount(class_of(lengths), minlength=N_CLASSES)

    def rule(self) -> BatchRule:
        """Recorded crawls where there are real pauses, else a period that suits how often pages are visited."""
        crawls = self.crawls()
        per_page = self.n_visits / max(self.n_pages, 1)
        if not self.is_revisited or self._n_above(crawls.length) + 1 >= max(2.0, ENOUGH * per_page):
            return crawls
        usual = self.usual_gap()
        period = int(PERIODS[max(int(np.searchsorted(PERIODS, usual / PER_GAP, side="right")) - 1, 0)])
        why = (
            f"in batches of {duration(period / 3.6e9)}: visits come without pauses, and a page is visited about every "
            f"{duration(usual / 3.6e9)}"
        )
        return BatchRule("period", period, why=why)

    def crawls(self) -> BatchRule:
        """Crawls: a new one begins after a pause of half the usual time between two visits to a page.

        Crawls that fetch only some of the pages follow each other faster. They are recognised by the pauses between them, where
        all of these are much longer than those within a crawl.
        """
        shortest = max(self.usual_gap() // 2, MINUTE) if self.is_revisited else UNKNOWN_PAUSE
        finer = self._longest_within()
        if finer is not None and self._n_above(finer) + 1 > FINER * (self._n_above(shortest) + 1):
            shortest = finer
        n = self._n_above(shortest) + 1
        return BatchRule(
            "pause", shortest, why=f"in {count(n, 'recorded crawl')}, separated by the pauses between them"
        )

    @property
    def is_revisited(self) -> bool:
        """Whether enough pages were visited again to say how often that happens."""
        return bool(self.gaps.sum() > REVISITED * self.n_pages)

    def usual_gap(self) -> int:
        """The median time between two visits to a page, as one of `USUAL`."""
        middle = length_of(int(np.searchsorted(np.cumsum(self.gaps), self.gaps.sum() / 2)))
        return int(USUAL[np.argmin(np.abs(np.log(USUAL / max(middle, 1))))])

    def is_same(self, rule: BatchRule, other: BatchRule) -> bool:
        """Whether two rules cut this stream in the same places."""
        if rule.kind != "pause" or other.kind != "pause":
            return rule == other
        low, high = sorted((rule.length, other.length))
        between = slice(int(class_of(np.array([low]))[0]), int(class_of(np.array([high]))[0]) + 1)
        return low == high or not self.pauses[between].any()

    def _n_above(self, length: int) -> int:
        return int(self.pauses[int(class_of(np.array([length]))[0]) + 1 :].sum())

    def _longest_within(self) -> int | None:
        """The longest pause that lies within a crawl, where pauses are of two clearly different kinds; else None."""
        held = np.flatnonzero(self.pauses)
        if len(held) < 2:
            return None
        widths = np.diff(held)
        n_longer = np.cumsum(self.pauses[::-1])[::-1][held[1:]]
        is_long = np.array([length_of(each) for each in held[1:]]) >= SHORTEST_PAUSE
        clear = np.flatnonzero((widths > CLEAR) & is_long & (n_longer >= MIN_PAUSES))
        return length_of(int(held[clear[np.argmax(widths[clear])]]) + 1) if len(clear) else None


def class_of(lengths: Ints) -> Ints:
    """The class of each length in the histograms.

    >>> class_of(np.array([0, 1, 3, 3_600_000_000])).tolist()
    [0, 8, 16, 253]
    """
    number: Ints = np.minimum(PER_OCTAVE * np.log2(np.maximum(lengths, 0) + 1.0), N_CLASSES - 1).astype(np.int64)
    return number


def length_of(number: int) -> int:
    """The length at which a class begins, about: inverse to `class_of`.

    >>> length_of(253) / 3.6e9
    0.91...
    """
    return int(2.0 ** (number / PER_OCTAVE)) - 1


def distinct_moments(at: Ints) -> Ints:
    """Every time once, ascending; several times as fast as numpy's unique."""
    moments = np.sort(at)
    is_other: Flags = np.append(True, moments[1:] != moments[:-1])[: len(moments)]
    distinct: Ints = moments[is_other]
    return distinct


def rule_for(every: Every, pace: CrawlPace) -> BatchRule:
    """The rule for what a user asks for: ``auto``, ``crawl``, a period, or the times at which batches end."""
    chosen = parse_rounds(every) if isinstance(every, str) else every
    if chosen == "auto":
        return pace.rule()
    if isinstance(chosen, str):
        return pace.crawls()
    if isinstance(chosen, timedelta):
        return BatchRule("period", chosen // timedelta(microseconds=1), why=f"in batches of {every}, as asked")
    return BatchRule("times", ends=_times(chosen), why="in batches that end at the times given")


def _times(times: Sequence[datetime]) -> tuple[int, ...]:
    return tuple(sorted(int(time.astimezone(UTC).timestamp() * 1_000_000) for time in times))


def batches_of(timeline: Timeline, every: Every = "auto") -> Rounds:
    """The batch of each visit of a history, and when each batch ends."""
    return rule_for(every, CrawlPace.of(timeline.page, timeline.at)).rounds(timeline.at, distinct_moments(timeline.at))
