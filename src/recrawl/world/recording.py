"""From a history to the world that it recorded: visits laid out by cycles and pages."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recrawl.core.arrays import Flags, Ints, Ints32, LinkLists
from recrawl.errors import NotEnoughData
from recrawl.history import History, Timeline
from recrawl.web.visit import Outcome
from recrawl.world.every import Every
from recrawl.world.kernels import first_cycles, numbered
from recrawl.world.page_names import named_pages
from recrawl.world.recorded import FAILED, GONE, NOTHING, UNREAD, World
from recrawl.world.rounds import Rounds, rounds_of

if TYPE_CHECKING:
    from recrawl.world.notions import Notion

MAX_CELLS = 500_000_000  #: pages times cycles; each takes 13 bytes
_MIX = (np.int64(-7046029254386353131), np.int64(-4417276706812531889))  # odd numbers, to mix digests


def record(
    history: History,
    every: Every = "crawl",
    *,
    everything: bool = False,
    with_words: bool = False,
    notion: Notion | None = None,
) -> World:
    """The world of a history: cycles by recorded crawl, by period or by the times at which they end.

    Of several visits to a page in a cycle the last one that showed it counts. `everything`: also pages that never showed their
    links, and all cycles from the first visit on, as a plan needs them. `with_words`: also what the pages said, if that is
    known. `notion`: what counts as a change, see `World`; a page whose words are never known keeps its versions.
    """
    # The slim timeline lacks the columns for words. Reading both could miss visits that are added in between.
    timeline = history.timeline if with_words or notion else history.slim_timeline
    rounds = rounds_of(timeline, every)
    is_readable = (rounds.of_visit >= 0) & (timeline.links >= 0) & (timeline.outcome <= Outcome.UNCHANGED)
    _check(history, timeline, rounds, is_readable, everything)
    readable = np.flatnonzero(is_readable)
    ids = timeline.pages if everything else np.unique(timeline.page[readable])
    with ThreadPoolExecutor(1) as other:  # neither needs the interpreter for long
        looked_up = other.submit(named_pages, history, ids)
        number, sets, link = _numbered(timeline, readable)
        page, url, host, site = looked_up.result()
    first = 0 if everything else _first_full(timeline.page[readable], rounds.of_visit[readable], len(rounds.ends))
    cells = _Cells(
        n_cycles=len(rounds.ends) - first,
        n_pages=len(page),
        cycle=np.maximum(rounds.of_visit - first, 0),
        row=np.where(rounds.of_visit >= 0, _row_of(timeline.page, page), -1),
    )
    shows = _shown_lists(timeline, cells, readable, number)
    is_baseline = cells.filled(np.flatnonzero(timeline.baseline), True, np.zeros(cells.shape, np.bool_))
    world = World(
        page=page,
        url=url,
        site=site,
        host=host,
        time=rounds.ends[first:],
        shows=shows,
        version=_page_versions(timeline, cells),
        is_baseline=is_baseline,
        sets=sets,
        link=link,
        first_shown=_first_shown(shows, is_baseline, sets, number[cells.cycle[readable] == 0], len(link)),
    )
    if not with_words and notion is None:
        return world
    return _with_contents(world, history, every, first, with_words=with_words, notion=notion)


def _check(history: History, timeline: Timeline, rounds: Rounds, is_readable: Flags, everything: bool) -> None:
    """Refuse a history that is too large to lay out in memory, or that has nothing to lay out."""
    if len(rounds.ends) * len(timeline.pages) > MAX_CELLS:
        raise NotEnoughData(
            f"{len(rounds.ends):,} cycles of {len(timeline.pages):,} pages are too many to keep in memory; choose longer "
            "cycles with --every"
        )
    if not is_readable.any() and not everything:
        raise NotEnoughData("no visit in this history shows the links of a page, so there is nothing to replay")
    if not timeline.n_visits:
        raise NotEnoughData("the history holds no visits" + (" up to that time" if history.until else ""))


@dataclass(frozen=True)
class _Cells:
    """Where visits go in matrices [cycle, page]."""

    n_cycles: int
    n_pages: int
    cycle: Ints  # of each visit
    row: Ints  # of each visit: its page in the world; -1: not in the world, or in no cycle

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_cycles, self.n_pages

    def filled(self, visit: Ints, value: Any, matrix: NDArray[Any]) -> NDArray[Any]:
        """The matrix with a value for some visits; visits are ordered by page and time, so the last one of a cycle counts."""
        visit = visit[self.row[visit] >= 0]
        matrix[self.cycle[visit], self.row[visit]] = value
        return matrix


def _shown_lists(timeline: Timeline, cells: _Cells, readable: Ints, number: Ints) -> Ints32:
    """Which list each page showed in each cycle; a visit that showed one counts more than any other of its cycle."""
    shows = np.full(cells.shape, NOTHING, np.int32)
    cells.filled(np.flatnonzero(timeline.outcome == Outcome.FAILED), FAILED, shows)
    cells.filled(np.flatnonzero(timeline.outcome == Outcome.GONE), GONE, shows)
    cells.filled(np.flatnonzero((timeline.links < 0) & (timeline.outcome <= Outcome.UNCHANGED)), UNREAD, shows)
    shows[cells.cycle[readable], cells.row[readable]] = number
    return shows


def _page_versions(timeline: Timeline, cells: _Cells) -> Ints:
    """The version of each page in each cycle; between two visits it stays the same."""
    answered = np.flatnonzero((timeline.outcome <= Outcome.UNCHANGED) & (cells.row >= 0))
    version = np.full(cells.shape, -1, np.int64)
    version[cells.cycle[answered], cells.row[answered]] = _versions(timeline, answered)
    for cycle in range(1, len(version)):
        version[cycle] = np.where(version[cycle] < 0, version[cycle - 1], version[cycle])
    return version


def _with_contents(
    world: World, history: History, every: Every, first: int, *, with_words: bool, notion: Notion | None
) -> World:
    from recrawl.world.wordings import known_contents, shown_texts, versions_by_words  # few policies need words

    contents = known_contents(history, every, needed=notion is not None)
    if contents is None:
        return world
    changed: dict[str, Any] = {}
    if notion is not None:
        changed["version"], changed["wordings"] = versions_by_words(
            notion, history, contents, world.version, page=world.page, first=first
        )
    if with_words:
        changed |= {"text": shown_texts(contents, world.page, first), "words": contents.counts}
    return replace(world, **changed)


def _first_full(page: Ints, of_visit: Ints, n_rounds: int) -> int:
    """The first round that holds most pages; where none does, the fullest."""
    once = np.append(True, (page[1:] != page[:-1]) | (of_visit[1:] != of_visit[:-1]))  # ordered by page and time
    held, n_pages = np.bincount(of_visit[once], minlength=n_rounds), 1 + int((page[1:] != page[:-1]).sum())
    return int(np.argmax(held > n_pages / 2)) if (held > n_pages / 2).any() else int(np.argmax(held))


def _row_of(page: Ints, ids: Ints) -> Ints:
    """The row of each page in the world; -1 where it is not part of it."""
    order = np.argsort(ids)
    at = np.minimum(np.searchsorted(ids[order], page), len(ids) - 1)
    return np.where(ids[order][at] == page, order[at], -1)


def _numbered(timeline: Timeline, readable: Ints) -> tuple[Ints, LinkLists, Ints]:
    """For every visit the number of its list, the lists with small ascending numbers for links, and the links' ids.

    Lists stay in the order in which they are stored: those of a site that is crawled together lie, and are numbered, together.
    """
    shown, sets = timeline.links[readable], timeline.sets
    is_used = np.zeros(len(sets.digest), np.bool_)
    is_used[shown] = True
    number = (np.cumsum(is_used) - 1)[shown]
    before = np.full(int(is_used.sum()), -1, np.int64)  # the list that the same page showed at its visit before
    again = np.flatnonzero(timeline.page[readable[1:]] == timeline.page[readable[:-1]])
    again = again[number[again] < number[again + 1]]
    before[number[again + 1]] = number[again]
    start, links, link = numbered(sets.start, sets.links, sets.n_internal, np.flatnonzero(is_used), before)
    return number, LinkLists(start, links), link


def _versions(timeline: Timeline, answered: Ints) -> Ints:
    """A number for what each visit showed: its links and its text, or its bytes where neither is known; -1 where nothing is."""
    copy = timeline.latest[answered]
    content = np.zeros(len(answered), np.int64)
    for name in ("payload", "text"):
        column = timeline.rows[name]
        known = np.asarray(column.is_valid())[np.maximum(copy, 0)] & (copy >= 0)
        content = np.where(known, column.fill_null(0).to_numpy()[np.maximum(copy, 0)], content)
    links = timeline.links[answered]
    digest = np.where(links >= 0, timeline.sets.digest[np.maximum(links, 0)] if len(timeline.sets.digest) else 0, 0)
    mixed = (content * _MIX[0]) ^ (digest * _MIX[1])
    return np.where((content == 0) & (links < 0), -1, mixed & np.int64(2**62 - 1))


def _first_shown(shows: Ints32, baseline: Flags, sets: LinkLists, at_first: Ints, n_links: int) -> Ints32:
    """The cycle that first shows each link; also 0 where a baseline does: what is read in a new way is not newly published.

    `at_first` are the lists of all visits of cycle 0, also of those that a later one of the same cycle replaced.
    """
    first_of_set = np.full(len(sets.sizes), np.iinfo(np.int32).max, np.int32)
    for cycle in range(len(shows) - 1, -1, -1):
        first_of_set[shows[cycle][shows[cycle] >= 0]] = cycle
    first_of_set[at_first] = 0
    first: Ints32 = first_cycles(sets.start, sets.links, first_of_set, n_links)
    for cycle in np.flatnonzero(baseline.any(axis=1)).tolist():
        for number in shows[cycle][baseline[cycle] & (shows[cycle] >= 0)]:
            links = sets[number]
            first[links[first[links] >= cycle]] = 0
    first[first == np.iinfo(np.int32).max] = 0  # shown only by visits that another one of the same cycle replaced
    return first
