"""A crawler in a recorded world: it visits pages, and learns which links are new to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numba import njit

from recrawl.core.arrays import Flags, Floats, Ints, Ints32, LinkLists
from recrawl.core.hashtable import EMPTY, HashSet, slot
from recrawl.core.ids import places_of
from recrawl.core.times import US_PER_HOUR, moment
from recrawl.world.kernels import learn_links, lists_of, unknown_links
from recrawl.world.page_names import folders_and_namesakes
from recrawl.world.pages import Need, Pages, Visits, hours_between
from recrawl.world.readings import CARRY, ONLY_RECORDED
from recrawl.world.recorded import FAILED, GONE, NOTHING, UNREAD, World


@dataclass(frozen=True)
class CycleVisits:
    """The visits of a cycle as a policy sees them, and what only a replay counts."""

    visits: Visits
    ages: Floats  # hours between the first sighting on any page and the discovery, one entry per link discovered
    cycles: Ints  # the same in cycles
    links: Ints  # the links discovered, by their numbers in the world
    n_found_of_all: int | None = None  # links discovered, those that do not count as well; None: all count


class Crawler:
    """Visits pages of a world, cycle by cycle; what it does not visit it does not see.

    It begins with all of cycle 0, and knows a page from the cycle on in which the recorded crawl did. Links first shown by a page
    that is read in a new way are known to it without a visit. All visits of a cycle are made at its end.

    between: what a page shows in a cycle without a record; by default as the world says. "carry": between two records it is as
    the earlier one shows it, whether they agree or not; after its last record that is unknown, so it cannot be visited. "nothing":
    a visit fails.
    """

    def __init__(
        self, world: World, needs: frozenset[Need] = frozenset({Need.UPDATES}), between: str | None = None
    ) -> None:
        self.world, self.between = world, between or world.between
        self.with_updates = Need.UPDATES in needs
        self._page_of = places_of(world.page, world.link).astype(np.int32) if Need.GRAPH in needs else None
        self.cycle = -1
        self._url_groups = folders_and_namesakes(world.url)
        self.pages = Pages.unseen(world.site[:0], world.host[:0])
        self.pages.future = _NextCycle(self) if Need.FUTURE in needs else None
        self.known: Flags = world.first_shown == 0  # all that the first crawl showed
        everything = world.everything
        self._known_of_all: Flags | None = None if everything is None else everything.first_shown == 0
        self.copy = np.full(world.n_pages, NOTHING, np.int64)  # the list that each page showed when it was last seen
        self.version = np.full(world.n_pages, -1, np.int64)
        self.is_reread: Flags = np.zeros(world.n_pages, np.bool_)  # since the page was last seen
        self.on_page = PageLinks()
        self._now = _Shows.before(world)
        self._last_cycle = _last_recorded(world)
        #: How much each page of the world matters, as is known by the end of the present cycle; None: all are alike.
        self.importance: Floats | None = None if world.importance is None else np.ones(world.n_pages)
        self._go_on()
        self.first = self._see(
            world.row[world.of_cycle(0)].astype(np.int64) if len(world.time) else np.empty(0, np.int64)
        )

    def visit(self, page: Ints, memo: Mapping[str, float] | None = None) -> CycleVisits:
        """Go on to the next cycle and visit these pages; `memo` is that of the choice they come from."""
        self._go_on()
        return self._see(np.sort(page), memo)

    def visit_recorded(self) -> CycleVisits:
        """Go on to the next cycle and make the visits that were made then, successful or not."""
        self._go_on()
        return self._see(self.world.row[self.world.of_cycle(self.cycle)].astype(np.int64))

    def meet_pages(self) -> int:
        """Learn of the pages that the recorded crawl knows by the end of the next cycle; how many were known before."""
        n_before = len(self.pages)
        self._know_pages(self.cycle + 1)
        if self.importance is not None:  # what was stated in the cycles before, not in the one that is to be chosen for
            self.pages.importance = self.importance[: len(self.pages)].copy()
        return n_before

    def unknowable(self) -> Flags:
        """Pages of which it is not known what the next cycle would show: their last record is from before."""
        if self.between == ONLY_RECORDED:
            return np.zeros(len(self.pages), np.bool_)
        ended: Flags = self._last_cycle[: len(self.pages)] < self.cycle + 1
        return ended

    def _know_pages(self, cycle: int) -> None:
        n = max(self.world.known_pages(cycle), len(self.pages))
        if n > len(self.pages):
            groups = (self._url_groups[0][:n], self._url_groups[1][:n])
            depth = None if self.world.depth is None else self.world.depth[:n]
            self.pages.extend(self.world.site[:n], self.world.host[:n], groups, depth, self.world.page[:n])
            self.pages.related = self.world.related and self.world.related.first(n)

    def _go_on(self) -> None:
        """To the next cycle, and what its records show."""
        self.cycle += 1
        self._know_pages(self.cycle)
        if self.cycle < len(self.world.time):
            here = self.world.of_cycle(self.cycle)
            self._now.add(self.world, here)
            if self.importance is not None and self.world.importance is not None:
                self.importance[self.world.row[here]] = self.world.importance[here]
            self.is_reread[self.world.row[here][self.world.is_baseline[here]]] = True

    def _see(self, page: Ints, memo: Mapping[str, float] | None = None) -> CycleVisits:
        """What these pages show now; from now on it is known."""
        world, now = self.world, self.cycle
        at = world.time[now] if now < len(world.time) else np.int64(0)
        shows, version, text = self._now.of(world, page, now, self.between)
        answered = shows >= 0
        shown = LinkLists(*lists_of(world.sets.start, world.sets.links, np.where(answered, shows, 0), answered))
        new = LinkLists(*unknown_links(shown.start, shown.links, self.known))
        discovered = learn_links(new.links, self.known)
        before, last_version = self.copy[page], self.version[page]
        is_seen = answered | (shows == UNREAD)
        comparable = answered & (before >= 0) & ~self.is_reread[page]
        may_compare = is_seen & (version >= 0) & (last_version >= 0) & ~self.is_reread[page]
        self.is_reread[page[is_seen]] = False
        older = np.where(comparable, before, -1)
        n_new_since = _n_missing(shown.start, shown.links, world.sets.start, world.sets.links, older)
        changed = np.where(may_compare, ~world.alike(last_version, version), -1).astype(np.int8)
        updated = np.full(len(page), -1, np.int8)
        if self.with_updates:
            updated[comparable] = (self.on_page.add(page, shown.start, shown.links) > 0)[comparable]
        self.copy[page[answered]] = shows[answered]
        self.version[page[is_seen & (version >= 0)]] = version[is_seen & (version >= 0)]
        visits = Visits(
            at=np.full(len(page), at),
            ended_at=moment(int(at)),
            page=page,
            age_hours=hours_between(self.pages.last_visit[page], at),
            is_first=self.pages.n_visits[page] == 0,
            answered=answered,
            gone=shows == GONE,
            failed=(shows == FAILED) | (shows == NOTHING),
            changed=changed,
            n_new_since=n_new_since.astype(np.int32),
            updated=updated,
            shown=shown,
            new=new,
            n_found=len(discovered),
            text=None if world.text is None else np.where(is_seen, text, -1).astype(np.int32),
            words=world.words,
            leads_to=None if self._page_of is None else shown.led_to(self._page_of, len(self.pages)),
            memo=memo,
        )
        self.pages.note(visits)
        counted = discovered[world.first_shown[discovered] > 0]
        ages = np.maximum(at - world.first_at[counted], 0) / US_PER_HOUR
        of_all = self._found_of_all(shows, answered)
        return CycleVisits(visits, ages, now - world.first_shown[counted].astype(np.int64), counted, of_all)

    def _found_of_all(self, shows: Ints32, answered: Flags) -> int | None:
        """How many links were discovered where also those that do not count are counted."""
        everything = self.world.everything
        if everything is None or self._known_of_all is None:
            return None
        sets = everything.sets
        _, shown = lists_of(sets.start, sets.links, np.where(answered, shows, 0), answered)
        return len(learn_links(shown, self._known_of_all))

    def is_current(self) -> Flags:
        """Whether the copy kept of each known page is what the page shows now; pages never seen count as stale."""
        n = len(self.pages)
        return self.world.alike(self.version[:n], self._now.version[:n])

    def weighted_share(self, counts: Flags) -> float:
        """The share of the known pages that counts, each page by how much it matters; 0 of nothing.

        >>> from dataclasses import replace
        >>> from recrawl.testing import tiny_world
        >>> crawler = Crawler(replace(tiny_world([[{1}, {2}]]), importance=np.array([3.0, 1.0])))
        >>> crawler.weighted_share(np.array([True, False]))
        0.75
        """
        weights = np.ones(len(counts)) if self.importance is None else self.importance[: len(counts)]
        total = float(weights.sum())
        return float(weights[counts].sum()) / total if total else 0.0

    def unseen(self) -> LinkLists:
        """The unknown links that each known page shows in the next cycle: foreknowledge, for an upper bound only."""
        coming, page = self._coming()
        shows = coming.of(self.world, page, self.cycle + 1, self.between)[0]
        lists = lists_of(self.world.sets.start, self.world.sets.links, np.maximum(shows, 0), shows >= 0)
        return LinkLists(*unknown_links(lists[0], lists[1], self.known))

    def renewable(self) -> tuple[Flags, Ints]:
        """Which copies a visit in the next cycle would make current, and for how many cycles; foreknowledge, too."""
        coming, page = self._coming()
        shows, version, _ = coming.of(self.world, page, self.cycle + 1, self.between)
        renews = ((shows >= 0) | (shows == UNREAD)) & (version >= 0)
        renews &= ~self.world.alike(self.version[page], version)
        lasts = np.zeros(len(page), np.int64)
        lasts[renews] = self._lasts(coming, page[renews])
        return renews, lasts

    def _coming(self) -> tuple[_Shows, Ints]:
        """What pages will show in the next cycle, and those that are known by then."""
        coming = self._now.copy()
        coming.add(self.world, self.world.of_cycle(self.cycle + 1))
        return coming, np.arange(len(self.pages))

    def _lasts(self, coming: _Shows, page: Ints) -> Ints:
        """For how many cycles, itself included, copies of these pages made in the next cycle stay current."""
        copied, lasts, still = coming.version.copy(), np.zeros(self.world.n_pages, np.int64), page
        for cycle in range(self.cycle + 1, len(self.world.time)):
            coming.add(self.world, self.world.of_cycle(cycle))
            still = still[self.world.alike(copied[still], coming.version[still])]
            if not len(still):
                break
            lasts[still] += 1
        return lasts[page]


@dataclass
class _Shows:
    """What the records so far show of each page."""

    record: Ints  # its newest record; -1: none
    informed: Ints  # its newest record that was not a failure; -1: none
    version: Ints  # its newest version that is known

    @classmethod
    def before(cls, world: World) -> _Shows:
        """Before the first record."""
        return cls(*(np.full(world.n_pages, -1, np.int64) for _ in range(3)))

    def copy(self) -> _Shows:
        """The same, to look ahead with."""
        return _Shows(self.record.copy(), self.informed.copy(), self.version.copy())

    def add(self, world: World, visits: slice) -> None:
        """Some more records."""
        of_visits = (world.row, world.shows, world.version)
        _note_records(*of_visits, visits.start, visits.stop, self.record, self.informed, self.version)

    def of(self, world: World, page: Ints, cycle: int, between: str) -> tuple[Ints32, Ints, Ints32]:
        """The list, the version and the text that each of some pages shows in a cycle."""
        record = self.record[page]
        is_recorded = (record >= 0) & (world.cycle[np.maximum(record, 0)] == cycle) if len(world.cycle) else record >= 0
        entry = np.where(is_recorded, record, self.informed[page] if between == CARRY else -1)
        has = entry >= 0
        at = np.maximum(entry, 0)
        if not len(world.shows):
            nothing = np.full(len(page), NOTHING, np.int32)
            return nothing, nothing.astype(np.int64), nothing
        shows = np.where(has, world.shows[at], NOTHING).astype(np.int32)
        version = np.where(has, world.version[at], -1)
        text = np.where(has, world.text[at], -1) if world.text is not None else np.full(len(page), -1)
        return shows, version, text.astype(np.int32)


def _last_recorded(world: World) -> Ints:
    """The cycle of the last record of each page, failures included: what a visit shows is known until then. -1: there is none."""
    last = np.full(world.n_pages, -1, np.int64)
    last[world.row] = world.cycle  # in the order of time
    return last


@dataclass(frozen=True)
class _NextCycle:
    """What the cycle after a crawler's present one will show: a `Future`."""

    crawler: Crawler

    def unseen_links(self) -> LinkLists:
        """The links of each page that the crawler does not know yet."""
        return self.crawler.unseen()

    def renewable(self) -> tuple[Flags, Ints]:
        """Which copies a visit would bring up to date, and for how many cycles they would stay so."""
        return self.crawler.renewable()


