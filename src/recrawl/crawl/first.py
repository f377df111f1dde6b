"""A first crawl that was cut short goes on: what it has fetched goes from the history into its frontier, and is not asked again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import numpy as np

from recrawl.crawl.frontier import Frontier
from recrawl.crawl.unfinished import FIRST, came_to_its_end, note_down, noted
from recrawl.history import History
from recrawl.policies.base import Ints, microseconds
from recrawl.replay.focus import words_of
from recrawl.urls import trap
from recrawl.visits import Outcome


class FirstCrawl:
    """One first crawl in its history, from its beginning to its end, however often it was cut short."""

    def __init__(self, history: History, frontier: Frontier) -> None:
        self.history, self.frontier = history, frontier
        self._note: dict[str, Any] = {}

    def begin(self, now: datetime, resume: bool = True, is_alone: bool = True) -> int:
        """Take up what an earlier crawl from the same seeds has fetched, if it was cut short: how many pages that were.

        Beside another crawl (not `is_alone`) nothing is taken up, and what that one noted stays.
        """
        if not is_alone:
            return 0
        seeds = sorted(self.frontier.seeds)
        earlier = noted(self.history, FIRST)
        began = earlier.get("began_at")
        if resume and earlier.get("seeds") == seeds and isinstance(began, int):
            self._note = earlier
            return self._take_up(began)
        self._note = {"seeds": seeds, "began_at": microseconds(now)}
        note_down(self.history, FIRST, self._note)
        return 0

    def end(self) -> None:
        """It came to its end by itself: the next one begins anew."""
        came_to_its_end(self.history, FIRST, self._note)

    def _take_up(self, began: int) -> int:
        """Visits since then, in their order: a page was found on one that was fetched before it."""
        timeline = self.history.timeline
        is_known = timeline.outcome != Outcome.FAILED  # what failed is worth another try
        since = np.flatnonzero((timeline.at >= began) & is_known)
        since = since[np.argsort(timeline.at[since], kind="stable")]
        page = timeline.page[since]
        words = words_of(self.history, page) if self.frontier.order.needs_words else {}
        said = {int(page[i]): counts for i, counts in words.items()}
        taken_up = [
            self.frontier.visited(url, links, said.get(of_page, Counter()))
            for of_page, url, links in zip(
                page.tolist(), self.history.urls_of(page).to_pylist(), self._links(since), strict=True
            )
            if url is not None
        ]
        return sum(taken_up)

    def _links(self, visits: Ints) -> Iterator[list[str]]:
        """What each of some visits showed, without what looks like a trap."""
        timeline = self.history.timeline
        sets, number = timeline.sets, np.where(timeline.outcome[visits] == Outcome.OK, timeline.links[visits], -1)
        lists = [sets.links[sets.start[one] : sets.start[one + 1]] if one >= 0 else sets.links[:0] for one in number]
        urls = self.history.urls_of(np.concatenate([*lists, sets.links[:0]])).to_pylist()
        end = 0
        for ids in lists:
            begin, end = end, end + len(ids)
            yield [url for url in urls[begin:end] if url is not None and not trap(url)]
