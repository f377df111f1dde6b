"""One page's past: its visits and what was new at each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from recrawl.core.arrays import Floats
from recrawl.core.times import moment
from recrawl.errors import NotEnoughData
from recrawl.history.given import given_of, n_links
from recrawl.history.history import History
from recrawl.history.importance import statements
from recrawl.history.novelty import MEANINGS
from recrawl.web.urls import canonical, page_id
from recrawl.web.visit import Outcome


@dataclass(frozen=True)
class PageVisit:
    """One visit of the page. Counts are None where they are not known or undefined."""

    at: datetime
    status: int
    outcome: str
    n_internal: int | None
    n_external: int | None
    n_new_previous: int | None
    n_new_page: int | None
    n_new_anywhere: int | None
    n_left: int | None  # links of the previous visit that are gone
    text_changed: bool | None
    text_bytes: int | None
    note: str | None
    importance: float | None  # as stated with this visit


@dataclass(frozen=True)
class PageTimeline:
    """A page's visits, oldest first, and rates over the whole time."""

    url: str
    visits: list[PageVisit]
    days_observed: float
    new_links_per_day: float | None
    visits_with_new_links_rate: float | None  # share of compared visits
    new_links: dict[str, list[str]]  # time of the visit → links new since the previous one
    importance: float  # how much the page matters now: as stated last, 1 if never


def page_timeline(history: History, url: str, *, with_links: bool = False) -> PageTimeline:
    """What happened to one page; raises `NotEnoughData` if it was never visited."""
    known = history.visited(url)
    if known is None:
        when = "was not visited by then" if history.until else "was never visited in this history"
        raise NotEnoughData(f"{canonical(url)} {when}; `recrawl export visits` lists the pages that were")
    url, timeline, new = known, history.timeline, history.novelty
    i = int(np.searchsorted(timeline.pages, page_id(url)))
    visits = range(int(timeline.page_start[i]), int(timeline.page_start[i + 1]))
    given = given_of(history.store, timeline.page, timeline.at)
    internal, external = n_links(timeline, given)
    stated, own = statements(history), slice(visits.start, visits.stop)
    weights = None if stated is None else stated.stated_at(timeline.page[own], timeline.at[own])
    counts = {meaning: new.total(meaning) for meaning in MEANINGS}
    page_visits: list[PageVisit] = []
    new_links: dict[str, list[str]] = {}
    for v in visits:
        at = moment(timeline.at[v])
        fresh, left = _difference(history, v)
        copy = int(timeline.latest[v])
        page_visits.append(
            PageVisit(
                at=at,
                status=int(timeline.status[v]),
                outcome=Outcome(timeline.outcome[v]).name.lower(),
                n_internal=_known(internal[v]),
                n_external=_known(external[v]),
                n_new_previous=_known(counts["previous"][v]),
                n_new_page=_known(counts["page"][v]),
                n_new_anywhere=_known(counts["anywhere"][v]),
                n_left=None if given is not None and given.stand_ins[v] else left,
                text_changed=None if timeline.text_changed[v] < 0 else bool(timeline.text_changed[v]),
                text_bytes=timeline.rows["text_bytes"][copy].as_py() if copy >= 0 else None,
                note=timeline.rows["note"][v].as_py(),
                importance=_stated(weights, v - visits.start),
            )
        )
        if with_links and len(fresh):
            new_links[at.isoformat()] = history.urls_of(fresh).to_pylist()
    compared = [visit.n_new_previous for visit in page_visits if visit.n_new_previous is not None]
    days = (page_visits[-1].at - page_visits[0].at).total_seconds() / 86400
    return PageTimeline(
        url=url,
        visits=page_visits,
        days_observed=days,
        new_links_per_day=sum(compared) / days if compared and days > 0 else None,
        visits_with_new_links_rate=float(np.mean([count > 0 for count in compared])) if compared else None,
        new_links=new_links,
        importance=1.0 if stated is None else float(stated.newest(timeline.pages[[i]])[0]),
    )


def _difference(history: History, visit: int) -> tuple[np.ndarray, int | None]:
    """New links, and how many have gone, since the visit it is compared with."""
    timeline = history.timeline
    before = timeline.compared_with[visit]
    if before < 0:
        return np.empty(0, np.int64), None
    sets = timeline.sets
    now, then = (sets.links[sets.start[s] : sets.start[s + 1]] for s in (timeline.links[visit], timeline.links[before]))
    return np.setdiff1d(now, then), len(np.setdiff1d(then, now))


def _known(count: int) -> int | None:
    return None if count < 0 else int(count)


def _stated(weights: Floats | None, i: int) -> float | None:
    return None if weights is None or np.isnan(weights[i]) else float(weights[i])
