"""Following new links, and the history: what was known before, and which pages are watched afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import numpy as np

from recrawl.core.arrays import Ints
from recrawl.core.times import moment
from recrawl.crawl.follower import Followed, Follower, FollowLimits, Known
from recrawl.crawl.page_links import links_shown
from recrawl.crawl.planned import Planned
from recrawl.crawl.scope import Scope
from recrawl.crawl.settings import CrawlOptions
from recrawl.history import History
from recrawl.history.watching import Decision, decide
from recrawl.plan.budgets import pages_of
from recrawl.web.urls import page_id
from recrawl.web.visit import Outcome


def follower_of(history: History, options: CrawlOptions, plan: Planned, links: Ints) -> Follower:
    """A follower for a plan; `links`: the ids of all links that the history holds, ascending.

    If an interrupted crawl is continued, what is new is what was not known when that crawl began.
    """
    if plan.began_at is None:
        known, earlier = Known(links, np.unique(history.page_times()[0])), np.empty(0, np.int64)
    else:
        known, earlier = _known_before(history, plan.began_at), _visits_since(history, plan.began_at)
    budget = pages_of(options.follow_budget, len(plan.urls) + len(earlier))
    limits = FollowLimits(budget, options.per_host, options.exclude)
    follower = Follower(known, Scope(options.follow_scope), limits, options.adopt)
    _find_again(follower, history, earlier)
    return follower


def _known_before(history: History, began: int) -> Known:
    timeline = history.as_of(moment(began - 1)).timeline
    sets, is_shown = timeline.sets, np.zeros(len(timeline.sets.digest), np.bool_)
    is_shown[timeline.links[timeline.links >= 0]] = True
    return Known(np.unique(sets.links[np.repeat(is_shown, np.diff(sets.start))]), timeline.pages)


def _visits_since(history: History, began: int) -> Ints:
    timeline = history.timeline
    return np.flatnonzero((timeline.at >= began) & (timeline.outcome == Outcome.OK))


def _find_again(follower: Follower, history: History, visits: Ints) -> None:
    """The links that an interrupted crawl has found and not followed."""
    urls = history.urls_of(history.timeline.page[visits]).to_pylist() if len(visits) else []
    relevance = history.timeline.rows["relevance"].take(visits).to_pylist() if len(visits) else []
    for url, links, score in zip(urls, links_shown(history, visits) if urls else (), relevance, strict=True):
        follower.found(url, links, score)


def leave_out(history: History, urls: Iterable[str], at: datetime) -> None:
    """Before they are fetched: followed pages are not watched unless they prove to be hubs, even if the crawl is killed."""
    why = "a new link on a planned page led here"
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
