"""A recorded crawl followed visit by visit, as its crawler lived it: what it knew after each batch.

Learning is a fold over this stream. A `Stream` holds what must be known of everything followed so far; a `Segment` is what comes
next, read from a history. Pages and links are numbered in the order in which they become known, so numbers never change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from recrawl.core.arrays import Flags, Ints, Ints8, Ints32, LinkLists
from recrawl.core.growing import grown
from recrawl.core.ids import IdFilter, places_of
from recrawl.core.times import NEVER, moment
from recrawl.errors import HistoryError
from recrawl.history import History
from recrawl.web.visit import Outcome
from recrawl.world.batches import BatchRule, distinct_moments
from recrawl.world.kernels import learn_links, lists_of, unknown_links
from recrawl.world.page_names import folders_and_namesakes
from recrawl.world.pages import Need, Pages, Visits, hours_between
from recrawl.world.recording import numbered_lists
from recrawl.world.roots import DOMAINS, Roots, Sites, sites_of
from recrawl.world.schedule import Elsewhere, Schedule
from recrawl.world.showings import Showings

if TYPE_CHECKING:
    from scipy import sparse

    from recrawl.world.texts import StreamTexts

RECENT = 100  #: batches that show how long one usually is
GROWTH = 8  #: a run of links is so much longer than the next one, at least: few are copied when more come
_NONE = np.empty(0, np.int64)
AT_ONCE = 1 << 22  #: links that are looked for at once among those known


@dataclass
class Stream:
    """What was followed so far."""

    pages: Pages = field(default_factory=lambda: Pages.unseen(_NONE, _NONE, url_groups=(_NONE, _NONE)))
    page: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # ids in the history
    url: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    links: list[Ints] = field(default_factory=list)  # ids in the history of the numbered links, in runs
    texts: StreamTexts | None = None  # shown so far; None: no policy needs them
    last_new: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # when a page last showed a new link; NEVER
    until: int = NEVER  # microseconds: all visits up to then were followed
    began: int | None = None  # microseconds: the first visit
    recent: list[int] = field(default_factory=list)  # ends of the last batches
    n_batches: int = 0

    @property
    def n_visits(self) -> int:
        """How many visits were followed."""
        return int(self.pages.n_visits.sum())

    @property
    def n_links(self) -> int:
        """How many links are numbered."""
        return sum(map(len, self.links))

    @property
    def cycle_hours(self) -> float | None:
        """The usual time between two batches; None before there were two."""
        return float(np.median(np.diff(self.recent))) / 3.6e9 if len(self.recent) > 1 else None

    def follow(self, segment: Segment) -> Iterator[tuple[Visits, int]]:
        """The batches of a segment, and how many pages were known before each.

        A batch in which a page is visited twice comes in parts, so that no page is in one of them twice.
        """
        known = self.enter(segment)
        for part in segment.parts():
            yield self.go_on(segment, part, known)

    def enter(self, segment: Segment) -> Flags:
        """Number the pages and links that a segment adds; which links are known, for `go_on`."""
        self._take_over(segment)
        known: Flags = np.zeros(self.n_links, np.bool_)
        known[: segment.n_links_before] = True
        return known

    def go_on(self, segment: Segment, part: Part, known: Flags) -> tuple[Visits, int]:
        """The visits of the next part of a segment, and how many pages were known before."""
        if self.began is None:
            self.began = part.began_at
        n_before = len(self.pages)
        self._extend(segment, segment.n_known[part.batch])
        self.pages.n_others = 0 if part.n_pages is None else part.n_pages - len(self.pages)
        visits = self._visits(segment, part, known)
        if part.ends_segment:
            segment.let_go()
        return visits, n_before

    def _take_over(self, segment: Segment) -> None:
        if len(segment.new_link):
            self.links.append(segment.new_link)
            while len(self.links) > 1 and len(self.links[-1]) > len(self.links[-2]) // GROWTH:
                self.links[-2:] = [np.concatenate(self.links[-2:])]
        if len(segment.new_page):
            self.page = np.concatenate([self.page, segment.new_page])
            self.url = pa.concat_arrays([self.url, segment.new_url])
            segment.sites = sites_of(self.url, segment.roots)
            segment.groups = folders_and_namesakes(self.url)

    def _extend(self, segment: Segment, n: int) -> None:
        if n > len(self.pages) and segment.sites is not None:
            sites, groups = segment.sites, tuple(group[:n] for group in segment.groups)
            ids = self.page if n == len(self.page) else self.page[:n]
            self.pages.extend(sites.site[:n], sites.host[:n], groups, sites.depth[:n], ids)
            self.last_new = grown(self.last_new, n, NEVER)

    def _visits(self, segment: Segment, part: Part, known: Flags) -> Visits:
        """What a part of a batch showed; from now on it is known."""
        visit, page, pages = part.visit, segment.row[part.visit], self.pages
        number = segment.number[visit]
        answered = number >= 0
        lists = segment.lists
        shown = LinkLists(*lists_of(lists.start, lists.links, np.maximum(number, 0), answered))
        if part.known_elsewhere is not None:
            known[part.known_elsewhere] = True
        if self.n_batches == 0:
            known[shown.links] = True  # where the crawl begins, nothing can be called new
        read_in_a_new_way = np.repeat(segment.baseline[visit], shown.sizes)
        known[shown.links[read_in_a_new_way]] = True  # read in a new way is not newly published
        new = LinkLists(*unknown_links(shown.start, shown.links, known))
        n_found = len(learn_links(new.links, known))
        at, outcome = segment.at[visit], segment.outcome[visit]
        visits = Visits(
            at=at,
            ended_at=moment(part.ended_at),
            page=page,
            age_hours=hours_between(pages.last_visit[page], at),
            is_first=pages.n_visits[page] == 0,
            answered=answered,
            gone=outcome == Outcome.GONE,
            failed=outcome == Outcome.FAILED,
            changed=segment.changed[visit],
            n_new_since=segment.n_new_since[visit],
            updated=segment.updated[visit],
            shown=shown,
            new=new,
            n_found=n_found,
            text=None if segment.text is None else segment.text[visit],
            words=segment.words,
            leads_to=None if segment.page_of is None else shown.led_to(segment.page_of, len(pages)),
            whole=pages.whole,
            n_others=0 if part.n_visits is None else part.n_visits - len(page),
            began_at=part.began_at,
            contested=part.contested,
            elsewhere=part.elsewhere,
        )
        pages.note(visits)
        gained = visits.n_new_since > 0
        self.last_new[page[gained]] = at[gained]
        self.until = part.ended_at
        if part.is_last:
            self.recent = [*self.recent[1 - RECENT :], part.ended_at]
            self.n_batches += 1
        return visits


@dataclass(frozen=True, kw_only=True)
class Part:
    """Visits of one batch to pages that differ."""

    batch: int  # within its segment
    visit: Ints  # within its segment, in the order of the pages
    is_last: bool  # of its batch
    ends_segment: bool
    began_at: int  # microseconds: the first visit
    ended_at: int  # the last one
    # Where these pages are some of a collection's: visits and pages in all, and what is known of links on the others; see `Visits`.
    n_visits: int | None = None
    n_pages: int | None = None
    known_elsewhere: Ints32 | None = None
    contested: Ints32 | None = None
    elsewhere: tuple[Ints32, Ints] | None = None


@dataclass(kw_only=True)
class Segment:
    """Some visits that follow what a stream has followed so far, with what each of them showed: one entry per visit."""

    at: Ints
    row: Ints  # the page's number in the stream
    outcome: Ints8
    number: Ints  # its list of links in `lists`; -1: not known
    lists: LinkLists  # numbers of the stream
    baseline: Flags
    changed: Ints8
    n_new_since: Ints32
    updated: Ints8
    batch: Ints  # ascending in time
    n_known: Ints  # pages known by the end of each batch
    new_page: Ints
    new_url: pa.Array
    new_link: Ints
    n_links_before: int
    text: Ints32 | None = None  # row of `words`; -1: not known
    words: sparse.csr_matrix | None = None
    page_of: Ints32 | None = None  # the page behind each numbered link; -1: it is none
    roots: Roots = DOMAINS
    sites: Sites | None = None  # of all pages of the stream
    groups: tuple[Ints, ...] = ()
    cut: BatchCuts | None = None  # where these pages are some of a collection's; None: they are all

    def let_go(self) -> None:
        """Nothing more will be asked of it: it is as large as what is made of it."""
        self.lists = LinkLists(self.lists.start[:1], self.lists.links[:0].copy())
        for name in ("at", "row", "outcome", "number", "baseline", "changed", "n_new_since", "updated", "batch"):
            setattr(self, name, getattr(self, name)[:0].copy())

    def parts(self) -> Iterator[Part]:
        """The batches in order of time, each in as many parts as it takes that no page is in one twice."""
        if self.cut is not None:
            yield from self.cut.parts()
            return
        order = np.lexsort((self.row, self.at))
        begin = _cuts(self.row[order], self.batch[order], int(self.row.max(initial=-1)) + 1)
        for i, (low, high) in enumerate(zip(begin, [*begin[1:], len(order)], strict=True)):
            visit = order[low:high]
            batch = int(self.batch[visit[0]])
            ends_segment = i + 1 == len(begin)
            is_last = ends_segment or int(self.batch[order[high]]) != batch
            began_at, ended_at = int(self.at[visit[0]]), int(self.at[visit[-1]])
            yield Part(
                batch=batch,
                visit=visit[np.argsort(self.row[visit])],
                is_last=is_last,
                ends_segment=ends_segment,
                began_at=began_at,
                ended_at=ended_at,
            )


@dataclass(frozen=True, kw_only=True)
class BatchCuts:
    """How the visits to some of a collection's pages are parted, as those to all of them are."""

    schedule: Schedule
    order: Ints  # the visits, by part and page
    start: Ints  # where those of each part begin, and their number
    elsewhere: Elsewhere
    first_batch: int  # of the segment, since the stream began

    @classmethod
    def of(cls, schedule: Schedule, part: Ints, row: Ints, elsewhere: Elsewhere, first_batch: int) -> BatchCuts:
        """From the part and the page of each visit."""
        order = np.lexsort((row, part))
        start = np.searchsorted(part[order], np.arange(len(schedule) + 1))
        return cls(schedule=schedule, order=order, start=start, elsewhere=elsewhere, first_batch=first_batch)

    def parts(self) -> Iterator[Part]:
        """All parts of the schedule, also those without a visit here."""
        return map(self.part, range(len(self.schedule)))

    def part(self, i: int) -> Part:
        """One of the parts."""
        schedule, links = self.schedule, self.elsewhere
        known_from = np.minimum(links.shown_in.astype(np.int64) + 1, links.reread_in)
        shown = (links.shown_in == i - 1) if i else (links.shown_in < 0)
        mine = links.contested[links.contested_in == i]
        return Part(
            batch=int(schedule.batch[i]) - self.first_batch,
            visit=self.order[self.start[i] : self.start[i + 1]],
            is_last=bool(schedule.is_last[i]),
            ends_segment=i + 1 == len(schedule),
            began_at=int(schedule.began_at[i]),
            ended_at=int(schedule.ended_at[i]),
            n_visits=int(schedule.n_visits[i]),
            n_pages=int(schedule.n_pages[i]),
            known_elsewhere=links.link[known_from == i if i else known_from <= 0],
            contested=mine if links.is_contested_in[i] else None,
            elsewhere=(links.link[shown], links.first_at[shown]),
        )


