"""All that the past shows, as a plan needs it: what was learnt, with what is known of the pages beside it."""

from __future__ import annotations

from recrawl.core.times import moment
from recrawl.history.importance import importance_of
from recrawl.insight.hints.of_pages import hints_of, signals_of
from recrawl.insight.world_related import related_at
from recrawl.plan.learning import Learning
from recrawl.plan.situation import Situation
from recrawl.world.pages import Need

#: Pages; of more, related ones are not looked at, since finding them takes too long for a plan.
MAX_RELATED = 100_000
N_RELATED = 30  #: related pages of each page, as in Dang et al., for policies that look around
DEFAULT_CYCLE_HOURS = 24.0  #: where there was only one batch so far


def survey(learning: Learning) -> Situation:
    """Learn, and look at what else is known of the pages; what was learnt may still be being written."""
    history, learnt = learning.history, learning.learn_and_keep_later()
    history.release()  # as large as all that follows, which needs nothing of it
    stream, pages = learnt.stream, learnt.stream.pages
    pages.importance = importance_of(history, stream.page)
    if Need.RELATED in learnt.policy.needs and len(pages) <= MAX_RELATED:
        pages.related = related_at(history, stream.page, N_RELATED, moment(stream.until))
    if Need.SIGNALS in learnt.policy.needs:
        pages.signals = signals_of(history, stream.page, pages.host)
    return Situation(
        page=stream.page,
        url=stream.url,
        pages=pages,
        policy=learnt.policy,
        expectation=learnt.links,
        last_change=stream.last_new,
        cycle_hours=stream.cycle_hours or DEFAULT_CYCLE_HOURS,
        changes=learnt.changes,
        hints=hints_of(history, stream.page, pages.host, pages.last_visit),
    )
