"""History aligned to rounds: arrays [page, round], NaN where nobody looked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recrawl.errors import NotEnoughData
from recrawl.history import History, LinkSets, Timeline, count_new
from recrawl.urls import domain_depth, path_depth
from recrawl.visits import Outcome, parse_at

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
_COLUMNS = ("content_bytes", "text_bytes", "text_quality")
#: The static page features (LBLA section 5.2), except the semantic vector, which `Panel.terms` leads to.
BASE = (*_COLUMNS, "n_internal", "n_external", "path_depth", "domain_depth")
MAX_ROUNDS = 1_000_000
CLEARLY = 0.1  #: of a period, by which its newest visit comes earlier than usual if it has not ended
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@dataclass(frozen=True)
class Panel:
    """What is known of every page in every round. All matrices are [page, round]; NaN (NaT) where nobody looked.

    A page's value in a round is that of its last successful visit in the round. "New" compares it with the last round before
    in which the page was seen; it is NaN in the first one and on a baseline.
    """

    page: Ints  # ids
    url: pa.Array  # canonical URLs, in the order of `page`
    rounds: NDArray[np.datetime64]  # the end of each round, UTC
    at: NDArray[np.datetime64]  # when the page was visited in that round
    n_new_internal: Floats  # links new since the page's previous round
    n_new_external: Floats
    content_changed: Floats  # 1 where the text digest differs from the previous round's, else 0
    base: dict[str, Floats] = field(default_factory=dict)  # every static page feature, by its name in `BASE`
    terms: Ints | None = None  # digest of the words seen, as in the tables texts and vectors; 0 where not known
    links: Ints | None = None  # which of `sets` was seen; -1 where not known
    sets: LinkSets | None = field(default=None, repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Pages and rounds."""
        return (len(self.page), len(self.rounds))

    def window(self, start: int, stop: int, min_share: float = 0.0) -> Panel:
        """The rounds from `start` up to `stop`, as if no others had been crawled: in the first of them nothing is new.

        `min_share` keeps the pages that were seen in at least this share of them, and in one at least.
        """
        seen = ~np.isnat(self.at[:, start:stop])
        pages = np.flatnonzero(seen.sum(axis=1) >= max(1.0, min_share * (stop - start) - 1e-9))

        def cut(matrix: NDArray[Any]) -> NDArray[Any]:
            return np.ascontiguousarray(matrix[pages, start:stop])

        def compared(matrix: Floats, known: NDArray[np.bool_]) -> Floats:
            # What it is compared with must lie within the window, too: not up to the first time that it is known there.
            first_known = np.cumsum(known[pages, start:stop], axis=1) <= 1
            return np.where(first_known, np.nan, cut(matrix)).astype(np.float32)

        looked = ~np.isnat(self.at)
        has_links = looked if self.links is None else looked & (self.links >= 0)

        return Panel(
            page=self.page[pages],
            url=self.url.take(pa.array(pages)),
            rounds=self.rounds[start:stop],
            at=cut(self.at),
            n_new_internal=compared(self.n_new_internal, has_links),
            n_new_external=compared(self.n_new_external, has_links),
            content_changed=compared(self.content_changed, looked),
            base={name: cut(matrix) for name, matrix in self.base.items()},
            terms=None if self.terms is None else cut(self.terms),
            links=None if self.links is None else cut(self.links),
            sets=self.sets,
        )


@dataclass(frozen=True)
class Rounds:
    """Which round each visit belongs to (-1: none), and when each round ends (microseconds, UTC)."""

    of_visit: Ints
    ends: Ints


#: Crawls are told by their pauses where each of these is so many times as long as any within a crawl, …
CLEAR_RATIO = 10
SHORTEST = 60_000_000  #: microseconds: a page that is fetched twice within a crawl does not part it
SHORTEST_PAUSE = 300_000_000  #: … and so many microseconds at least, …
DAY = 86_400_000_000  #: microseconds
MIN_PAUSES = 3  #: … and there are so many of them, …
FINER = 1.5  #: … and this makes so many times as many rounds: a few crawls in two parts are no reason to.


