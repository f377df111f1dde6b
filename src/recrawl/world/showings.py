"""What visits showed, each against the earlier ones to its page: all that a stream needs to know of them.

What a visit shows depends on the visits to its own page alone. So a large past can be looked at some pages at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from recrawl.core.arrays import Flags, Ints, Ints8, Ints32
from recrawl.core.times import NEVER
from recrawl.history import History, Timeline
from recrawl.history.history import count_new
from recrawl.history.link_sets import LinkSets
from recrawl.history.novelty import new_since_previous
from recrawl.web.visit import Outcome
from recrawl.world.notions import Notion
from recrawl.world.pages import Need
from recrawl.world.recording import versions


@dataclass(frozen=True, kw_only=True)
class Showings:
    """What some visits showed: one entry per visit, ordered by page and time."""

    page: Ints  # ids in the history
    at: Ints
    outcome: Ints8
    baseline: Flags
    links: Ints  # the set of links shown; -1: not known
    n_new_since: Ints32  # links that the visit before did not show; -1: nothing to compare with
    updated: Ints8  # 1: a link never before seen on the page; 0: none; -1: nothing to compare with, or not asked for
    changed: Ints8  # 1 or 0; -1: nothing to compare with
    words: Ints | None  # digests of what pages said; 0: not known. None: not asked for
    sets: LinkSets

    @classmethod
    def of(
        cls,
        history: History,
        timeline: Timeline,
        *,
        since: int = NEVER,
        until: int,
        needs: frozenset[Need] = frozenset(),
        notion: Notion | None = None,
    ) -> Showings:
        """What the visits of a timeline after one moment and up to another showed.

        The timeline must hold all earlier visits to the same pages. For words and notions of change its rows must have the column
        `terms`.
        """
        fresh = np.flatnonzero((timeline.at > since) & (timeline.at <= until))
        is_seen = timeline.outcome[fresh] <= Outcome.UNCHANGED
        is_read = is_seen & (timeline.links[fresh] >= 0)
        sets = (timeline.sets.start, timeline.sets.links, timeline.sets.n_internal)
        n_new_since = new_since_previous(fresh, timeline.links, timeline.compared_with, sets)
        updated = np.full(len(fresh), -1)
        if Need.UPDATES in needs:
            updated = np.clip(count_new(timeline).total("page")[fresh], -1, 1)
        words = None
        if Need.WORDS in needs:
            from recrawl.world.change import words_at

            words = np.where(is_seen, words_at(timeline)[fresh], 0)
        return cls(
            page=timeline.page[fresh],
            at=timeline.at[fresh],
            outcome=timeline.outcome[fresh],
            baseline=timeline.baseline[fresh],
            links=np.where(is_read, timeline.links[fresh], -1),
            n_new_since=np.where(is_read, n_new_since, -1).astype(np.int32),
            updated=np.where(is_read, updated, -1).astype(np.int8),
            changed=_changes(history, timeline, fresh, notion),
            words=words,
            sets=timeline.sets,
        )

    def trimmed(self) -> Showings:
        """The same with no other sets than those shown."""
        is_used = np.zeros(len(self.sets.digest), np.bool_)
        is_used[self.links[self.links >= 0]] = True
        number = np.append(np.cumsum(is_used) - 1, -1)  # the last one is that of links that are not known
        return self._with(number[self.links], self.sets.kept(is_used))

    def _with(self, links: Ints, sets: LinkSets) -> Showings:
        return Showings(**{**vars(self), "links": links, "sets": sets})

    @classmethod
    def joined(cls, parts: list[Showings]) -> Showings:
        """Those of several parts, each of other pages, as one; the list is emptied, since its links take much memory."""
        before = np.cumsum([0] + [len(part.sets.digest) for part in parts])
        links = [np.where(part.links >= 0, part.links + n, -1) for part, n in zip(parts, before, strict=False)]
        columns: dict[str, Any] = {
            name: None if getattr(parts[0], name) is None else np.concatenate([getattr(part, name) for part in parts])
            for name in vars(parts[0])
            if name not in ("links", "sets")
        }
        sets = [part.sets for part in parts]
        parts.clear()
        return cls(links=np.concatenate(links), sets=LinkSets.joined(sets), **columns)


def _changes(history: History, timeline: Timeline, fresh: Ints, notion: Notion | None) -> Ints8:
    """Whether pages changed at some visits: 1 or 0; -1 where there was nothing to compare with."""
    changed = changed_versions(timeline)[fresh]
    if notion is None:
        return changed
    from recrawl.world.change import changes_at_visits, words_at

    # Until its words are known a page keeps its versions.
    n_worded = np.append(0, np.cumsum(words_at(timeline) != 0))
    first = np.repeat(timeline.page_start[:-1], np.diff(timeline.page_start))
    is_worded = n_worded[fresh + 1] > n_worded[first[fresh]]
    return np.where(is_worded, changes_at_visits(history, timeline, fresh, notion), changed).astype(np.int8)


def changed_versions(timeline: Timeline) -> Ints8:
    """Whether each visit shows another version of its page than the last one known before: 1 or 0; -1: nothing to compare with."""
    seen = np.flatnonzero(timeline.outcome <= Outcome.UNCHANGED)
    version = np.full(timeline.n_visits, -1, np.int64)
    version[seen] = versions(timeline, seen)
    changed: Ints8 = _changed(timeline.page_start, timeline.outcome, timeline.baseline, version)
    return changed


_OK, _UNCHANGED = int(Outcome.OK), int(Outcome.UNCHANGED)


@njit(cache=True)
def _changed(page_start, outcome, baseline, version):  # type: ignore[no-untyped-def]
    """Whether each visit shows another version than the last one before it that is known, unless the page is read in a new way."""
    changed = np.full(len(outcome), -1, np.int8)
    for p in range(len(page_start) - 1):
        last, is_reread = np.int64(-1), False
        for v in range(page_start[p], page_start[p + 1]):
            is_reread |= baseline[v]
            if outcome[v] != _OK and outcome[v] != _UNCHANGED:
                continue
            if version[v] >= 0:
                if last >= 0 and not is_reread:
                    changed[v] = version[v] != last
                last = version[v]
            is_reread = False
    return changed
