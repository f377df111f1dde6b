"""Hints of sitemaps and feeds in a plan: used where they have proven true, and only there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recrawl.hints import Claims, Reads, Worths, judge, learn
from recrawl.history import History
from recrawl.history.hints import HINTS
from recrawl.plan.goals import Goal
from recrawl.policies.base import Budget, Cause, Choice, Floats, Ints, Pages, Policy, Visits, moment
from recrawl.policies.select import take
from recrawl.urls import host as host_of
from recrawl.visits import Outcome
from recrawl.world import named_pages

KINDS = ("sitemap", "feed")
UNLIKELY = 0.1  #: below it a page that a complete source does not name is left out …
TESTED = 10  #: … but for one in so many, by turns, so that the source goes on being tested
LARGEST_SHARE = 0.5  #: of a budget that may go to hinted pages: hints must not starve what they do not name


@dataclass(frozen=True)
class Hints:
    """What sitemaps and feeds say of each page, as far as that is worth something on its host."""

    probability: Floats  # that the page changed since its last visit; NaN where nothing proven tells
    reason: list[str]  # "" where nothing says that it changed

    def __bool__(self) -> bool:
        return bool((~np.isnan(self.probability)).any())


def hints_of(history: History, page: Ints, host: Ints, last_visit: Ints) -> Hints | None:
    """What is hinted of these pages now; None where no sitemap or feed was ever read.

    `host` numbers the hosts of the pages, `last_visit` is in microseconds. Of a history as of some time nothing read later counts.
    """
    probability, reason, any_told = np.full(len(page), np.nan), [""] * len(page), False
    for told in _told(history, page, host):
        any_told = True
        newest = np.full(len(page), np.iinfo(np.int64).min)
        np.maximum.at(newest, told.row, told.changed_at)
        hinted = newest > last_visit
        likely = told.worths.probability(host, hinted)
        better = ~np.isnan(likely) & ~(likely <= probability)
        probability[better] = likely[better]
        for i in np.flatnonzero(better & hinted).tolist():
            reason[i] = told.worths.reason(int(host[i]), moment(int(newest[i])))
    return Hints(probability, reason) if any_told else None


def worths_of(history: History) -> list[Worths]:
    """The record of each kind of source on every host of the history."""
    if not HINTS.read(history.store.folder).num_rows or not history.timeline.n_visits:
        return []
    page, _, host, _ = named_pages(history, history.timeline.pages)
    return [told.worths for told in _told(history, page, host)]


@dataclass(frozen=True)
class _Told:
    """What the sources of one kind said of some pages, and what that is worth."""

    worths: Worths
    row: Ints  # of the pages
    changed_at: Ints


def _told(history: History, page: Ints, host: Ints) -> Iterator[_Told]:
    until = None if history.until is None else pa.scalar(history.until, pa.timestamp("us", "UTC"))
    rows = HINTS.read(history.store.folder, None if until is None else pc.field("read_at") <= until)
    order = np.argsort(page) if rows.num_rows else page
    for kind in KINDS:
        told = rows.filter(pc.equal(rows["kind"], kind))
        if not told.num_rows:
            continue
        claimed = told.filter(pc.and_(pc.is_valid(told["page"]), pc.is_valid(told["changed_at"])))
        ids = claimed["page"].to_numpy()
        at = np.minimum(np.searchsorted(page[order], ids), len(page) - 1)
        known = page[order][at] == ids
        read_at, changed_at = (_us(claimed[name])[known] for name in ("read_at", "changed_at"))
        claims = Claims(ids[known], read_at, changed_at)
        yield _Told(_worths(kind, told, history, page[order], host[order], claims), order[at][known], changed_at)


def _worths(kind: str, rows: pa.Table, history: History, page: Ints, host: Ints, claims: Claims) -> Worths:
    """What the hints of a kind are worth on each host, by all visits so far; pages ascend."""
    timeline = history.timeline
    seen = np.flatnonzero((timeline.outcome <= Outcome.UNCHANGED) & np.isin(timeline.page, page))
    of_visit = host[np.searchsorted(page, timeline.page[seen])]
    changed = np.where(timeline.outcome[seen] == Outcome.UNCHANGED, 0, timeline.changed[seen]).astype(np.int8)
    readings = rows.filter(pc.is_null(rows["page"]))
    hosts = _numbered(history, page, host, readings["host"].combine_chunks())
    reads = Reads(hosts[hosts >= 0], _us(readings["read_at"])[hosts >= 0])
    judged = judge(timeline.page[seen], of_visit, timeline.at[seen], changed, reads, claims)
    return learn(kind, of_visit[judged.visit], judged.hinted, judged.changed, int(host.max(initial=-1)) + 1)


def _numbered(history: History, page: Ints, host: Ints, names: pa.Array) -> Ints:
    """The numbers of hosts by their names; -1 where no page is on them."""
    _, first = np.unique(host, return_index=True)
    known = [host_of(url) for url in history.urls_of(page[first]).to_pylist()]
    found = pc.index_in(names, pa.array(known, pa.string())).fill_null(-1).to_numpy()
    numbers: Ints = np.where(found >= 0, host[first][np.maximum(found, 0)], -1)
    return numbers


def _us(column: Any) -> Ints:
    values: Ints = column.cast(pa.int64()).to_numpy()
    return values


class Hinted(Policy):
    """Another policy, after the hinted pages that promise more than what that policy would visit on average.

    Pages that a source does not name, on a host where it has named nearly all changes, are left out, but for a tenth of them. A
    hinted page promises what its changes brought so far, times the probability that it changed; with the goal content that
    probability. At most half of the budget goes to hints.
    """

    def __init__(self, inner: Policy, hints: Hints, expectation: Any, goal: Goal) -> None:
        self.inner, self.hints, self.expectation, self.goal = inner, hints, expectation, goal
        self.name = inner.name  # type: ignore[misc]

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """Hinted pages first, as far as they are better; then what the inner policy chooses."""
        budget = self._without_unlikely(budget, now)
        own = self.inner.choose(pages, budget, now)
        gain, usual = self._gains(pages, own, now)
        better = ~np.isnan(gain) & (np.nan_to_num(gain) > usual)
        if not better.any():
            return own
        few = replace(budget, pages=int(np.ceil(budget.pages * LARGEST_SHARE)))
        first = take(
            np.nan_to_num(gain),
            pages,
            few,
            may=better,
            reason="{hint}",
            detail={"hint": np.array(self.hints.reason, dtype=object)},
            expected=gain if self.goal != "content" else None,
        )
        rest = self.inner.choose(pages, budget.rest(first, len(pages)), now)
        return first.then(rest)

    def _without_unlikely(self, budget: Budget, now: datetime) -> Budget:
        n = len(self.hints.probability)
        barred = np.zeros(n, np.int8) if budget.barred is None else budget.barred.copy()
        tested = (np.arange(n) + now.toordinal()) % TESTED == 0
        barred[(self.hints.probability < UNLIKELY) & ~tested & (barred == 0)] = Cause.UNPROMISING
        return replace(budget, barred=barred)

    def _gains(self, pages: Pages, own: Choice, now: datetime) -> tuple[Floats, float]:
        """What each hinted page promises, and what a page of the inner policy's choice does on average."""
        if self.goal == "content":
            return self.hints.probability, 0.5
        past = self.expectation
        n_links, n_hits = np.nan_to_num(past.n_links), np.nan_to_num(past.n_hits)
        usual = n_links.sum() / max(n_hits.sum(), 1.0)
        per_change = (n_links + usual) / (n_hits + 1.0)
        expected = past.expect(pages, now)[0]
        mine = own.expected if own.expected is not None else expected[own.page]
        mine = np.where(np.isnan(mine), expected[own.page], mine)
        return self.hints.probability * per_change, float(mine.mean()) if len(mine) else 0.0

    def observe(self, visits: Visits) -> None:
        """The inner policy learns."""
        self.inner.observe(visits)
