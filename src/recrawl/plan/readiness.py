"""What can be done with a history: how its visits come, which pages can be judged, what was learnt and planned so far."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from recrawl.core.arrays import Ints
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


@dataclass(frozen=True, kw_only=True)
class OpenPlan:
    """The last plan that was stored."""

    name: str
    page: Ints  # one entry per row
    made_at: int  # microseconds

    def n_visited(self, page: Ints, at: Ints) -> int:
        """How many of its rows some visits have dealt with."""
        return int(np.isin(self.page, page[at > self.made_at]).sum())


def readiness(history: History) -> Readiness:
    """Look at times, states and plans; nothing that pages showed is read."""
    page, at = history.page_times()
    plan = last_plan(history)
    return readiness_of(
        history,
        pace=CrawlPace.of(page, at),
        moments=distinct_moments(at),
        per_page=visits_per_page(page),
        plan=plan,
        n_visited=0 if plan is None else plan.n_visited(page, at),
    )


def visits_per_page(page: Ints) -> list[int]:
    """Pages that were visited once, twice, and often enough to be judged; one entry per visit."""
    _, n_visits = np.unique(page, return_counts=True)
    return [int((n_visits == 1).sum()), int((n_visits == JUDGED - 1).sum()), int((n_visits >= JUDGED).sum())]


def last_plan(history: History) -> OpenPlan | None:
    """The last plan that was stored; None: there is none."""
    plans = stored(history.beside)
    if not plans.num_rows:
        return None
    name = plans["plan"].to_pylist()[-1]
    rows = plans.filter(pa.compute.equal(plans["plan"], name))
    return OpenPlan(name=name, page=rows["page"].to_numpy(), made_at=rows["made_at"].cast(pa.int64())[0].as_py())


def readiness_of(
    history: History,
    *,
    pace: CrawlPace,
    moments: Ints,
    per_page: list[int],
    plan: OpenPlan | None,
    n_visited: int,
) -> Readiness:
    """What follows from the pace and the moments of all visits, and what is kept beside them."""
    rule = pace.rule()
    n_open = 0 if plan is None else len(plan.page) - n_visited
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for each in States(history.beside).checkpoints():
        head = each.head
        about = {"policy": head["policy"], "until": iso_text(moment(each.until))[:16], "visits": head["n_visits"]}
        newest.setdefault((head["policy"], head["every"]), about)
    return Readiness(
        batches=len(rule.batch_ends(moments)),
        batches_by=rule.why,
        seen_once=per_page[0],
        seen_twice=per_page[1],
        judged=per_page[2],
        states=list(newest.values()),
        plans=len(set(stored(history.beside)["plan"].to_pylist())),
        open_plan=plan.name if plan is not None and n_open else None,
        open_pages=n_open,
    )