def parse_period(text: str) -> timedelta:
    """A length of time such as ``1h``, ``7d`` or ``2w``.

    >>> parse_period("7d")
    datetime.timedelta(days=7)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", text.strip())
    period = timedelta(seconds=float(match[1]) * _UNITS[match[2]]) if match else timedelta(0)
    if period < timedelta(seconds=1):
        raise ValueError(f"{text!r} is no period; write a number and s, m, h, d or w, e.g. 1h, 7d, 2w")
    return period


def parse_rounds(text: str) -> str | timedelta | list[datetime]:
    """How rounds are told on the command line: ``crawl``, a period, or the times at which they end, with commas between.

    >>> parse_rounds("2025-03-01T00:00Z,2025-03-08T00:00Z")[1].isoformat()
    '2025-03-08T00:00:00+00:00'
    """
    if text == "crawl":
        return text
    if "," in text or "T" in text:
        return [parse_at(time) for time in text.split(",") if time.strip()]
    return parse_period(text)


def by_crawl(timeline: Timeline) -> Rounds:
    """Rounds as they were crawled: visits close in time belong together.

    A new round begins where nothing was fetched for longer than half the usual time between two visits of a page. Crawls that
    fetch only some of the pages follow each other faster than that. They are told by the pauses between them, where all of these
    are much longer than those within a crawl.
    """
    gaps = np.diff(timeline.at)[np.diff(timeline.page) == 0]
    if not len(gaps):
        return Rounds(
            np.zeros(timeline.n_visits, np.int64),
            timeline.at[:0] if not timeline.n_visits else np.array([timeline.at.max()]),
        )
    moments = np.sort(timeline.at)  # several times as fast as numpy's unique
    moments = moments[np.append(True, moments[1:] != moments[:-1])]
    pauses = np.diff(moments)
    rounds = _parted(timeline, moments, pauses > max(np.median(gaps) / 2, SHORTEST))
    longest_within = _clear_break(pauses)
    if longest_within is None:
        return rounds
    finer = _parted(timeline, moments, pauses > longest_within)
    return finer if len(finer.ends) > FINER * len(rounds.ends) else rounds


def _parted(timeline: Timeline, moments: Ints, is_pause: NDArray[np.bool_]) -> Rounds:
    ends = moments[np.append(is_pause, True)]
    return Rounds(np.searchsorted(ends, timeline.at), ends)


def _clear_break(pauses: Ints) -> int | None:
    """The longest pause that lies within a crawl, where pauses are of two clearly different kinds; else None."""
    ordered = np.sort(pauses)
    longer = ordered[1:]
    ratio = longer / np.maximum(ordered[:-1], 1)
    n_longer = np.arange(len(longer), 0, -1)
    clear = np.flatnonzero((ratio >= CLEAR_RATIO) & (longer >= SHORTEST_PAUSE) & (n_longer >= MIN_PAUSES))
    return int(ordered[clear[np.argmax(ratio[clear])]]) if len(clear) else None


def by_period(timeline: Timeline, every: timedelta) -> Rounds:
    """Rounds of equal length, from the first visit's day on (from its hour or minute, for periods under a day or an hour)."""
    if not timeline.n_visits:
        return Rounds(np.empty(0, np.int64), np.empty(0, np.int64))
    step = every // timedelta(microseconds=1)
    unit = next(unit for unit in (DAY, DAY // 24, DAY // 1440, 1) if step >= unit)
    start = timeline.at.min() // unit * unit
    of_visit = (timeline.at - start) // step
    if of_visit.max() >= MAX_ROUNDS:
        raise NotEnoughData(f"a period of {every} makes {of_visit.max() + 1:,} rounds; choose a longer one")
    return Rounds(of_visit, start + step * np.arange(1, of_visit.max() + 2) - 1)


def by_times(timeline: Timeline, times: Sequence[datetime]) -> Rounds:
    """Rounds that end at the given times; what was visited later belongs to none."""
    ends = np.sort([int(time.astimezone(UTC).timestamp() * 1_000_000) for time in times]).astype(np.int64)
    of_visit = np.searchsorted(ends, timeline.at)
    return Rounds(np.where(of_visit < len(ends), of_visit, -1), ends)


def rounds_of(timeline: Timeline, every: str | timedelta | Sequence[datetime] = "crawl") -> Rounds:
    """Rounds by crawl (``"crawl"``), by period (``"7d"`` or a timedelta) or by explicit times."""
    chosen = parse_rounds(every) if isinstance(every, str) else every
    if isinstance(chosen, str):
        return by_crawl(timeline)
    return by_period(timeline, chosen) if isinstance(chosen, timedelta) else by_times(timeline, chosen)


def has_ended(timeline: Timeline, every: str | timedelta | Sequence[datetime]) -> bool:
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


def build(history: History, every: str | timedelta | Sequence[datetime] = "crawl", min_share: float = 1.0) -> Panel:
    """The panel of a history.

    `min_share` keeps the pages that were seen in at least this share of the rounds; 1, the papers' choice, those seen in all.
    """
    timeline = history.timeline
    if not timeline.n_visits:
        raise NotEnoughData("the history holds no visits" + (" up to that time" if history.until else ""))
    rounds = rounds_of(timeline, every)
    chosen = last_in_round(timeline, rounds)
    chosen = chosen[_often_seen(timeline.page[chosen], len(rounds.ends), min_share)]
    if not len(chosen):
        raise NotEnoughData(
            f"no page was seen in {min_share:.0%} of the {len(rounds.ends)} rounds; ask for fewer with --min-share, "
            "or for longer rounds with --every"
        )
    return _fill(history, timeline.select(chosen), rounds, rounds.of_visit[chosen])


def last_in_round(timeline: Timeline, rounds: Rounds, counts: NDArray[np.bool_] | None = None) -> Ints:
    """The last successful visit of every page in every round (of those that count), in order of page and time."""
    usable = (timeline.outcome <= Outcome.UNCHANGED) & (rounds.of_visit >= 0)
    seen = np.flatnonzero(usable if counts is None else usable & counts)
    page, of_round = timeline.page[seen], rounds.of_visit[seen]
    last = np.append((np.diff(page) != 0) | (np.diff(of_round) != 0), True)[: len(seen)]
    chosen: Ints = seen[last]
    return chosen


def _often_seen(page: Ints, n_rounds: int, min_share: float) -> NDArray[np.bool_]:
    _, index, count = np.unique(page, return_inverse=True, return_counts=True)
    return count[index] >= max(1.0, min_share * n_rounds - 1e-9)


def _fill(history: History, seen: Timeline, rounds: Rounds, of_round: Ints) -> Panel:
    pages, row = np.unique(seen.page, return_inverse=True)
    shape = (len(pages), len(rounds.ends))

    def matrix(values: NDArray[np.generic], undefined: NDArray[np.bool_]) -> Floats:
        filled = np.full(shape, np.nan, np.float32)
        filled[row, of_round] = np.where(undefined, np.nan, values.astype(np.float32))
        return filled

    new = count_new(seen)
    url = history.urls_of(pages)
    internal, external = seen.n_links()
    base = {"n_internal": matrix(internal, internal < 0), "n_external": matrix(external, external < 0)}
    for name in _COLUMNS:
        column = seen.rows[name]
        base[name] = matrix(column.fill_null(0).to_numpy(), ~np.asarray(column.is_valid()))
    for name, depth in (("path_depth", path_depth), ("domain_depth", domain_depth)):
        depths = np.array([depth(u) for u in url.to_pylist()], np.float32)
        base[name] = matrix(depths[row], np.zeros(len(row), np.bool_))
    at = np.full(shape, np.datetime64("NaT", "us"))
    at[row, of_round] = seen.at.view("datetime64[us]")
    terms = np.zeros(shape, np.int64)
    terms[row, of_round] = seen.rows["terms"].fill_null(0).to_numpy()
    links = np.full(shape, -1, np.int64)
    links[row, of_round] = seen.links
    return Panel(
        page=pages,
        url=url,
        rounds=rounds.ends.view("datetime64[us]"),
        at=at,
        n_new_internal=matrix(new.previous_internal, new.previous_internal < 0),
        n_new_external=matrix(new.previous_external, new.previous_external < 0),
        content_changed=matrix(seen.text_changed, seen.text_changed < 0),
        base={name: base[name] for name in BASE},
        terms=terms,
        links=links,
        sets=seen.sets,
    )
