"""What was new on each visit, in all three meanings, for a whole history at once.

Visits come sorted by page and time, link sets as ascending ids, so "new since the previous visit" is a merge of two short sorted
arrays. Only what is new in that sense can be new to the page, and only what is new to the page can be new anywhere, so the two
wider meanings look at a small part of all sightings, through hash tables.

- previous: not on the page at its previous visit (Dang et al. 2022, section 4: N⁺(p(t_{i+1})) \\ N⁺(p(t_i)));
- page: never before on this page (Jayawardana et al. 2020, section II-B: l*(m_i));
- anywhere: never before on any page of the collection (Pham et al. 2018), "before" meaning at an earlier moment: a link that two
  pages first show at the same moment is new on both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from recrawl.core.arrays import Ints, Ints32
from recrawl.core.hashtable import room_for, slot
from recrawl.core.workers import over_ranges

PARTS = 256  #: a power of two, at most 256
UNDEFINED = -1  #: first visit, baseline, failed visit, links not known
MEANINGS = ("previous", "page", "anywhere")  #: of "new", as above


@dataclass(frozen=True, kw_only=True)
class Novelty:
    """New links per visit, in the order of the visits; `UNDEFINED` where the question has no answer."""

    previous_internal: Ints32
    previous_external: Ints32
    page_internal: Ints32
    page_external: Ints32
    anywhere_internal: Ints32
    anywhere_external: Ints32
    n_distinct_anywhere: int  # distinct links never before anywhere, each counted once
    n_links: int  # distinct links ever seen

    def total(self, meaning: str) -> Ints32:
        """Internal and external together; `meaning` is previous, page or anywhere."""
        internal: Ints32 = getattr(self, f"{meaning}_internal")
        external: Ints32 = getattr(self, f"{meaning}_external")
        return np.where(internal >= 0, internal + external, UNDEFINED).astype(np.int32)


@dataclass(frozen=True, kw_only=True)
class NewOnPages:
    """What was new to each page by itself; and where each page first showed each of its links."""

    counts: Ints32  # per visit: previous internal and external, page internal and external
    link: Ints  # of each first sighting on a page
    visit: Ints  # 2·visit, and 1 more if the link is external

    def total(self, meaning: str) -> Ints32:
        """Internal and external together; `meaning` is previous or page."""
        internal, external = self.counts[:2] if meaning == "previous" else self.counts[2:]
        return np.where(internal >= 0, internal + external, UNDEFINED).astype(np.int32)

    def novelty(self, anywhere: Ints32, n_distinct_anywhere: int, n_links: int) -> Novelty:
        """All three meanings, once it is known what was new anywhere."""
        return Novelty(
            previous_internal=self.counts[0],
            previous_external=self.counts[1],
            page_internal=self.counts[2],
            page_external=self.counts[3],
            anywhere_internal=anywhere[0],
            anywhere_external=anywhere[1],
            n_distinct_anywhere=n_distinct_anywhere,
            n_links=n_links,
        )


def new_on_pages(
    page_start: Ints, links: Ints, compared_with: Ints, set_start: Ints, set_links: Ints, set_n_internal: Ints
) -> NewOnPages:
    """Count the links that are new to their pages.

    `page_start`: where each page's visits begin, and the number of visits at the end. `links`: for each visit the link set it
    shows (carried forward where unchanged), -1 where not known. `compared_with`: the earlier visit whose links it is compared with,
    -1 where there is none. `set_start`: where each set begins in `set_links`; internal ids first, both parts ascending.
    """
    counts = np.full((4, len(links)), UNDEFINED, np.int32)
    link, visit, n = _per_page(page_start, links, compared_with, set_start, set_links, set_n_internal, counts)
    return NewOnPages(counts=counts, link=link[:n], visit=visit[:n])


def new_since_previous(visit: Ints, links: Ints, compared_with: Ints, sets: tuple[Ints, Ints, Ints]) -> Ints32:
    """New links of some visits in the first meaning alone, internal and external together: quicker, in no memory.

    `sets`: where each set begins, the links of all sets, and how many of each are internal.
    """
    counts = np.full(len(visit), UNDEFINED, np.int32)
    over_ranges(
        len(visit), lambda low, high: _since_previous(visit[low:high], links, compared_with, *sets, counts[low:high])
    )
    return counts


@njit(cache=True, nogil=True)
def _since_previous(visit, links, compared_with, start, link, n_internal, counts):  # type: ignore[no-untyped-def]
    for i in range(len(visit)):
        now, before = links[visit[i]], compared_with[visit[i]]
        before = links[before] if before >= 0 else -1
        if now < 0 or before < 0:
            continue
        n_common = 0
        for kind in range(2 if now != before else 0):
            a = start[now] if kind == 0 else start[now] + n_internal[now]
            b = start[before] if kind == 0 else start[before] + n_internal[before]
            end_a = start[now] + n_internal[now] if kind == 0 else start[now + 1]
            end_b = start[before] + n_internal[before] if kind == 0 else start[before + 1]
            while a < end_a and b < end_b:
                n_common += link[a] == link[b]
                step = link[a] <= link[b]
                b += link[b] <= link[a]
                a += step
        counts[i] = start[now + 1] - start[now] - n_common if now != before else 0


@njit(cache=True)
def _per_page(
    page_start: Ints,
    links: Ints,
    compared_with: Ints,
    set_start: Ints,
    set_links: Ints,
    set_n_internal: Ints,
    counts: Ints32,
) -> tuple[Ints, Ints, int]:
    """Fill counts (previous internal, external, page internal, external); return each page's first sightings of links.

    A sighting is a link id and a visit, coded as 2·visit + 1 if the link is external.
    """
    sighted_link = np.empty(1 << 20, np.int64)
    sighted_visit = np.empty(1 << 20, np.int64)
    n = 0
    index = np.full(room_for(1 << 9), -1, np.int64)  # of the page's sightings; those of earlier pages count as free
    for p in range(len(page_start) - 1):
        last_set = -1
        n_before = n
        for v in range(page_start[p], page_start[p + 1]):
            current = links[v]
            if current < 0:
                continue
            before = -1 if compared_with[v] < 0 else links[compared_with[v]]
            if before >= 0:
                counts[:, v] = 0
            if current == last_set and (before < 0 or before == current):
                continue
            start, stop = set_start[current], set_start[current + 1]
            split = start + set_n_internal[current]
            if len(index) < 2 * (n - n_before + stop - start):
                index = np.full(room_for(n - n_before + stop - start), -1, np.int64)
                for s in range(n_before, n):
                    index[slot(sighted_link, sighted_link[s], index, n_before)] = s
            while len(sighted_link) < n + stop - start:
                sighted_link = np.concatenate((sighted_link, np.empty_like(sighted_link)))
                sighted_visit = np.concatenate((sighted_visit, np.empty_like(sighted_visit)))
            for kind in range(2):
                i, end = (start, split) if kind == 0 else (split, stop)
                k = k_end = 0
                if before >= 0:
                    k = set_start[before] if kind == 0 else set_start[before] + set_n_internal[before]
                    k_end = set_start[before] + set_n_internal[before] if kind == 0 else set_start[before + 1]
                n_new, n_seen = 0, n
                while i < end:
                    link = set_links[i]
                    while k < k_end and set_links[k] < link:
                        k += 1
                    if k == k_end or set_links[k] != link:  # not there at the visit before
                        n_new += 1
                        j = slot(sighted_link, link, index, n_before)
                        if index[j] < n_before:
                            index[j] = n
                            sighted_link[n], sighted_visit[n] = link, 2 * v + kind
                            n += 1
                    i += 1
                if before >= 0:
                    counts[kind, v], counts[2 + kind, v] = n_new, n - n_seen
            last_set = current
    return sighted_link, sighted_visit, n


@njit(cache=True)
def new_anywhere(sighted_link: Ints, sighted_visit: Ints, at: Ints, compared_with: Ints) -> tuple[Ints32, int, int]:
    """Count per visit the links whose earliest sighting among all given is at that visit's moment; and distinct ones, and links.

    Sightings are links, and 2·visit, and 1 more if the link is external, as in `NewOnPages`. They are first split by the top bits
    of the link's id, so that each part's table fits the processor's cache.
    """
    counts = np.full((2, len(at)), UNDEFINED, np.int32)
    for v in range(len(at)):
        if compared_with[v] >= 0:
            counts[0, v] = counts[1, v] = 0
    link, visit, start = _by_part(sighted_link, sighted_visit)
    index = np.full(room_for(np.max(np.diff(start))), -1, np.int64)
    earliest, counted = np.empty(len(index), np.int64), np.empty(len(index), np.bool_)
    n_links = n_distinct = 0
    for part in range(PARTS):
        for s in range(start[part], start[part + 1]):
            moment = at[visit[s] >> 1]
            j = slot(link, link[s], index, start[part])
            if index[j] < start[part]:
                index[j], earliest[j], counted[j] = s, moment, False
                n_links += 1
            elif moment < earliest[j]:
                earliest[j] = moment
        for s in range(start[part], start[part + 1]):
            v, kind = visit[s] >> 1, visit[s] & 1
            if compared_with[v] >= 0:
                j = slot(link, link[s], index, start[part])
                if at[v] == earliest[j]:
                    counts[kind, v] += 1
                    n_distinct += not counted[j]
                    counted[j] = True
    return counts, n_distinct, n_links


@njit(cache=True)
def _by_part(sighted_link: Ints, sighted_visit: Ints) -> tuple[Ints, Ints, Ints]:
    """Sightings in the order of the top bits of the link's id, and where each part begins."""
    start = np.zeros(PARTS + 1, np.int64)
    for link in sighted_link:
        start[((link >> 56) & (PARTS - 1)) + 1] += 1
    start = np.cumsum(start)
    place = start[:-1].copy()
    links, visits = np.empty_like(sighted_link), np.empty_like(sighted_visit)
    for s in range(len(sighted_link)):
        part = (sighted_link[s] >> 56) & (PARTS - 1)
        links[place[part]], visits[place[part]] = sighted_link[s], sighted_visit[s]
        place[part] += 1
    return links, visits, start
