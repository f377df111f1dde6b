"""``recrawl info --engine``: the same totals as on one machine, counted bucket by bucket."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.core.arrays import Ints
from recrawl.engine.collection import Collection, bucket_in_task
from recrawl.engine.new_links import count_visits, find_earliest, leave_sightings
from recrawl.engine.packing import packed, unpacked
from recrawl.engine.plan import joined_pace
from recrawl.history import History, Summary
from recrawl.history.history import count_new_on_pages
from recrawl.history.summary import AnywhereSummary, joined, part_summary
from recrawl.history.watching import unwatched
from recrawl.insight.hints.of_pages import hint_counts
from recrawl.plan.readiness import Readiness, last_plan, readiness_of, visits_per_page
from recrawl.world.batches import CrawlPace, distinct_moments


@dataclass(frozen=True, kw_only=True)
class Info:
    """What `recrawl info` shows."""

    summary: Summary
    hints: dict[str, dict[str, int]]
    n_unwatched: int
    ready: Readiness | None


def info_of(collection: Collection) -> Info:
    """Count everything once."""
    plan = last_plan(collection.history)
    open_plan = None if plan is None else {"name": plan.name, "page": plan.page, "made_at": plan.made_at}
    parts = collection.each_bucket(look, plan=open_plan)
    joins = collection.each_part(find_earliest)
    anywhere = AnywhereSummary(
        links=sum(each["n_links"] for each in joins),
        traps=sum(each["n_traps"] for each in joins),
        new_links=sum(each["n_new"] for each in joins),
        visits_with_new_links=sum(collection.each_bucket(count_visits)),
    )
    summary = joined([each["summary"] for each in parts], anywhere)
    moments = distinct_moments(np.concatenate([each["moments"] for each in parts]))
    ready = readiness_of(
        collection.history,
        pace=joined_pace(parts, moments),
        moments=moments,
        per_page=np.sum([each["per_page"] for each in parts], axis=0).tolist(),
        plan=plan,
        n_visited=sum(each["n_visited"] for each in parts),
    )
    return Info(
        summary=summary,
        hints=_summed([each["hints"] for each in parts]),
        n_unwatched=sum(each["n_unwatched"] for each in parts),
        ready=ready if summary.visits else None,
    )


def look(task: bytes) -> bytes:
    """On a worker: count a bucket, and leave its sightings."""
    about = unpacked(task)
    history = bucket_in_task(about)
    timeline = history.slim_timeline
    new = count_new_on_pages(timeline)
    leave_sightings(about, history, timeline, new)
    return packed(
        {
            "summary": part_summary(history, timeline, new.total),
            **_times(timeline.page, timeline.at, about["plan"]),
            "n_unwatched": _n_unwatched(history, timeline.pages),
            "hints": hint_counts(history),
        }
    )


def _times(page: Ints, at: Ints, plan: dict[str, Any] | None) -> dict[str, Any]:
    """What follows from when pages were visited."""
    pace = CrawlPace.of(page, at)
    return {
        "gaps": pace.gaps,
        "n_visits": pace.n_visits,
        "n_pages": pace.n_pages,
        "moments": distinct_moments(at),
        "per_page": visits_per_page(page),
        "n_visited": 0 if plan is None else int(np.isin(plan["page"], page[at > plan["made_at"]]).sum()),
    }


def _n_unwatched(history: History, pages: Ints) -> int:
    left_out = unwatched(history)
    return int(np.isin(left_out, pages).sum()) if len(left_out) else 0


def _summed(parts: list[dict[str, dict[str, int]]]) -> dict[str, dict[str, int]]:
    """Counts by kind, of hosts that no two buckets have in common."""
    kinds = list(dict.fromkeys(kind for part in parts for kind in part))
    total: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    for part in parts:
        for kind, counts in part.items():
            total[kind].update(counts)
    return {kind: dict(counts) for kind, counts in total.items()}