@njit(cache=True)
def _cuts(row, batch, n_pages):  # type: ignore[no-untyped-def]
    """Where parts begin: with a batch, and where a page is visited again within one."""
    begin, n, last = np.empty(len(row), np.int64), 0, np.full(n_pages, -1, np.int64)
    for i in range(len(row)):
        if i == 0 or batch[i] != batch[i - 1] or last[row[i]] >= begin[n - 1]:
            begin[n] = i
            n += 1
        last[row[i]] = i
    return begin[:n]


def next_segment(
    stream: Stream,
    history: History,
    showings: Showings,
    rule: BatchRule,
    *,
    needs: frozenset[Need] = frozenset(),
    roots: Roots = DOMAINS,
) -> Segment:
    """Visits that come after those that the stream has followed, with what they showed."""
    at, page = showings.at, showings.page
    batch = np.searchsorted(rule.batch_ends(distinct_moments(at), stream.began), at)
    new_page, new_url, first_batch = _new_pages(stream, history, page, batch)
    row = places_of(np.concatenate([stream.page, new_page]), page)
    readable = np.flatnonzero(showings.links >= 0)
    of_visit, lists, link = numbered_lists(page[readable], showings.links[readable], showings.sets)
    lists, new_link = _renumbered(lists, link, stream.links)
    number = np.full(len(at), -1, np.int64)
    number[readable] = of_visit
    segment = Segment(
        at=at,
        row=row,
        outcome=showings.outcome,
        number=number,
        lists=lists,
        baseline=showings.baseline,
        changed=showings.changed,
        n_new_since=showings.n_new_since,
        updated=showings.updated,
        batch=batch,
        n_known=len(stream.page) + np.searchsorted(first_batch, np.arange(int(batch.max(initial=-1)) + 1), "right"),
        new_page=new_page,
        new_url=new_url,
        new_link=new_link,
        n_links_before=stream.n_links,
        roots=roots,
    )
    if Need.GRAPH in needs:
        pages, links = np.concatenate([stream.page, new_page]), np.concatenate([*stream.links, new_link])
        segment.page_of = places_of(pages, links).astype(np.int32)
    if showings.words is not None:
        segment.text, segment.words = _texts(stream, history, showings, showings.words)
    return segment


