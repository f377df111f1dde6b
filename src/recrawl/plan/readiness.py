"""What can be done with a history: how its visits come, which pages can be judged, what was learnt and planned so far."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from recrawl.core.times import iso_text, moment
from recrawl.core.words import count
from recrawl.history import History
from recrawl.history.plans import stored
from recrawl.history.states import States
from recrawl.world.batches import CrawlPace, distinct_moments

JUDGED = 3  #: visits to a page, by which two times between visits show how it changes


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """What is there to work with."""

    batches: int
    batches_by: str  # why they are cut so
    seen_once: int  # pages of which nothing can be said but by others
    seen_twice: int
    judged: int  # pages visited often enough to be judged by their own past
    states: list[dict[str, Any]]  # policy, until, visits: what was learnt and is carried on
    plans: int  # stored
    open_plan: str | None  # the last one, if pages of it were not visited yet
    open_pages: int

    def as_dict(self) -> dict[str, Any]:
        """Its fields by name."""
        return asdict(self)

    def sentences(self) -> list[str]:
        """For people."""
        lines = [
            f"{count(self.batches, 'batch', 'batches')} of visits, {self.batches_by}",
            f"{count(self.judged, 'page')} visited three times or more, {self.seen_twice:,} twice, {self.seen_once:,} once",
        ]
        lines += [
            f"learnt by {each['policy']} from {each['visits']:,} visits, until {each['until']}" for each in self.states
        ]
        if self.open_plan:
            lines.append(f"plan {self.open_plan}: {count(self.open_pages, 'page')} not visited yet")
        return lines


def readiness(history: History) -> Readiness:
    """Look at times, states and plans; nothing that pages showed is read."""
    page, at = history.page_times()
    rule = CrawlPace.of(page, at).rule()
    _, n_visits = np.unique(page, return_counts=True)
    plans = stored(history.beside)
    names = list(dict.fromkeys(plans["plan"].to_pylist()))
    n_open = _n_open(plans, names[-1], page, at) if names else 0
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for each in States(history.beside).checkpoints():
        head = each.head
        about = {"policy": head["policy"], "until": iso_text(moment(each.until))[:16], "visits": head["n_visits"]}
        newest.setdefault((head["policy"], head["every"]), about)
    return Readiness(
        batches=len(rule.batch_ends(distinct_moments(at))),
        batches_by=rule.why,
        seen_once=int((n_visits == 1).sum()),
        seen_twice=int((n_visits == JUDGED - 1).sum()),
        judged=int((n_visits >= JUDGED).sum()),
        states=list(newest.values()),
        plans=len(names),
        open_plan=names[-1] if n_open else None,
        open_pages=n_open,
    )


def _n_open(plans: pa.Table, name: str, page: Any, at: Any) -> int:
    """How many pages of a plan were not visited since it was made."""
    rows = plans.filter(pa.compute.equal(plans["plan"], name))
    made = rows["made_at"].cast(pa.int64())[0].as_py()
    return int((~np.isin(rows["page"].to_numpy(), page[at > made])).sum())
