"""What a history holds, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from recrawl.core.arrays import Ints, Ints32
from recrawl.core.times import iso_text, moment
from recrawl.history.history import History
from recrawl.history.importance import statements
from recrawl.history.novelty import MEANINGS
from recrawl.history.timeline import Timeline
from recrawl.web.urls import host


@dataclass(frozen=True)
class Summary:
    """Totals of a history."""

    pages: int
    visits: int
    ok: int
    unchanged: int
    gone: int
    failed: int
    hosts: int
    links: int
    traps: int
    pages_with_importance: int  # of which any visit stated how much the page matters
    first_at: datetime | None
    last_at: datetime | None
    visits_compared: int
    new_links: dict[str, int]  # meaning → links; "anywhere" counts each link once
    visits_with_new_links: dict[str, int]
    visits_per_day: dict[str, int]  # date → visits
    top_hosts: dict[str, int]  # host → pages

    def as_dict(self) -> dict[str, Any]:
        """What ``recrawl info --json`` prints."""
        times = {name: at and iso_text(at) for name, at in (("first_at", self.first_at), ("last_at", self.last_at))}
        return {**self.__dict__, **times}


@dataclass(frozen=True, kw_only=True)
class PartSummary:
    """Totals of some pages: those of all pages of a history are joined from those of its parts."""

    pages: int
    visits: int
    by_outcome: list[int]
    hosts: int
    pages_with_importance: int
    first_at: int | None  # microseconds
    last_at: int | None
    visits_compared: int
    new_links: dict[str, int]  # of the meanings that a page answers by itself
    visits_with_new_links: dict[str, int]
    visits_per_day: dict[str, int]
    top_hosts: list[tuple[int, int, str]]  # pages, the first page, name


@dataclass(frozen=True, kw_only=True)
class AnywhereSummary:
    """Totals that only all pages together can answer."""

    links: int
    traps: int
    new_links: int
    visits_with_new_links: int


def summary(history: History, n_hosts: int = 10) -> Summary:
    """Count everything once."""
    new = history.novelty
    anywhere = AnywhereSummary(
        links=new.n_links,
        traps=history.n_traps(),
        new_links=new.n_distinct_anywhere,
        visits_with_new_links=int((new.total("anywhere") > 0).sum()),
    )
    return joined([part_summary(history, history.timeline, new.total, n_hosts)], anywhere, n_hosts)


def part_summary(
    history: History, timeline: Timeline, new_links: Callable[[str], Ints32], n_hosts: int = 10
) -> PartSummary:
    """Count the pages of a timeline; `new_links`: those of each visit, by meaning."""
    stated = statements(history)
    days, per_day = np.unique(timeline.at.view("datetime64[us]").astype("datetime64[D]"), return_counts=True)
    totals = {meaning: new_links(meaning) for meaning in OF_PAGES}
    hosts = _hosts(history, timeline.pages)
    return PartSummary(
        pages=len(timeline.pages),
        visits=timeline.n_visits,
        by_outcome=np.bincount(timeline.outcome, minlength=4).tolist(),
        hosts=len(hosts),
        pages_with_importance=0 if stated is None else int(np.isin(timeline.pages, stated.page).sum()),
        first_at=int(timeline.at.min()) if timeline.n_visits else None,
        last_at=int(timeline.at.max()) if timeline.n_visits else None,
        visits_compared=int((totals["previous"] >= 0).sum()),
        new_links={meaning: int(count[count > 0].sum()) for meaning, count in totals.items()},
        visits_with_new_links={meaning: int((count > 0).sum()) for meaning, count in totals.items()},
        visits_per_day={str(day): int(n) for day, n in zip(days, per_day, strict=True)},
        top_hosts=sorted(hosts, key=_by_pages)[:n_hosts],
    )


def joined(parts: Sequence[PartSummary], anywhere: AnywhereSummary, n_hosts: int = 10) -> Summary:
    """The summary of parts that have no page and no host in common."""
    ok, unchanged, gone, failed = (sum(part.by_outcome[i] for part in parts) for i in range(4))
    new, visits = ({meaning: _total(parts, name, meaning) for meaning in OF_PAGES} for name in _BY_MEANING)
    first = [part.first_at for part in parts if part.first_at is not None]
    last = [part.last_at for part in parts if part.last_at is not None]
    per_day: Counter[str] = Counter()
    for part in parts:
        per_day.update(part.visits_per_day)
    top = sorted((host for part in parts for host in part.top_hosts), key=_by_pages)[:n_hosts]
    return Summary(
        pages=sum(part.pages for part in parts),
        visits=sum(part.visits for part in parts),
        ok=ok,
        unchanged=unchanged,
        gone=gone,
        failed=failed,
        hosts=sum(part.hosts for part in parts),
        links=anywhere.links,
        traps=anywhere.traps,
        pages_with_importance=sum(part.pages_with_importance for part in parts),
        first_at=moment(min(first)) if first else None,
        last_at=moment(max(last)) if last else None,
        visits_compared=sum(part.visits_compared for part in parts),
        new_links=new | {"anywhere": anywhere.new_links},
        visits_with_new_links=visits | {"anywhere": anywhere.visits_with_new_links},
        visits_per_day=dict(sorted(per_day.items())),
        top_hosts={name: n_pages for n_pages, _, name in top},
    )


OF_PAGES = MEANINGS[:2]  #: meanings of "new" that a page answers by itself
_BY_MEANING = ("new_links", "visits_with_new_links")


def _total(parts: Sequence[PartSummary], name: str, meaning: str) -> int:
    return sum(getattr(part, name)[meaning] for part in parts)


def _hosts(history: History, pages: Ints) -> list[tuple[int, int, str]]:
    """Each host of some pages (ascending): how many it has, the first of them, and its name."""
    count: Counter[str] = Counter()
    first: dict[str, int] = {}
    for page, url in zip(pages.tolist(), history.urls_of(pages).to_pylist(), strict=True):
        if url is not None:
            name = host(url)
            count[name] += 1
            first.setdefault(name, page)
    return [(n, first[name], name) for name, n in count.items()]


def _by_pages(host: tuple[int, int, str]) -> tuple[int, int]:
    """Hosts with most pages first, and among equals the one whose first page comes first."""
    return -host[0], host[1]