def _texts(stream: Stream, history: History, showings: Showings, digest: Ints) -> tuple[Ints32, sparse.csr_matrix]:
    """What pages said at some visits: a row of the counts; -1 where that is not known."""
    from recrawl.world.texts import StreamTexts

    stream.texts = stream.texts or StreamTexts()
    in_time = np.lexsort((showings.page, showings.at))
    text = np.empty(len(digest), np.int32)
    text[in_time], words = stream.texts.read(history, digest[in_time])
    return text, words


def _new_pages(stream: Stream, history: History, page: Ints, batch: Ints) -> tuple[Ints, pa.Array, Ints]:
    """The pages that become known, by their first batch and then by URL: ids, URLs, first batches."""
    ids, place = np.unique(page, return_inverse=True)
    first = np.full(len(ids), np.iinfo(np.int64).max)
    np.minimum.at(first, place, batch)
    is_new = places_of(stream.page, ids) < 0
    ids, first = ids[is_new], first[is_new]
    url = history.page_urls(ids).cast(pa.string())
    by_name = pc.sort_indices(url).to_numpy()
    order = by_name[np.argsort(first[by_name], kind="stable")]
    return ids[order], url.take(pa.array(order)), first[order]


def _renumbered(lists: LinkLists, link: Ints, known: list[Ints]) -> tuple[LinkLists, Ints]:
    """The lists with the numbers that links have in a stream; and the ids of links that are new to it."""
    n_known = sum(map(len, known))
    if not n_known or not len(link):
        return lists, link
    if n_known + len(link) >= 2**31:
        raise HistoryError(
            f"{n_known + len(link):,} links are more than can be numbered: leave hosts out of the history"
        )
    number = np.full(len(link), -1, np.int32)
    for low in range(0, len(link), AT_ONCE):  # a filter for all of them at once would be larger than they are
        some, n = IdFilter(link[low : low + AT_ONCE]), 0
        for run in known:
            place = some.places_in(run)
            np.copyto(number[low : low + AT_ONCE], n + place, where=place >= 0, casting="same_kind")
            n += len(run)
    is_new = number < 0
    number[is_new] = n_known + np.arange(int(is_new.sum()))
    links = number[lists.links]
    _sort_lists(lists.start, links)
    return LinkLists(lists.start, links), link[is_new]


@njit(cache=True)
def _sort_lists(start, links):  # type: ignore[no-untyped-def]
    for i in range(len(start) - 1):
        links[start[i] : start[i + 1]].sort()
