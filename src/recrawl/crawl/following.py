"""Following new links, and the history: what was known before, and which pages are watched afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

import numpy as np
import pyarrow.compute as pc

from recrawl.core.arrays import Ints
from recrawl.core.times import moment
from recrawl.crawl.follower import Followed, Follower, FollowLimits, Known
from recrawl.crawl.page_links import links_shown
from recrawl.crawl.planned import Planned
from recrawl.crawl.scope import Scope
from recrawl.crawl.settings import CrawlOptions
from recrawl.history import History
from recrawl.history.watching import Decision, decide, decisions
from recrawl.plan.budgets import pages_of
from recrawl.web.urls import page_id

WHY = "a new link on a planned page led here"  #: of the decision that is kept before such a link is requested


def follower_of(history: History, options: CrawlOptions, plan: Planned, links: Ints) -> Follower:
    """A follower for a plan; `links`: the ids of all links that the history holds, ascending.

    If an interrupted crawl is continued, what is new is what was not known when that crawl began.
    """
    scope = Scope(options.follow_scope)
    budget = pages_of(options.follow_budget, len(plan.urls if plan.pages is None else plan.pages))
    limits = FollowLimits(budget, options.per_host, options.exclude)
    if plan.began_at is None or plan.pages is None:
        return Follower(Known(links, np.unique(history.page_times()[0])), scope, limits, options.adopt)
    follower = Follower(_known_before(history, plan.began_at), scope, limits, options.adopt)
    _continue(follower, history, plan.began_at, set(plan.pages.tolist()))
    return follower


def _known_before(history: History, began: int) -> Known:
    timeline = history.as_of(moment(began - 1)).timeline
    sets, is_shown = timeline.sets, np.zeros(len(timeline.sets.digest), np.bool_)
    is_shown[timeline.links[timeline.links >= 0]] = True
    return Known(np.unique(sets.links[np.repeat(is_shown, np.diff(sets.start))]), timeline.pages)


def _continue(follower: Follower, history: History, began: int, planned: set[int]) -> None:
    """Tell a follower what an interrupted crawl had found, taken and fetched.

    What it had taken is known from the decisions that it kept before it requested any of them.
    """
    timeline = history.timeline
    visits = np.flatnonzero(timeline.at >= began)
    led_to = _redirects(history, visits)
    taken = _taken_since(history, began)
    followed = _reached(set(taken.tolist()), led_to)
    shown = visits[timeline.status[visits] == 200]
    of_plan = _reached(planned, led_to) - followed
    for page, url, links, score in _pages(history, shown):
        if page in of_plan:
            follower.found(url, links, score)
        elif page in followed:
            follower.fetched(url, links, score)
    was_visited = np.isin(taken, timeline.page[visits])
    done, left = (_urls(history, taken[which]) for which in (was_visited, ~was_visited))
    follower.resume(done, left)
    onward = np.array(sorted(followed.difference(taken.tolist())), np.int64)
    follower.redirected.update(_urls(history, onward))


def _taken_since(history: History, began: int) -> Ints:
    """The pages behind new links that a crawl took, in the order in which it took them."""
    rows = decisions(history, moment(began))
    page = rows.filter(pc.equal(rows["why"], WHY))["page"].to_numpy()
    _, first = np.unique(page, return_index=True)
    return np.asarray(page[np.sort(first)], np.int64)


def _redirects(history: History, visits: Ints) -> dict[int, set[int]]:
    """Where each page led that answered with a redirect at one of these visits."""
    timeline, led_to = history.timeline, dict[int, set[int]]()
    sets, status = timeline.sets, timeline.status[visits]
    for visit in visits[(status >= 300) & (status < 400) & (timeline.links[visits] >= 0)].tolist():
        number = timeline.links[visit]
        target = sets.links[sets.start[number] : sets.start[number + 1]].tolist()
        led_to.setdefault(int(timeline.page[visit]), set()).update(target)
    return {page: targets for page, targets in led_to.items() if targets}


def _reached(pages: set[int], led_to: dict[int, set[int]]) -> set[int]:
    """Pages, and all that redirects lead to from them."""
    reached, new = set(pages), set(pages)
    while new:
        new = {target for page in new for target in led_to.get(page, ())} - reached
        reached |= new
    return reached


def _pages(history: History, visits: Ints) -> Iterator[tuple[int, str, list[str], float | None]]:
    """The page, its URL, its links and its relevance at each of some visits."""
    if len(visits):
        page = history.timeline.page[visits]
        relevance = history.timeline.rows["relevance"].take(visits).to_pylist()
        urls = history.urls_of(page).to_pylist()
        yield from zip(page.tolist(), urls, links_shown(history, visits), relevance, strict=True)


def _urls(history: History, page: Ints) -> list[str]:
    """The URLs of pages, without those that no visit that is safe has shown."""
    return [url for url in (history.urls_of(page).to_pylist() if len(page) else ()) if url is not None]


def leave_out(history: History, urls: Iterable[str], at: datetime, why: str = WHY) -> None:
    """Before they are fetched: followed pages are not watched unless they prove to be hubs, even if the crawl is killed.

    The same decisions say to the next crawl what was to be followed.
    """
    decide(history, [Decision(page=page_id(url), at=at, is_watched=False, why=why) for url in urls])


def keep_judgements(history: History, judged: Iterable[Followed], at: datetime) -> None:
    """After they are fetched: hubs are watched from now on."""
    decisions = [
        Decision(
            page=page_id(page.url),
            at=at,
            is_watched=page.is_hub,
            new_links=page.new_links,
            relevance=page.relevance,
            why=f"brought {page.new_links:,} new links when it was first fetched",
        )
        for page in judged
    ]
    decide(history, decisions)
