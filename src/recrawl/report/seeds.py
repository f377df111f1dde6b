"""The pages that brought most new links so far: where another crawl of the same web should begin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.errors import BadOption, NotEnoughData
from recrawl.history import History, Timeline
from recrawl.history.history import count_new
from recrawl.models.link_relevance import Focus
from recrawl.web.link_kinds import LINKS, LinkKind
from recrawl.web.urls import host, site
from recrawl.web.visit import Outcome

YIELD, OUTLINKS = "yield", "outlinks"


@dataclass(frozen=True, kw_only=True)
class Seed:
    """A page, and what it is worth as a seed."""

    url: str
    worth: float  # new links per visit, or links on it
    new_links: int  # found on it in all
    visits: int  # that could be compared with an earlier one
    outlinks: int  # on it when it was last seen


def seeds(
    history: History,
    *,
    top: int | None = None,
    by: str = YIELD,
    links: str = "internal",
    per_site: int | None = None,
    min_visits: int = 1,
    focus: Focus | None = None,
) -> list[Seed]:
    """The best seeds for another crawl, the best first; a page that is gone is none.

    `by` yield: links that no page had shown before, per visit that could be compared with an earlier one. `by` outlinks: links on
    the page when it was last seen, which also works where every page was fetched once. `per_site`: pages of one registered domain.
    Pages without any such link are left out.

    References: Pham, Santos and Freire (2018), section 5.1: pages with most relevant in-site outlinks, some per site at most.
    """
    if by not in (YIELD, OUTLINKS) or links not in LINKS:
        raise BadOption(
            f"seeds by {by!r} with {links!r} links: by is {YIELD} or {OUTLINKS}, links one of {', '.join(LINKS)}"
        )
    kind: LinkKind = links
    timeline = history.timeline
    if not timeline.n_visits:
        raise NotEnoughData("the history holds no visits")
    if focus is not None:
        timeline = replace(timeline, sets=focus.only_relevant(history, timeline.sets))
    new, n_visits, outlinks, is_gone = _counted(timeline.with_links(kind))
    worth = new / np.maximum(n_visits, 1) if by == YIELD else outlinks.astype(np.float64)
    is_seed = (worth > 0) & ~is_gone & ((n_visits >= min_visits) | (by == OUTLINKS))
    ranked = _by_worth(history, timeline.pages, worth, np.flatnonzero(is_seed))
    found: list[Seed] = []
    for page, url in _within_sites(ranked, per_site):
        if top is not None and len(found) >= top:
            break
        found.append(
            Seed(
                url=url,
                worth=round(float(worth[page]), 4),
                new_links=int(new[page]),
                visits=int(n_visits[page]),
                outlinks=int(outlinks[page]),
            )
        )
    return found


def _counted(timeline: Timeline) -> tuple[Ints, Ints, Ints, Flags]:
    """Of each page: new links in all, visits compared, links when it was last seen, and whether it is gone."""
    number, n_pages = np.repeat(np.arange(len(timeline.pages)), np.diff(timeline.page_start)), len(timeline.pages)
    total = count_new(timeline).total("anywhere")
    is_compared = total >= 0
    new = np.bincount(number[is_compared], total[is_compared], n_pages).astype(np.int64)
    last = timeline.page_start[1:] - 1
    shown = timeline.links[last]
    size = np.diff(timeline.sets.start)
    outlinks = np.where(shown >= 0, size[np.maximum(shown, 0)] if len(size) else 0, 0)
    return new, np.bincount(number[is_compared], minlength=n_pages), outlinks, timeline.outcome[last] == Outcome.GONE


def _by_worth(history: History, pages: Ints, worth: Floats, which: Ints) -> Iterator[tuple[int, str]]:
    """Pages by their number and URL, the best first; equal ones by URL."""
    urls = dict(zip(which.tolist(), history.page_urls(pages[which]).to_pylist(), strict=True))
    for page in sorted(urls, key=lambda page: (-worth[page], urls[page])):
        yield page, urls[page]


def _within_sites(ranked: Iterator[tuple[int, str]], per_site: int | None) -> Iterator[tuple[int, str]]:
    taken: dict[str, int] = {}
    for page, url in ranked:
        name = site(host(url))
        if per_site is None or taken.get(name, 0) < per_site:
            taken[name] = taken.get(name, 0) + 1
            yield page, url
