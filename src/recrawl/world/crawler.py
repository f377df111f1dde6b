"""A crawler in a recorded world: it visits pages, and learns which links are new to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numba import njit

from recrawl.core.arrays import Flags, Floats, Ints, Ints8, Ints32, LinkLists
from recrawl.core.hashtable import EMPTY, HashSet, slot
from recrawl.core.times import moment
from recrawl.world.pages import Need, Pages, Visits
from recrawl.world.recorded import FAILED, GONE, NOTHING, UNREAD, World


@dataclass(frozen=True)
class CycleVisits:
    """The visits of a cycle as a policy sees them, and what only a replay counts."""

    visits: Visits
    ages: Floats  # hours between the first sighting on any page and the discovery, one entry per link discovered
    cycles: Ints  # the same in cycles


@dataclass(frozen=True)
class _Sight:
    """What some pages show in a cycle to a crawler that knows what it knows. One entry per page, except `discovered`."""

    cycle: int
    page: Ints
    shows: Ints32
    changed: Ints8
    n_new_since: Ints32
    updated: Ints8
    shown: LinkLists
    new: LinkLists
    discovered: Ints32  # every new link once
    text: Ints32 | None


class Crawler:
    """Visits pages of a world, cycle by cycle; what it does not visit it does not see.

    It begins with all of cycle 0. Links first shown by a page that is read in a new way are known to it without a visit.
    """

    def __init__(self, world: World, needs: frozenset[Need] = frozenset({Need.UPDATES})) -> None:
        self.world = world
        self.with_updates = Need.UPDATES in needs
        self.cycle = 0
        self.pages: Pages = world.pages()
        self.pages.future = _NextCycle(self) if Need.FUTURE in needs else None
        self.known: Flags = world.first_shown == 0  # all that the first crawl showed
        self.copy = np.full(world.n_pages, NOTHING, np.int64)  # the list that each page showed when it was last seen
        self.version = np.full(world.n_pages, -1, np.int64)
        self.is_reread: Flags = np.zeros(world.n_pages, np.bool_)  # since the page was last seen
        self.on_page = PageLinks()
        self.first = self._noted(self._see_recorded(0))

    def visit(self, page: Ints, memo: Mapping[str, float] | None = None) -> CycleVisits:
        """Go on to the next cycle and visit these pages; `memo` is that of the choice they come from."""
        return self._noted(self._see(self.cycle + 1, np.sort(page)), memo)

    def visit_recorded(self) -> CycleVisits:
        """Go on to the next cycle and make the visits that were made then, successful or not."""
        return self._noted(self._see_recorded(self.cycle + 1))

    def recorded(self) -> Iterator[CycleVisits]:
        """The first crawl, and the visits of every cycle after it as they were made.

        While the caller learns from one cycle the next one is prepared: meanwhile the crawler must not be used for anything else.
        """
        with ThreadPoolExecutor(1) as ahead:
            coming = [ahead.submit(self._see_recorded, cycle) for cycle in range(1, self.world.n_cycles + 1)[:1]]
            yield self.first
            while coming:
                seen = coming.pop().result()
                if seen.cycle < self.world.n_cycles:
                    coming.append(ahead.submit(self._see_recorded, seen.cycle + 1))
                yield self._noted(seen)

    def _see_recorded(self, cycle: int) -> _Sight:
        return self._see(cycle, np.flatnonzero(self.world.shows[cycle] != NOTHING))

    def _see(self, now: int, page: Ints) -> _Sight:
        """What these pages show in a cycle; from now on it is known."""
        world, shows = self.world, self.world.shows[now][page]
        answered = shows >= 0
        self.is_reread |= world.is_baseline[now]
        shown = LinkLists(*_lists(world.sets.start, world.sets.links, np.where(answered, shows, 0), answered))
        new = LinkLists(*_unknown(shown.start, shown.links, self.known))
        discovered = _learn(new.links, self.known)
        before, version, last_version = self.copy[page], world.version[now][page], self.version[page]
        version = np.where(shows == NOTHING, -1, version)  # not visited: the version is only carried forward
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
        text = None if world.text is None else np.where(is_seen, world.text[now][page], -1).astype(np.int32)
        return _Sight(
            cycle=now,
            page=page,
            shows=shows,
            changed=changed,
            n_new_since=n_new_since.astype(np.int32),
            updated=updated,
            shown=shown,
            new=new,
            discovered=discovered,
            text=text,
        )

    def _noted(self, seen: _Sight, memo: Mapping[str, float] | None = None) -> CycleVisits:
        """Note visits, and hand them out."""
        world, now, page, shows = self.world, seen.cycle, seen.page, seen.shows
        self.cycle = now
        at = moment(int(world.time[now]))
        visits = Visits(
            at=at,
            page=page,
            age_hours=self.pages.age_hours(at)[page],
            is_first=self.pages.n_visits[page] == 0,
            answered=shows >= 0,
            gone=shows == GONE,
            failed=(shows == FAILED) | (shows == NOTHING),
            changed=seen.changed,
            n_new_since=seen.n_new_since,
            updated=seen.updated,
            shown=seen.shown,
            new=seen.new,
            n_found=len(seen.discovered),
            text=seen.text,
            memo=memo,
        )
        self.pages.note(visits)
        first_shown = world.first_shown[seen.discovered].astype(np.int64)
        counted = first_shown > 0
        ages = (world.time[now] - world.time[first_shown[counted]]) / 3.6e9
        return CycleVisits(visits, ages, now - first_shown[counted])

    def is_current(self) -> Flags:
        """Whether the copy kept of each page is what the page shows now; pages never seen count as stale."""
        return self.world.alike(self.version, self.world.version[self.cycle])

    def unseen(self, cycle: int) -> LinkLists:
        """The unknown links that each page shows in a cycle: foreknowledge, for an upper bound only."""
        shows = self.world.shows[cycle]
        lists = _lists(self.world.sets.start, self.world.sets.links, np.maximum(shows, 0), shows >= 0)
        return LinkLists(*_unknown(lists[0], lists[1], self.known))

    def renewable(self, cycle: int) -> tuple[Flags, Ints]:
        """Which copies a visit in a cycle would make current, and for how many cycles; foreknowledge, too."""
        version, shows = self.world.version[cycle], self.world.shows[cycle]
        renews = ((shows >= 0) | (shows == UNREAD)) & (version >= 0) & ~self.world.alike(self.version, version)
        return renews, self._lasts(cycle, np.flatnonzero(renews))

    def _lasts(self, cycle: int, page: Ints) -> Ints:
        """For how many cycles, itself included, copies of these pages made in a cycle stay current; 0 for all other pages."""
        lasts = np.zeros(self.world.n_pages, np.int64)
        copied = self.world.version[cycle]
        for later in self.world.version[cycle:]:
            page = page[self.world.alike(copied[page], later[page])]
            if not len(page):
                break
            lasts[page] += 1
        return lasts


@dataclass(frozen=True)
class _NextCycle:
    """What the cycle after a crawler's present one will show: a `Future`."""

    crawler: Crawler

    def unseen_links(self) -> LinkLists:
        """The links of each page that the crawler does not know yet."""
        return self.crawler.unseen(self.crawler.cycle + 1)

    def renewable(self) -> tuple[Flags, Ints]:
        """Which copies a visit would bring up to date, and for how many cycles they would stay so."""
        return self.crawler.renewable(self.crawler.cycle + 1)


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
def _lists(set_start, set_links, number, use):  # type: ignore[no-untyped-def]
    """The chosen lists below each other; an empty one where it is not to be used."""
    start = np.zeros(len(number) + 1, np.int64)
    for i in range(len(number)):
        start[i + 1] = start[i] + (set_start[number[i] + 1] - set_start[number[i]] if use[i] else 0)
    links = np.empty(start[-1], np.int32)
    for i in range(len(number)):
        if use[i]:
            links[start[i] : start[i + 1]] = set_links[set_start[number[i]] : set_start[number[i] + 1]]
    return start, links


@njit(cache=True, nogil=True)
def _unknown(start, links, known):  # type: ignore[no-untyped-def]
    fresh = np.zeros(len(start), np.int64)
    kept = np.empty(len(links), np.int32)
    n = 0
    for i in range(len(start) - 1):
        for j in range(start[i], start[i + 1]):
            if not known[links[j]]:
                kept[n] = links[j]
                n += 1
        fresh[i + 1] = n
    return fresh, kept[:n].copy()


@njit(cache=True, nogil=True)
def _learn(links, known):  # type: ignore[no-untyped-def]
    """Every link once, in the order of first sight; from now on they are known."""
    found = np.empty(len(links), np.int32)
    n = 0
    for link in links:
        if not known[link]:
            known[link] = True
            found[n] = link
            n += 1
    return found[:n].copy()


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
