"""The visits that a policy has not learnt from yet: read at once where they are few, else segment by segment.

What a visit shows depends on the earlier ones to its page, so every segment is read with these. Reading in segments costs time and
saves memory: the visits of years are never held together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from recrawl.core.arrays import Ints
from recrawl.core.times import NEVER, moment
from recrawl.history import History, Timeline
from recrawl.history.history import ReadLinks
from recrawl.history.keys import distinct
from recrawl.history.past import PastVisits
from recrawl.web.link_kinds import LinkKind
from recrawl.world.notions import Notion
from recrawl.world.pages import Need
from recrawl.world.showings import Showings

SEGMENT = 5_000_000  #: visits, about, that are followed at once; never less than a batch
HELD = 12_000_000  #: visits that are read at once, at most
PART = 8_000_000  #: visits that are looked at at once where there are too many to hold: those of some of the pages
_LEAST, _MOST = -(2**63), 2**63 - 1  # ids of pages
MOST_SEGMENTS = 8  #: each of them reads the earlier visits to its pages again


def all_of(timeline: Timeline) -> Timeline:
    """All links count."""
    return timeline


@dataclass(kw_only=True)
class NewVisits:
    """Pages and times of the visits after a moment, ordered by both, and the names of the files that hold all visits."""

    history: History
    page: Ints
    at: Ints
    files: tuple[str, ...]
    links: LinkKind = "all"
    with_words: bool = False
    read_links: ReadLinks = "all"
    only: Callable[[Timeline], Timeline] = all_of  # takes out links that do not count
    n_rows: int = 0  # of all visits to these pages, where they are too many to hold
    #: All of them with the earlier ones to the same pages; None: too many to hold.
    whole: Timeline | None = None

    @classmethod
    def after(
        cls,
        history: History,
        since: int,
        *,
        links: LinkKind = "all",
        with_words: bool = False,
        read_links: ReadLinks = "all",
        only: Callable[[Timeline], Timeline] = all_of,
    ) -> NewVisits:
        """The visits after a moment (NEVER: all)."""
        begin = None if since == NEVER else moment(since)
        if history.n_rows() > HELD:
            page, at, files = history.page_times_after(begin)
            n_rows = len(at) if begin is None else history.n_visits_of(distinct(page))
            if n_rows > HELD:
                return cls(
                    history=history,
                    page=page,
                    at=at,
                    files=files,
                    links=links,
                    with_words=with_words,
                    read_links=read_links,
                    only=only,
                    n_rows=n_rows,
                )
        if since == NEVER:
            timeline = history.timeline if with_words else history.slim_timeline
        else:
            timeline = history.timeline_after(begin, with_words=with_words, read_links=read_links)
        fresh = timeline.at > since
        return cls(
            history=history,
            page=timeline.page[fresh],
            at=timeline.at[fresh],
            files=timeline.files,
            links=links,
            whole=only(timeline.with_links(links)),
        )

    def segment_ends(self, ends: Ints, until: int) -> list[int]:
        """Where to cut the visits up to a moment, at ends of batches, so that few are in memory at once.

        The last segment ends with the last of these visits.
        """
        at = np.sort(self.at[self.at <= until])
        least = max(SEGMENT, 0 if self.whole is not None else len(at) // MOST_SEGMENTS)
        n_until = np.searchsorted(at, ends, side="right")
        cuts, done = [], 0
        for end, n in zip(ends.tolist(), n_until.tolist(), strict=True):
            if n - done >= least or n == len(at):
                cuts.append(int(end))
                done = n
            if n == len(at):
                break
        return [*cuts[:-1], int(at[-1])]

    def showings(
        self, past: PastVisits, since: int, until: int, needs: frozenset[Need], notion: Notion | None
    ) -> tuple[Showings, PastVisits]:
        """What the visits after one moment and up to another showed, and the visits of the past with them."""
        parts = []
        for timeline in self._timelines(since, until):
            part = Showings.of(self.history, timeline, since=since, until=until, needs=needs, notion=notion)
            past = past.with_more(self.history, timeline, since, until, self.files)
            parts.append(part if self.whole is not None else part.trimmed())
        return parts[0] if len(parts) == 1 else Showings.joined(parts), past

    def _timelines(self, since: int, until: int) -> Iterator[Timeline]:
        """The visits up to a moment of pages that are visited after another; those of some pages after those of others."""
        if self.whole is not None:
            yield self.whole
            return
        begin, history = None if since == NEVER else moment(since), self.history.as_of(moment(until))
        for low, high in self._ranges:
            timeline = history.timeline_after(
                begin,
                pages=(low, high),
                with_words=self.with_words,
                read_links=self.read_links,
                files=frozenset(self.files),  # others may be added meanwhile
            )
            yield self.only(timeline.with_links(self.links))

    @cached_property
    def _ranges(self) -> list[tuple[int, int]]:
        """Ranges of ids with about as many new visits each; few enough that the visits of one of them can be held."""
        n_parts = -(-self.n_rows // PART)
        cuts = np.unique(self.page[np.arange(1, n_parts) * len(self.page) // n_parts]).tolist()
        return list(zip([_LEAST, *cuts], [*(cut - 1 for cut in cuts), _MOST], strict=True))

    def forget_times(self) -> None:
        """From now on only `showings` will be asked for: let go of what the others need, if it is much."""
        if self.whole is None:
            self._ranges  # noqa: B018  # while the pages are known
            self.page = self.at = np.empty(0, np.int64)

    def let_go(self) -> None:
        """Nothing more will be asked of it."""
        self.whole = None
        self.history.release()
        pa.default_memory_pool().release_unused()
