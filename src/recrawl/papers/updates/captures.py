"""The captures of each page, or of each site, and whether they show an update.

References: Jayawardana et al. (2020), HACS, sections II-A and II-B; section V for checksums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numba import njit

from recrawl.core.arrays import Ints, Ints8
from recrawl.errors import NotEnoughData
from recrawl.history import History, Timeline, count_new
from recrawl.insight.rates import NEW, SAME, UNDEFINED
from recrawl.papers.updates.pdf_links import with_links_to_pdf
from recrawl.web.pdf import WITH
from recrawl.world.recording import shown_visits
from recrawl.world.roots import Roots, Sites, sites_of
from recrawl.world.rounds import rounds_of
from recrawl.world.showings import changed_versions

#: What is updated → how deep pages of a site may be to stand for it (the paper's datasets D0 and D2); None: each page by itself.
LEVELS = {"page": None, "homepage": 0, "site": 2}
GOALS = ("links", "content")
VISITS = "visits"  #: every visit is a capture, at its own time
HOSTS = Roots("host")


@dataclass(frozen=True)
class Captures:
    """Captures of every page (or site), by page and time; page i has those from ``start[i]`` up to ``start[i + 1]``."""

    start: Ints
    at: Ints  # microseconds, UTC
    changed: Ints8  # rates.NEW: an update; SAME: none; UNDEFINED: nothing to compare with
    n_outside: int = 0  # pages under no root, which are left out

    def between(self, first: int, last: int) -> Captures:
        """The captures from one moment to another, both included; every page is kept, also one without any."""
        begin, end = (_n_until(self.start, self.at, moment) for moment in (first - 1, last))
        start = np.append(0, np.cumsum(end - begin))
        chosen = np.arange(start[-1]) + np.repeat(begin - start[:-1], end - begin)
        return Captures(start, self.at[chosen], self.changed[chosen])

    def until(self, last: int) -> Ints:
        """For each page, where the captures after a moment begin."""
        return _n_until(self.start, self.at, last)


def captures_of(
    history: History,
    every: str = VISITS,
    level: str = "page",
    *,
    goal: str = "links",
    roots: Roots = HOSTS,
    pdf: str = WITH,
) -> Captures:
    """The captures of a history.

    `every` is ``"visits"`` (each successful visit that shows the page is a capture) or rounds as for a panel: then the last such
    visit in a round is its capture, dated at the round's end, so that a window of w rounds holds w intervals however the crawler
    was delayed. An update is a link never before on the page; `pdf` says whether links to PDF files count with all
    others, alone, or not. With the `goal` content it is a checksum that differs from that of the capture before.

    At the level ``"site"`` all pages under a root at most two directories deep are one: a capture of any of them is a capture
    of the site, and an update of any is an update of the site. At the level ``"homepage"`` only the root itself counts. Pages
    under no root are left out of both.
    """
    timeline = with_links_to_pdf(history, pdf)
    seen = np.flatnonzero(shown_visits(timeline, goal))
    at = timeline.at[seen]
    if every != VISITS:
        seen, at = _last_of_round(timeline, every, seen)
    if not len(seen):
        raise NotEnoughData(_nothing_seen(history, goal))
    changed = _updates(history, timeline, seen, every=every, goal=goal)
    ids, page = np.unique(timeline.page[seen], return_inverse=True)
    deepest = LEVELS[level]
    if deepest is None:
        return Captures(np.append(0, np.cumsum(np.bincount(page))), at, changed)
    sites = sites_of(history.page_urls(ids).cast(pa.string()), roots)
    merged = _merged(_sites(sites, deepest, roots)[page], page, at, changed)
    return replace(merged, n_outside=int((~sites.is_inside).sum()))


def _updates(history: History, timeline: Timeline, seen: Ints, *, every: str, goal: str) -> Ints8:
    """Whether each of some visits shows an update since the one before."""
    if goal == "content":
        return changed_versions(timeline.select(seen))
    if every == VISITS:
        novelty = history.novelty if timeline is history.timeline else count_new(timeline)
    else:
        novelty = count_new(timeline.select(seen))
    new = novelty.total("page")[seen] if every == VISITS else novelty.total("page")
    return np.where(new < 0, UNDEFINED, np.where(new > 0, NEW, SAME)).astype(np.int8)


def _sites(sites: Sites, deepest: int, roots: Roots) -> Ints:
    """The site that each page stands for; -1 where it is under no root or too deep."""
    if not sites.is_inside.any():
        raise NotEnoughData(f"no page is under a root by --roots {roots.spec}; --level page needs none")
    shallow = sites.is_inside & (sites.depth <= deepest)
    if not shallow.any():
        raise NotEnoughData(f"no page is at most {deepest} directories deep; --level page takes all pages")
    return np.where(shallow, sites.site, -1)


def _nothing_seen(history: History, goal: str) -> str:
    """Why there is nothing to evaluate, and the way out where there is one."""
    until = " up to that time" if history.until else ""
    if goal == "content":
        return f"no visit shows the content of a page, or a checksum of it{until}"
    has_content = shown_visits(history.timeline, "content").any()
    way_out = "; checksums show how pages change: use --goal content" if has_content else ""
    return f"no visit shows the links of a page{until}{way_out}"


def _last_of_round(timeline: Timeline, every: str, seen: Ints) -> tuple[Ints, Ints]:
    """Of the visits, the last one of each page in each round, and the round's end."""
    rounds = rounds_of(timeline, every)
    of_round = rounds.of_visit[seen]
    seen, of_round = seen[of_round >= 0], of_round[of_round >= 0]
    last = np.append((np.diff(timeline.page[seen]) != 0) | (np.diff(of_round) != 0), True)[: len(seen)]
    return seen[last], rounds.ends[of_round[last]]


def _merged(site: Ints, page: Ints, at: Ints, changed: Ints8) -> Captures:
    """Captures of pages as captures of their sites; those at one moment are one.

    A page that is new to its site, or that has nothing to be compared with, says nothing about the site and is left out, unless
    that holds for all pages of the site that are known at that moment.
    """
    kept = np.flatnonzero(site >= 0)
    order = kept[np.lexsort((at[kept], site[kept]))]
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
