"""The links of pages, as a crawl may follow them: of one just fetched, and of visits in the history."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from recrawl.core.arrays import Ints
from recrawl.errors import BadUrl
from recrawl.history import History
from recrawl.web.urls import canonical, trap
from recrawl.web.visit import Outcome, Visit


def links_of(visit: Visit) -> Iterator[str]:
    """The absolute links of a page, without those that look like crawler traps."""
    for href in visit.links or ():
        try:
            link = canonical(href, visit.base)
        except BadUrl:
            continue
        if not trap(link):
            yield link


def links_shown(history: History, visits: Ints) -> Iterator[list[str]]:
    """The links that each of some visits of the timeline showed, without those that look like crawler traps."""
    timeline = history.timeline
    sets, number = timeline.sets, np.where(timeline.outcome[visits] == Outcome.OK, timeline.links[visits], -1)
    lists = [sets.links[sets.start[i] : sets.start[i + 1]] if i >= 0 else sets.links[:0] for i in number]
    urls = history.urls_of(np.concatenate([*lists, sets.links[:0]])).to_pylist()
    end = 0
    for ids in lists:
        begin, end = end, end + len(ids)
        yield [url for url in urls[begin:end] if url is not None and not trap(url)]
