"""Resume an interrupted first crawl: pages it has fetched go from the history into its frontier and are not requested again."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

import numpy as np

from recrawl.core.times import microseconds
from recrawl.crawl.frontier import Frontier
from recrawl.crawl.page_links import links_shown
from recrawl.crawl.unfinished import FIRST, read_note, remove_note, write_note
from recrawl.history import History
from recrawl.models.page_words import first_words
from recrawl.web.visit import Outcome


class FirstCrawl:
    """One first crawl and its history, from beginning to end, however often it is interrupted."""

    def __init__(self, history: History, frontier: Frontier) -> None:
        self.history, self.frontier = history, frontier
        self._note: dict[str, Any] = {}

    def begin(self, now: datetime, resume: bool = True, is_alone: bool = True) -> int:
        """Restore the pages that an interrupted crawl from the same seeds has fetched, and return their number.

        If another crawl is using the history (not `is_alone`), nothing is restored and that crawl's note stays.
        """
        if not is_alone:
            return 0
        seeds = sorted(self.frontier.seeds)
        earlier = read_note(self.history, FIRST)
        began = earlier.get("began_at")
        if resume and earlier.get("seeds") == seeds and isinstance(began, int):
            self._note = earlier
            return self._restore(began)
        self._note = {"seeds": seeds, "began_at": microseconds(now)}
        write_note(self.history, FIRST, self._note)
        return 0

    def end(self) -> None:
        """The crawl finished by itself: the next one starts from the seeds again."""
        remove_note(self.history, FIRST, self._note)

    def _restore(self, began: int) -> int:
        """Replay the visits since then in the order of time: a page is found on one that was fetched before it."""
        timeline = self.history.timeline
        is_known = timeline.outcome != Outcome.FAILED  # failed pages are tried again
        since = np.flatnonzero((timeline.at >= began) & is_known)
        since = since[np.argsort(timeline.at[since], kind="stable")]
        page = timeline.page[since]
        words_by_page = first_words(self.history, page) if self.frontier.order.needs_words else {}
        urls = self.history.urls_of(page).to_pylist()
        restored = [
            self.frontier.restore(url, links, words_by_page.get(page_id, Counter()))
            for page_id, url, links in zip(page.tolist(), urls, links_shown(self.history, since), strict=True)
            if url is not None
        ]
        return sum(restored)
