"""Let a policy look at everything that was ever visited, cycle by cycle, as if it had made those visits itself."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from recrawl.core.times import NEVER, US_PER_HOUR
from recrawl.history import History
from recrawl.insight.hints.of_pages import hints_of
from recrawl.insight.world_related import with_related
from recrawl.models.change_expectation import ChangeExpectation
from recrawl.models.link_expectation import LinkExpectation
from recrawl.plan.situation import Situation
from recrawl.policies.base import Policy
from recrawl.policies.registry import blaming
from recrawl.world.crawler import Crawler
from recrawl.world.notions import Notion
from recrawl.world.pages import Need
from recrawl.world.recording import record

Step = Callable[[str], None]
#: Pages; of more, related ones are not looked at, since finding them takes too long for a plan.
MAX_RELATED = 100_000
N_RELATED = 30  #: related pages of each page, as in Dang et al., for policies that look around
DEFAULT_CYCLE_HOURS = 24.0  #: where there was only one cycle so far


def survey(
    history: History,
    policy: Policy,
    every: str = "crawl",
    on_step: Step = lambda step: None,
    notion: Notion | None = None,
) -> Situation:
    """All that the past shows, seen by the policy cycle by cycle.

    `notion`: what counts as a change of a page; any difference if None.
    """
    on_step("reading the past, cycle by cycle")
    is_few = len(history.slim_timeline.pages) <= MAX_RELATED
    world = record(history, every, everything=True, with_words=Need.WORDS in policy.needs, notion=notion)
    if Need.RELATED in policy.needs and is_few:
        world = with_related(world, history, every, N_RELATED, as_of_now=True)
    # Cycles end later than most of their visits: what a page waited counts from its own.
    timeline = history.slim_timeline
    last_visit = timeline.at[timeline.page_start[1:] - 1][np.searchsorted(timeline.pages, world.page)]
    hints = hints_of(history, world.page, world.host, last_visit)
    del timeline
    history.release()  # as large as all that follows: the world has what is needed of it
    crawler = Crawler(world, policy.needs)
    expectation, changes = LinkExpectation(world.n_pages), ChangeExpectation(world.n_pages)
    last_change = np.full(world.n_pages, NEVER)
    learners = (expectation, changes, policy)
    with blaming(policy), ThreadPoolExecutor(len(learners)) as threads:  # they are independent of each other
        policy.start(crawler.pages)
        for cycle, batch in enumerate(crawler.recorded()):
            visits = batch.visits
            list(threads.map(lambda learner, visits=visits: learner.observe(visits), learners))
            last_change[visits.page[visits.n_new_since > 0]] = world.time[cycle]
    crawler.pages.last_visit[:] = last_visit
    gaps = np.diff(world.time) / US_PER_HOUR
    return Situation(
        page=world.page,
        url=world.url,
        pages=crawler.pages,
        policy=policy,
        expectation=expectation,
        last_change=np.minimum(last_change, last_visit),
        cycle_hours=float(np.median(gaps)) if len(gaps) else DEFAULT_CYCLE_HOURS,
        changes=changes,
        hints=hints,
    )
