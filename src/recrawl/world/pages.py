"""What is known of every page, what a batch of visits showed, and what a policy may ask for beyond that."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints, Ints8, Ints32, LinkLists
from recrawl.core.growing import grown
from recrawl.core.times import NEVER, US_PER_HOUR, microseconds
from recrawl.core.whole import ONE_PIECE, Whole

if TYPE_CHECKING:
    from scipy import sparse

    from recrawl.world.related import Related


class Need(Enum):
    """What a policy needs in its pages and visits beyond the usual; each takes time to work out."""

    RELATED = "related"  # `Pages.related`: pages with similar text
    UPDATES = "updates"  # `Visits.updated`: whether a link was never before on the page
    SIGNALS = "signals"  # `Pages.signals`: changes that sitemaps and feeds name
    WORDS = "words"  # `Visits.text` and `Visits.words`: what pages say
    GRAPH = "graph"  # `Visits.leads_to`: which pages link to which
    FUTURE = "future"  # `Pages.future`: only in a replay, for upper bounds that no real crawler could reach


class Future(Protocol):
    """What the next cycle will show; only a replay knows."""

    def unseen_links(self) -> LinkLists:
        """The links of each page that the crawler does not know yet."""

    def renewable(self) -> tuple[Flags, Ints]:
        """Which copies a visit would bring up to date, and for how many cycles they would stay so."""


@dataclass(frozen=True, kw_only=True)
class Signals:
    """Changes that are signalled without a visit, by sitemaps or feeds: one entry per page."""

    is_complete: Flags  # nearly all changes of the page are signalled, as far as the record of its host shows
    changed_at: Ints  # microseconds, UTC: the last change that was signalled; NEVER
    n_changes: Ints  # signalled so far
    days: Floats  # for which changes could be signalled


@dataclass
class Pages:
    """What is known of every page that may be chosen: one entry per page, in the order in which they became known.

    More pages become known as a crawl goes on; they are added at the end, so that the number of a page never changes.
    """

    not_kept: ClassVar[tuple[str, ...]] = ("related", "future", "signals", "importance", "part_of")

    site: Ints  # small numbers: pages under one root share one, usually those of a registered domain
    host: Ints
    last_visit: Ints  # microseconds, UTC: the last time it was fetched, successfully or not; NEVER
    n_visits: Ints  # fetches
    n_answers: Ints  # fetches that showed its links
    n_failures: Ints  # in a row, up to now
    is_gone: Flags  # its last answer was 404 or 410
    related: Related | None = None  # pages with similar text, if texts are known
    #: Groups of pages with similar URLs, as small numbers: one array by folder, one by file name.
    url_groups: tuple[Ints, ...] = ()
    depth: Ints | None = None  # names in the path below the root of the site; None: not known
    importance: Floats | None = (
        None  # how much each page matters, from 0 up, as known by now; None: all alike, which is 1
    )
    ids: Ints | None = None  # in the history, as good as random; None: the numbers of the pages

    def __post_init__(self) -> None:
        # Where these are some of a collection's pages: the whole, and how many others there are. None: these are all.
        self.part_of: Whole | None = None
        self.n_others = 0
        self.future: Future | None = None  # None unless a policy needs it
        self.signals: Signals | None = None  # None unless a policy needs them and there are any

    @classmethod
    def unseen(
        cls,
        site: Ints,
        host: Ints,
        *,
        related: Related | None = None,
        url_groups: tuple[Ints, ...] = (),
    ) -> Pages:
        """Pages that were never visited."""
        n = len(site)
        return cls(
            site=site,
            host=host,
            last_visit=np.full(n, NEVER),
            n_visits=np.zeros(n, np.int64),
            n_answers=np.zeros(n, np.int64),
            n_failures=np.zeros(n, np.int64),
            is_gone=np.zeros(n, np.bool_),
            related=related,
            url_groups=url_groups,
        )

    def extend(
        self,
        site: Ints,
        host: Ints,
        url_groups: tuple[Ints, ...] = (),
        depth: Ints | None = None,
        ids: Ints | None = None,
    ) -> None:
        """More pages are known: sites, hosts, groups, depths and ids are those of all pages, the new ones at the end."""
        self.site, self.host, self.url_groups, self.depth, self.ids = site, host, url_groups, depth, ids
        n = len(site)
        self.last_visit = grown(self.last_visit, n, NEVER)
        for name in ("n_visits", "n_answers", "n_failures", "is_gone"):
            setattr(self, name, grown(getattr(self, name), n))
        if self.importance is not None:
            self.importance = grown(self.importance, n, 1.0)

    def __len__(self) -> int:
        return len(self.site)

    @property
    def whole(self) -> Whole:
        """The collection that these pages are, or belong to."""
        return self.part_of or ONE_PIECE

    @property
    def keys(self) -> Ints:
        """A number for every page that is the same in whatever part of a collection it is."""
        return np.arange(len(self)) if self.ids is None else self.ids

    @property
    def n_of_whole(self) -> int:
        """How many pages the collection has."""
        return len(self) + self.n_others

    @property
    def is_new(self) -> Flags:
        """Fetched at most once: how it changes is not known yet."""
        return self.n_visits < 2

    def weighed(self, worth: Floats) -> Floats:
        """What visits are worth, times how much each page matters. Of values below 0 the important ones are the better ones, too.

        >>> pages = Pages.unseen(site=np.arange(3), host=np.arange(3))
        >>> pages.importance = np.array([1.0, 4.0, 4.0])
        >>> pages.weighed(np.array([3.0, 2.0, -2.0]))
        array([ 3. , 8. , -0.5])
        """
        if self.importance is None:
            return worth
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(worth < 0, worth / self.importance, worth * self.importance)

    def unweighed(self) -> Pages:
        """The same pages as if all mattered alike."""
        if self.importance is None:
            return self
        alike = copy.copy(self)
        alike.importance = None
        return alike

    def age_hours(self, now: datetime) -> Floats:
        """Hours since each page was last fetched; infinite where it never was, never negative."""
        return hours_between(self.last_visit, np.int64(microseconds(now)))

    def note(self, visits: Visits) -> None:
        """Remember that these visits were made."""
        page = visits.page
        self.last_visit[page] = np.maximum(self.last_visit[page], visits.at)
        self.n_visits[page] += 1
        self.n_answers[page] += visits.answered
        self.n_failures[page] = np.where(visits.failed, self.n_failures[page] + 1, 0)
        self.is_gone[page] = visits.gone | (self.is_gone[page] & visits.failed)


def hours_between(since: Ints, until: Ints | np.int64) -> Floats:
    """Hours between moments in microseconds; infinite where the first is NEVER, never negative.

    >>> hours_between(np.array([0, NEVER]), np.int64(7_200_000_000))
    array([ 2., inf])
    """
    waited = (until - np.where(since == NEVER, 0, since)) / US_PER_HOUR
    return np.where(since == NEVER, np.inf, np.maximum(waited, 0.0))


@dataclass(frozen=True, kw_only=True)
class Visits:
    """What a batch of visits showed: one entry per visit. No page is in a batch twice."""

    at: Ints  # microseconds, UTC: when each visit was made
    ended_at: datetime  # UTC, aware: when the batch ended; no visit is later
    page: Ints  # index into Pages, ascending
    age_hours: Floats  # since the page was last fetched; infinite: never before
    is_first: Flags  # it had never been fetched before, so nothing on it can be called new
    answered: Flags  # its links were seen
    gone: Flags
    failed: Flags  # no answer, or not known what it would have been
    #: 1: text or links differ from the last copy seen (or as the notion of change says); 0: no; -1: nothing to compare with
    changed: Ints8
    n_new_since: Ints32  # links that the last copy seen did not have; -1: nothing to compare with
    #: 1: a link never before seen on this page; 0: none; -1: nothing to compare with, or no policy needs it
    updated: Ints8
    shown: LinkLists  # all links
    new: LinkLists  # links that no page had shown before this batch; a link is listed for each page that shows it
    n_found: int  # the same, every link once
    text: Ints32 | None = None  # what each page said: a row of `words`; -1: not known. None: no policy needs it
    words: sparse.csr_matrix | None = None  # counts [text, word]; the numbers of texts and words never change
    leads_to: LinkLists | None = None  # the links to pages that are known, by their numbers. None: no policy needs it
    #: The `memo` of the choice that these visits were made for; None: this policy did not choose them.
    memo: Mapping[str, float] | None = None
    whole: Whole = ONE_PIECE  # the batch that these visits are, or belong to
    n_others: int = 0  # visits that belong to it as well
    began_at: int | None = None  # microseconds: the first visit of the batch; None: the first one of these
    #: New links that pages of other parts show in this batch as well. None: there is no such link in any part.
    contested: Ints32 | None = None
    elsewhere: tuple[Ints32, Ints] | None = (
        None  # links that pages of other parts showed since the last batch; when, first
    )

    def __len__(self) -> int:
        return len(self.page)

    @property
    def n_of_whole(self) -> int:
        """How many visits the batch has."""
        return len(self) + self.n_others

    @property
    def came(self) -> Flags:
        """The page itself came back, whether its links could be read or not: enough to see whether it changed."""
        return ~self.failed & ~self.gone

    @property
    def n_new(self) -> Ints:
        """New links of each visit: |O(s)| of Pham, Santos and Freire (2018)."""
        return self.new.sizes
