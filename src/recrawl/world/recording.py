"""From a history to the world that it recorded: what each page showed in every cycle in which it was visited."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recrawl.core.arrays import Flags, Floats, Ints, Ints32, LinkLists
from recrawl.core.ids import places_of
from recrawl.errors import NotEnoughData
from recrawl.history import History, Timeline
from recrawl.history.importance import statements
from recrawl.history.link_sets import LinkSets
from recrawl.web.link_kinds import LinkKind
from recrawl.web.visit import Outcome
from recrawl.world.batches import batches_of
from recrawl.world.every import Every
from recrawl.world.kernels import first_cycles, numbered, visits_that_count
from recrawl.world.readings import CARRY, KNOWN
from recrawl.world.recorded import FAILED, GONE, UNREAD, World
from recrawl.world.roots import DOMAINS, Roots, sites_of
from recrawl.world.rounds import Rounds

if TYPE_CHECKING:
    from recrawl.world.notions import Notion

_MIX = (np.int64(-7046029254386353131), np.int64(-4417276706812531889))  # odd numbers, to mix digests


def record(
    history: History,
    every: Every = "auto",
    *,
    with_words: bool = False,
    notion: Notion | None = None,
    candidates: str = KNOWN,
    between: str = CARRY,
    links: LinkKind = "all",
    goal: str = "links",
    roots: Roots = DOMAINS,
) -> World:
    """The world of a history: cycles by recorded crawl, by period or by the times at which they end (see `batches_of`).

    `candidates`: "known", pages from the cycle on in which they were first recorded; "all", every page from the start, as if the
    crawl had known them before; then cycle 0 is the first one that holds most pages. `between`: see `World`. `links`: only links
    of this kind count.

    `goal`: "links", the world of the pages whose links were ever seen; "content", of all pages whose content was, if only by its
    checksum, as in capture indexes. `roots`: what a site is.

    `with_words`: also what the pages said, if that is known. `notion`: what counts as a change, see `World`; a page whose words are
    never known keeps its versions.
    """
    # The slim timeline lacks the columns for words. Reading both could miss visits that are added in between.
    timeline = (history.timeline if with_words or notion else history.slim_timeline).with_links(links)
    if not timeline.n_visits:
        raise NotEnoughData("the history holds no visits" + (" up to that time" if history.until else ""))
    rounds = batches_of(timeline, every)
    is_seen = shown_visits(timeline, goal) & (rounds.of_visit >= 0)
    seen, readable = np.flatnonzero(is_seen), np.flatnonzero(is_seen & (timeline.links >= 0))
    if not len(seen):
        raise NotEnoughData(_nothing_shown(timeline, goal))
    ids = np.unique(timeline.page[seen])
    with ThreadPoolExecutor(1) as other:  # neither needs the interpreter for long
        looked_up = other.submit(history.urls_of, ids)
        number, sets, link = numbered_lists(timeline.page[readable], timeline.links[readable], timeline.sets)
        url = looked_up.result()
    start, cycle = _cycles(timeline, rounds, seen, candidates)
    pages = _Pages.known(timeline, ids, url, cycle if candidates == KNOWN else np.minimum(cycle, 0))
    view = _View.of(timeline, pages.row_of(timeline.page), cycle, is_seen)
    shows = _shown(timeline, readable, number, view)
    at_first = number[cycle[readable] == 0]
    del seen, readable, number, cycle  # each is as large as all visits
    first_shown, first_at = _first_shown(view, shows, timeline.at[view.visit], sets, at_first, len(link))
    place = sites_of(pages.url, roots)
    world = World(
        page=pages.page,
        url=pages.url,
        site=place.site,
        host=place.host,
        depth=place.depth,
        first_cycle=pages.first_cycle,
        time=rounds.ends[start:],
        row=view.row,
        cycle=view.cycle,
        shows=shows,
        version=np.where((shows >= 0) | (shows == UNREAD), versions(timeline, view.visit), -1),
        is_baseline=view.is_baseline,
        sets=sets,
        link=link,
        first_shown=first_shown,
        first_at=first_at,
        between=between,
        importance=_importance(history, timeline, view, rounds.ends[start:]),
    )
    world = world if candidates == KNOWN else world.with_all_known()
    if not with_words and notion is None:
        return world
    return _with_words(world, history, view.visit, with_words=with_words, notion=notion)


@dataclass(frozen=True, kw_only=True)
class _Pages:
    """Pages in the order in which they became known: by cycle, then by URL, so that ties go by name."""

    page: Ints
    url: pa.Array
    first_cycle: Ints32

    @classmethod
    def known(cls, timeline: Timeline, ids: Ints, url: pa.Array, cycle: Ints) -> _Pages:
        """Pages by their first record in any cycle."""
        first = np.full(len(timeline.pages), np.iinfo(np.int32).max, np.int32)
        place = np.repeat(np.arange(len(timeline.pages)), np.diff(timeline.page_start))
        np.minimum.at(first, place[cycle >= 0], cycle[cycle >= 0].astype(np.int32))
        first = first[np.searchsorted(timeline.pages, ids)]
        by_name = pc.sort_indices(url).to_numpy()
        order = by_name[np.argsort(first[by_name], kind="stable")]
        return cls(page=ids[order], url=url.take(pa.array(order)).cast(pa.string()), first_cycle=first[order])

    def row_of(self, page: Ints) -> Ints:
        """The row of each page in the world; -1 where it is not part of it."""
        return places_of(self.page, page)


@dataclass(frozen=True, kw_only=True)
class _View:
    """One visit for each page and cycle in which there was any, ordered by cycle and page."""

    visit: Ints  # that counts
    row: Ints32
    cycle: Ints32
    is_baseline: Flags  # any of them was one

    @classmethod
    def of(cls, timeline: Timeline, row: Ints, cycle: Ints, is_seen: Flags) -> _View:
        """The last visit of a cycle that showed the page, unless it was gone after that; else the last one."""
        used = np.flatnonzero((row >= 0) & (cycle >= 0))
        is_other = np.append(True, (np.diff(row[used]) != 0) | (np.diff(cycle[used]) != 0))  # ordered by page and time
        begin = np.flatnonzero(is_other) if len(used) else np.empty(0, np.int64)
        visit = used[visits_that_count(np.append(begin, len(used)), timeline.outcome[used], is_seen[used])]
        baseline = np.logical_or.reduceat(timeline.baseline[used], begin) if len(used) else np.zeros(0, np.bool_)
        order = np.lexsort((row[visit], cycle[visit]))
        visit = visit[order]
        return cls(
            visit=visit,
            row=row[visit].astype(np.int32),
            cycle=cycle[visit].astype(np.int32),
            is_baseline=baseline[order],
        )


def _shown(timeline: Timeline, readable: Ints, number: Ints, view: _View) -> Ints32:
    """Which list each visit showed, as the readable ones have a number of it; or why it showed none."""
    shown = np.full(timeline.n_visits, UNREAD, np.int32)
    shown[timeline.outcome == Outcome.FAILED] = FAILED
    shown[timeline.outcome == Outcome.GONE] = GONE
    shown[readable] = number
    return shown[view.visit]


def _importance(history: History, timeline: Timeline, view: _View, ends: Ints) -> Floats | None:
    """How much pages mattered by the end of the cycle of each visit; None where all matter alike."""
    stated = statements(history)
    importance = None if stated is None else stated.in_force(timeline.page[view.visit], ends[view.cycle])
    return None if importance is None or (importance == 1.0).all() else importance


def _with_words(world: World, history: History, visit: Ints, *, with_words: bool, notion: Notion | None) -> World:
    from recrawl.world.wordings import said_at  # few policies need words

    said = said_at(history, visit, needed=notion is not None)
    if said is None:
        return world
    is_seen = (world.shows >= 0) | (world.shows == UNREAD)
    if notion is not None:
        version, wordings = said.versions(notion, history, world.version, world.row, is_seen)
        world = replace(world, version=version, wordings=wordings)
    if with_words:
        world = replace(world, text=np.where(is_seen, said.text, -1).astype(np.int32), words=said.counts)
    return world


def _cycles(timeline: Timeline, rounds: Rounds, seen: Ints, candidates: str) -> tuple[int, Ints]:
    """The round that is cycle 0, and the cycle of each visit; those before it belong to it. -1: none."""
    first_full = _first_usual if candidates == KNOWN else _first_most
    start = first_full(timeline.page[seen], rounds.of_visit[seen], len(rounds.ends))
    return start, np.where(rounds.of_visit >= 0, np.maximum(rounds.of_visit - start, 0), -1)


def _first_most(page: Ints, of_visit: Ints, n_rounds: int) -> int:
    """The first round that holds most pages; where none does, the fullest."""
    once = np.append(True, (page[1:] != page[:-1]) | (of_visit[1:] != of_visit[:-1]))  # ordered by page and time
    held, n_pages = np.bincount(of_visit[once], minlength=n_rounds), 1 + int((page[1:] != page[:-1]).sum())
    return int(np.argmax(held > n_pages / 2)) if (held > n_pages / 2).any() else int(np.argmax(held))


def _first_usual(page: Ints, of_visit: Ints, n_rounds: int) -> int:
    """The first round by which half as many pages were seen as in the fullest round."""
    is_other = np.append(True, page[1:] != page[:-1])  # ordered by page and time
    once = is_other | np.append(True, of_visit[1:] != of_visit[:-1])
    held = np.bincount(of_visit[once], minlength=n_rounds)
    so_far = np.cumsum(np.bincount(of_visit[is_other], minlength=n_rounds))
    return int(np.argmax(so_far >= held.max() / 2))


def numbered_lists(page: Ints, shown: Ints, sets: LinkSets) -> tuple[Ints, LinkLists, Ints]:
    """For every visit, of a page and with a set shown, the number of its list; the lists with small ascending numbers for links;
    and the links' ids. Visits are ordered by page and time.

    Lists stay in the order in which they are stored: those of a site that is crawled together lie, and are numbered, together.
    """
    is_used = np.zeros(len(sets.digest), np.bool_)
    is_used[shown] = True
    number = (np.cumsum(is_used) - 1)[shown]
    before = np.full(int(is_used.sum()), -1, np.int64)  # the list that the same page showed at its visit before
    again = np.flatnonzero(page[1:] == page[:-1])
    again = again[number[again] < number[again + 1]]
    before[number[again + 1]] = number[again]
    start, links, link = numbered(sets.start, sets.links, sets.n_internal, np.flatnonzero(is_used), before)
    return number, LinkLists(start, links), link


def shown_visits(timeline: Timeline, goal: str) -> Flags:
    """The visits that show what a goal is about: the links of a page, or its content, if only by a checksum."""
    is_seen: Flags = timeline.outcome <= Outcome.UNCHANGED
    if goal == "links":
        return is_seen & (timeline.links >= 0)
    return is_seen & (versions(timeline, np.arange(timeline.n_visits)) >= 0)


def _nothing_shown(timeline: Timeline, goal: str) -> str:
    """Why there is nothing to replay, and the way out where there is one."""
    if goal != "links":
        return (
            "no visit in this history shows the content of a page, or a checksum of it, so there is nothing to replay"
        )
    nothing = "no visit in this history shows the links of a page, so there is nothing to replay"
    if shown_visits(timeline, "content").any():
        return f"{nothing}; its checksums show how pages change: use --goal content"
    return nothing


def versions(timeline: Timeline, answered: Ints) -> Ints:
    """A number for what each visit showed: its links and its text, or its bytes where neither is known; -1 where nothing is.

    An archive may have kept an unchanged copy under another URL only: then the visit's own checksum counts.
    """
    copy = np.where(timeline.latest[answered] >= 0, timeline.latest[answered], answered)
    content = np.zeros(len(answered), np.int64)
    for name in ("payload", "text"):
        column = timeline.rows[name]
        known = np.asarray(column.is_valid())[copy]
        content = np.where(known, column.fill_null(0).to_numpy()[copy], content)
    links = timeline.links[answered]
    digest = np.where(links >= 0, timeline.sets.digest[np.maximum(links, 0)] if len(timeline.sets.digest) else 0, 0)
    mixed = (content * _MIX[0]) ^ (digest * _MIX[1])
    return np.where((content == 0) & (links < 0), -1, mixed & np.int64(2**62 - 1))


def _first_shown(
    view: _View, shows: Ints32, at: Ints, sets: LinkLists, at_first: Ints, n_links: int
) -> tuple[Ints32, Ints]:
    """The cycle that first shows each link, and when. What a baseline shows is known from the start: it is not newly published.

    `at_first` are the lists of all visits of cycle 0, also of those that a later one of the same cycle replaced.
    """
    never = np.iinfo(np.int64).max
    cycle_of_set, time_of_set = np.full((2, len(sets.sizes)), never)
    seen = shows >= 0
    np.minimum.at(cycle_of_set, shows[seen], view.cycle[seen])
    np.minimum.at(time_of_set, shows[seen], at[seen])
    cycle_of_set[at_first] = 0
    first = first_cycles(sets.start, sets.links, cycle_of_set, n_links)
    first_at: Ints = first_cycles(sets.start, sets.links, time_of_set, n_links)
    for entry in np.flatnonzero(view.is_baseline & seen).tolist():
        links = sets[shows[entry]]
        first[links[first[links] >= view.cycle[entry]]] = 0
    first[first == never] = 0  # shown only by visits that another one of the same cycle replaced
    return first.astype(np.int32), first_at
