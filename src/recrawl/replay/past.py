"""A history → the world that is replayed, or the reason why it cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.history.schema import VISITS
from recrawl.insight.hints.of_world import with_hints
from recrawl.insight.world_related import with_related
from recrawl.world.notions import Notion
from recrawl.world.recorded import World
from recrawl.world.recording import record

MIN_CYCLES = 2  #: after cycle 0: one to learn from, one to choose for


def past(
    history: History,
    every: str | timedelta | Sequence[datetime] = "auto",
    since: datetime | None = None,
    n_related: int = 0,
    *,
    with_words: bool = False,
    hinted: bool = False,
    notion: Notion | None = None,
    observed: int = 0,
    **reading: Any,
) -> World:
    """The world of a history from a moment on, as if nothing had been recorded before.

    Cycle 0 is where the crawl begins (see `World`). ``history.as_of`` sets the end. `n_related`: number of related
    pages per page, for policies that look around. `with_words`: keep the words of the pages, for policies that read them.
    `hinted`: keep what sitemaps and feeds said, for policies that take signalled changes.
    `notion`: what counts as a change, as in `World`. `observed`: number of cycles seen completely before any policy chooses.
    `reading`: candidates, between, links, goal and roots, as in `record`.
    """
    used = _Since(history, since) if since else history
    if not used.slim_timeline.n_visits:
        raise NotEnoughData(f"the history holds no visits{_span(since, history.until)}, so there is nothing to replay")
    world = record(used, every, with_words=with_words, notion=notion, **reading)
    if n_related:
        world = with_related(world, used, n_related)
    if hinted:
        world = with_hints(world, used, since)
    if world.n_cycles < MIN_CYCLES:
        cycles = "no cycle" if world.n_cycles == 0 else "only one cycle"
        raise NotEnoughData(
            f"{cycles} follows the first crawl{_span(since, history.until)}; a replay needs at least "
            f"{MIN_CYCLES}. Record more crawls, or make cycles shorter with --every"
        )
    if world.n_cycles - observed < 1:
        raise NotEnoughData(
            f"of the {world.n_cycles:,} cycles that follow the first crawl {observed:,} are to be observed, which leaves none to "
            f"choose in; ask for at most {world.n_cycles - 1:,} with --observed"
        )
    return world


def _span(since: datetime | None, until: datetime | None) -> str:
    ends = [f"{word} {time.isoformat()}" for word, time in (("from", since), ("up to", until)) if time]
    return f" {' '.join(ends)}" if ends else ""


class _Since(History):
    """A history without what was recorded before a moment."""

    def __init__(self, history: History, since: datetime) -> None:
        super().__init__(history.store, history.until)
        self.since = since

    def _when(self) -> ds.Expression | None:
        from_then = ds.field("at") >= pa.scalar(self.since.astimezone(UTC), VISITS.field("at").type)
        until = super()._when()
        return from_then if until is None else from_then & until
