"""What a history holds, in numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from recrawl.core.times import iso_text, moment
from recrawl.history.history import History
from recrawl.history.importance import statements
from recrawl.history.novelty import MEANINGS
from recrawl.web.urls import host
from recrawl.web.visit import Outcome


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


def summary(history: History, n_hosts: int = 10) -> Summary:
    """Count everything once."""
    timeline, new = history.timeline, history.novelty
    stated = statements(history)
    by_outcome = np.bincount(timeline.outcome, minlength=4)
    urls = [url for url in history.urls_of(timeline.pages).to_pylist() if url is not None]
    hosts = Counter(host(url) for url in urls)
    days, per_day = np.unique(timeline.at.view("datetime64[us]").astype("datetime64[D]"), return_counts=True)
    totals = {meaning: new.total(meaning) for meaning in MEANINGS}
    links = {meaning: int(count[count > 0].sum()) for meaning, count in totals.items()}
    return Summary(
        pages=len(timeline.pages),
        visits=timeline.n_visits,
        ok=int(by_outcome[Outcome.OK]),
        unchanged=int(by_outcome[Outcome.UNCHANGED]),
        gone=int(by_outcome[Outcome.GONE]),
        failed=int(by_outcome[Outcome.FAILED]),
        hosts=len(hosts),
        links=new.n_links,
        traps=history.n_traps(),
        pages_with_importance=0 if stated is None else int(np.isin(timeline.pages, stated.page).sum()),
        first_at=moment(timeline.at.min()) if timeline.n_visits else None,
        last_at=moment(timeline.at.max()) if timeline.n_visits else None,
        visits_compared=int((totals["previous"] >= 0).sum()),
        new_links=links | {"anywhere": new.n_distinct_anywhere},
        visits_with_new_links={meaning: int((count > 0).sum()) for meaning, count in totals.items()},
        visits_per_day={str(day): int(n) for day, n in zip(days, per_day, strict=True)},
        top_hosts=dict(hosts.most_common(n_hosts)),
    )
