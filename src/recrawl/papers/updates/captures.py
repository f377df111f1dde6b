"""The captures of each page, or of each site, and whether they show an update.

References: Jayawardana et al. (2020), HACS, section II-B.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from recrawl.core.arrays import Ints, Ints8
from recrawl.errors import NotEnoughData
from recrawl.history import History, Timeline, count_new
from recrawl.insight.rates import NEW, SAME, UNDEFINED
from recrawl.papers.updates.pdf_links import with_links_to_pdf
from recrawl.web.pdf import WITH
from recrawl.web.urls import host, path_depth
from recrawl.web.visit import Outcome
from recrawl.world.rounds import rounds_of

LEVELS = ("page", "site")
VISITS = "visits"  #: every visit is a capture, at its own time
MAX_DEPTH = 2  #: of the pages that represent their site


@dataclass(frozen=True)
class Captures:
    """Captures of every page (or site), by page and time; page i has those from ``start[i]`` up to ``start[i + 1]``."""

    start: Ints
    at: Ints  # microseconds, UTC
    changed: Ints8  # rates.NEW: links never before on the page; SAME: none; UNDEFINED: nothing to compare with

    def between(self, first: int, last: int) -> Captures:
        """The captures from one moment to another, both included; every page is kept, also one without any."""
        begin, end = (_n_until(self.start, self.at, moment) for moment in (first - 1, last))
        start = np.append(0, np.cumsum(end - begin))
        chosen = np.arange(start[-1]) + np.repeat(begin - start[:-1], end - begin)
        return Captures(start, self.at[chosen], self.changed[chosen])

    def until(self, last: int) -> Ints:
        """For each page, where the captures after a moment begin."""
        return _n_until(self.start, self.at, last)


def captures_of(history: History, every: str = VISITS, level: str = "page", pdf: str = WITH) -> Captures:
    """The captures of a history.

    `every` is ``"visits"`` (each successful visit whose links are known is a capture) or rounds as for a panel: then the last such
    visit in a round is its capture, dated at the round's end, so that a window of w rounds holds w intervals however the crawler
    was delayed. An update is a link never before on the page; `pdf` says whether links to PDF files count with all
    others, alone, or not.

    At the level ``"site"`` all pages of a host at most two directories deep are one: a capture of any of them is a capture
    of the site, and an update of any is an update of the site.
    """
    timeline = with_links_to_pdf(history, pdf)
    seen = np.flatnonzero((timeline.outcome <= Outcome.UNCHANGED) & (timeline.links >= 0))
    if every == VISITS:
        novelty = history.novelty if pdf == WITH else count_new(timeline)
        at, new = timeline.at[seen], novelty.total("page")[seen]
    else:
        seen, at = _last_of_round(timeline, every, seen)
        new = count_new(timeline.select(seen)).total("page")
    if not len(seen):
        raise NotEnoughData("no visit shows the links of a page" + (" up to that time" if history.until else ""))
    changed = np.where(new < 0, UNDEFINED, np.where(new > 0, NEW, SAME)).astype(np.int8)
    page = np.unique(timeline.page[seen], return_inverse=True)[1]
    if level == "page":
        return Captures(np.append(0, np.cumsum(np.bincount(page))), at, changed)
    return _merged(_sites(history, np.unique(timeline.page[seen]))[page], page, at, changed)


def _last_of_round(timeline: Timeline, every: str, seen: Ints) -> tuple[Ints, Ints]:
    """Of the visits, the last one of each page in each round, and the round's end."""
    rounds = rounds_of(timeline, every)
    of_round = rounds.of_visit[seen]
    seen, of_round = seen[of_round >= 0], of_round[of_round >= 0]
    last = np.append((np.diff(timeline.page[seen]) != 0) | (np.diff(of_round) != 0), True)[: len(seen)]
    return seen[last], rounds.ends[of_round[last]]


def _sites(history: History, pages: Ints) -> Ints:
    """The site of each page, by number; -1 where the page is too deep."""
    urls = history.urls_of(pages).to_pylist()
    _, site = np.unique([host(url) for url in urls], return_inverse=True)
    return np.where([path_depth(url) <= MAX_DEPTH for url in urls], site, -1)


def _merged(site: Ints, page: Ints, at: Ints, changed: Ints8) -> Captures:
    """Captures of pages as captures of their sites; those at one moment are one.

    A page that is new to its site, or that has nothing to be compared with, says nothing about the site and is left out, unless
    that holds for all pages of the site that are known at that moment.
    """
    kept = np.flatnonzero(site >= 0)
    order = kept[np.lexsort((at[kept], site[kept]))]
    if not len(order):
        raise NotEnoughData(f"no page is at most {MAX_DEPTH} directories deep; --level page takes all pages")
    moment = np.flatnonzero(np.append(True, (np.diff(site[order]) != 0) | (np.diff(at[order]) != 0)))
    is_first = np.append(True, np.diff(page) != 0)  # the first capture of its page
    n_known = np.cumsum(np.add.reduceat(is_first[order], moment, dtype=np.int64))
    of_site, when = site[order[moment]], at[order[moment]]
    starts_site = np.append(True, np.diff(of_site) != 0)
    n_known -= np.repeat(
        np.append(0, n_known[np.flatnonzero(starts_site)[1:] - 1]), np.bincount(np.cumsum(starts_site))[1:]
    )
    state = np.maximum.reduceat(changed[order], moment)
    n_pages = np.diff(np.append(moment, len(order)))
    informative = (state != UNDEFINED) | (n_pages == n_known)
    n_captures = np.bincount(np.cumsum(starts_site)[informative] - 1, minlength=int(starts_site.sum()))
    return Captures(np.append(0, np.cumsum(n_captures)), when[informative], state[informative])


@njit(cache=True)
def _n_until(start: Ints, at: Ints, moment: int) -> Ints:
    """For each page, the index of the first capture after the moment."""
    following = np.empty(len(start) - 1, np.int64)
    for page in range(len(following)):
        low, high = start[page], start[page + 1]
        while low < high:
            middle = (low + high) // 2
            if at[middle] <= moment:
                low = middle + 1
            else:
                high = middle
        following[page] = low
    return following
