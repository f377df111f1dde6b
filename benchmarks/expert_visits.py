"""Visits of every made-up page on every day, handed to related-experts: what a choice takes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from benchmarks.experts import changing
from recrawl.core.arrays import LinkLists
from recrawl.core.snapshot import taken
from recrawl.core.times import microseconds
from recrawl.policies import Budget, named
from recrawl.world.contents import Contents
from recrawl.world.pages import Pages, Visits

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Observed:
    choose_seconds: float
    kept_gb: float  # what is kept beside the history
    note: str


def observed(n_pages: int, n_days: int, n_train: int) -> Observed:
    """Every page on every day, then a choice."""
    contents, changed = changing(n_pages, n_days)
    policy = named("related-experts", n_train=n_train)
    pages = Pages.unseen(np.arange(n_pages) % 50, np.arange(n_pages))
    policy.start(pages)
    slowest, started = 0.0, time.perf_counter()
    for day in range(n_days):
        began = time.perf_counter()
        visits = visits_of(contents, changed, day)
        pages.note(visits)
        policy.observe(visits)
        slowest = max(slowest, time.perf_counter() - began)
    learning = (time.perf_counter() - started) / n_days
    began, busy = time.perf_counter(), time.process_time()
    policy.choose(pages, Budget(max(1, n_pages // 10)), START + timedelta(days=n_days))
    seconds = time.perf_counter() - began
    busy = time.process_time() - busy
    kept = sum(each.nbytes for each in taken(policy)[1]) / 1e9
    note = f"{busy:,.0f} s of processor time; {learning:.1f} s a day to learn, {slowest:.0f} s on the slowest"
    return Observed(seconds, kept, note)


def visits_of(contents: Contents, changed: np.ndarray, day: int) -> Visits:
    """All pages on one day; nothing is known of their links."""
    n = len(changed)
    at, never = START + timedelta(days=day), np.zeros(n, np.bool_)
    nothing = LinkLists(np.zeros(n + 1, np.int64), np.empty(0, np.int32))
    return Visits(
        at=np.full(n, microseconds(at)),
        ended_at=at,
        page=np.arange(n),
        age_hours=np.full(n, 24.0),
        is_first=~never if day == 0 else never,
        answered=~never,
        gone=never,
        failed=never,
        changed=changed[:, day],
        n_new_since=np.zeros(n, np.int32),
        updated=np.full(n, -1, np.int8),
        shown=nothing,
        new=nothing,
        n_found=0,
        text=contents.text[:, day],
        words=contents.counts,
    )