class PageLinks:
    """Which links each page ever showed: a growing hash set of (page, link)."""

    def __init__(self) -> None:
        self._shown = HashSet()

    def add(self, page: Ints, start: Ints, links: Ints32) -> Ints:
        """Remember the links of these pages; how many of them each page shows for the first time."""
        self._shown.reserve(len(links))
        fresh: Ints = _insert(self._shown.keys, page, start, links)
        self._shown.size += int(fresh.sum())
        return fresh


@njit(cache=True, nogil=True)
def _note_records(row, shows, version, begin, end, record, informed, known):  # type: ignore[no-untyped-def]
    """The newest record of each page, the newest that was no failure, and the newest version."""
    for i in range(begin, end):
        record[row[i]] = i
        if shows[i] != FAILED:
            informed[row[i]] = i
        if version[i] >= 0:
            known[row[i]] = version[i]


@njit(cache=True, nogil=True)
def _n_missing(start, links, set_start, set_links, older):  # type: ignore[no-untyped-def]
    """How many links of each list are not in the older one, both ascending; -1 where there is none to compare with."""
    missing = np.full(len(older), -1, np.int64)
    for i in range(len(older)):
        if older[i] < 0:
            continue
        missing[i], j, end = 0, set_start[older[i]], set_start[older[i] + 1]
        for a in range(start[i], start[i + 1]):
            while j < end and set_links[j] < links[a]:
                j += 1
            missing[i] += j == end or set_links[j] != links[a]
    return missing


@njit(cache=True, nogil=True)
def _insert(keys, page, start, links):  # type: ignore[no-untyped-def]
    fresh = np.zeros(len(page), np.int64)
    for i in range(len(page)):
        for j in range(start[i], start[i + 1]):
            key = (np.int64(page[i]) << np.int64(32)) | np.int64(links[j])
            at = slot(keys, key)
            if keys[at] == EMPTY:
                keys[at] = key
                fresh[i] += 1
    return fresh
