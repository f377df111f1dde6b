"""Which new links a crawl follows, and which of the pages behind them are worth watching."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from recrawl.core.arrays import Flags, Ints
from recrawl.crawl.scope import Scope
from recrawl.models.link_relevance import RELEVANT
from recrawl.plan.planner import matching
from recrawl.web.urls import host, page_id


@dataclass(frozen=True)
class Known:
    """What was known before a crawl: the ids of all links that any page had shown and of all pages, each ascending."""

    links: Ints
    pages: Ints

    def new(self, urls: Iterable[str]) -> dict[str, int]:
        """The URLs that are neither, with their ids."""
        ids = {url: page_id(url) for url in urls}
        wanted = np.fromiter(ids.values(), np.int64, len(ids))
        is_new = ~_among(self.links, wanted) & ~_among(self.pages, wanted)
        return {url: page for (url, page), new in zip(ids.items(), is_new.tolist(), strict=True) if new}


def _among(ascending: Ints, wanted: Ints) -> Flags:
    """Which ids are among some others: a search for each, since a page has few links and a history has many."""
    if not len(ascending):
        return np.zeros(len(wanted), np.bool_)
    at = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    is_there: Flags = ascending[at] == wanted
    return is_there


@dataclass(frozen=True)
class FollowLimits:
    """How many new links are followed, and which not at all."""

    pages: int
    per_host: int | None = None
    exclude: tuple[str, ...] = ()  # prefixes and patterns, as plans take them


@dataclass(frozen=True, kw_only=True)
class Followed:
    """A page that was fetched because a new link led there, and what it brought."""

    url: str
    new_links: int  # in scope, shown by no planned page and by no hub that brought more
    relevance: float | None  # None: not judged
    is_hub: bool  # worth watching


@dataclass
class Follower:
    """Collects the new links of planned pages, picks those to fetch, and judges the pages behind them.

    A page is a hub if it brings at least `adopt` new links itself, and is relevant where that is judged. New links that several
    pages share count for the one that brings most, so that a new menu on every article makes at most one of them a hub.

    >>> known = Known(links=np.empty(0, np.int64), pages=np.array([page_id("https://e.org/")]))
    >>> follower = Follower(known, Scope(), FollowLimits(pages=2), adopt=2)
    >>> follower.found("https://e.org/", ["https://e.org/a", "https://e.org/b", "https://other.org/"])
    >>> follower.take()
    ['https://e.org/a', 'https://e.org/b']
    >>> follower.fetched("https://e.org/a", ["https://e.org/1", "https://e.org/2"])
    >>> follower.fetched("https://e.org/b", ["https://e.org/1", "https://e.org/"])
    >>> [(page.url, page.new_links, page.is_hub) for page in follower.judged()]
    [('https://e.org/a', 2, True), ('https://e.org/b', 0, False)]

    References: Pham, Santos and Freire (2018), Algorithm 1, line 7, and section 5.1: pages with most relevant outlinks are seeds.
    """

    known: Known
    scope: Scope
    limits: FollowLimits
    adopt: int = 10
    redirected: set[str] = field(default_factory=set)  # pages that followed links led on to
    _found: dict[str, list[float]] = field(default_factory=dict)  # new link → relevance of the pages that show it
    _found_ids: set[int] = field(default_factory=set)  # of all new links of planned pages, in scope or not
    _taken: set[str] = field(default_factory=set)
    _left: list[str] = field(default_factory=list)  # taken by a crawl that was interrupted before it fetched them
    _brought: dict[str, set[int]] = field(default_factory=dict)  # followed page → new links it shows
    _relevance: dict[str, float | None] = field(default_factory=dict)
    _per_host: Counter[str] = field(default_factory=Counter)

    def found(self, page: str, links: Iterable[str], relevance: float | None = None) -> None:
        """A planned page showed these links."""
        for link, number in self.known.new(links).items():
            self._found_ids.add(number)
            if link not in self._taken and self.scope.has(link, page):
                self._found.setdefault(link, []).append(0.0 if relevance is None else relevance)

    def resume(self, done: Iterable[str], left: Iterable[str]) -> None:
        """Continue an interrupted crawl: it had taken these links, and had fetched some of them."""
        taken = list(left)
        excluded = matching(pa.array(taken, pa.string()), self.limits.exclude).tolist()
        self._left = [url for url, is_excluded in zip(taken, excluded, strict=True) if not is_excluded]
        for url in (*done, *taken):
            self._found.pop(url, None)
            self._taken.add(url)
            self._per_host[host(url)] += 1

    @property
    def n_left(self) -> int:
        """Links that are to be fetched now, and were not taken yet."""
        return len(self._left) + len(list(self._allowed(self._in_order())))

    @property
    def n_waiting(self) -> int:
        """New links in scope that were found and not taken yet."""
        return len(self._found)

    def take(self) -> list[str]:
        """The links to fetch now, within the limits: those on the most relevant pages first, else spread over the hosts.

        References: Chakrabarti, van den Berg and Dom (1999): the relevance of a page predicts that of the pages it links to.
        """
        taken = list(self._allowed(self._in_order()))
        for url in taken:
            del self._found[url]
        self._taken.update(taken)
        self._per_host.update(map(host, taken))
        left, self._left = self._left, []
        return [*left, *taken]

    def _in_order(self) -> list[str]:
        place: defaultdict[str, int] = defaultdict(int)
        ranked = []
        for i, (url, relevance) in enumerate(self._found.items()):
            name = host(url)
            ranked.append((-sum(relevance) / len(relevance), place[name], i, url))
            place[name] += 1
        return [url for *_, url in sorted(ranked)]

    def _allowed(self, urls: list[str]) -> Iterator[str]:
        left, per_host = self.limits.pages - len(self._taken), self._per_host.copy()
        excluded = matching(pa.array(urls, pa.string()), self.limits.exclude).tolist()
        for url, is_excluded in zip(urls, excluded, strict=True):
            is_full = self.limits.per_host is not None and per_host[host(url)] >= self.limits.per_host
            if left > 0 and not is_excluded and not is_full:
                left -= 1
                per_host[host(url)] += 1
                yield url

    def may_redirect(self, target: str, page: str) -> bool:
        """Whether a followed link may lead on to another page: to one in scope that was not known."""
        may = self.scope.has(target, page) and bool(self.known.new([target]))
        if may:
            self.redirected.add(target)
        return may

    def fetched(self, page: str, links: Iterable[str], relevance: float | None = None) -> None:
        """A followed page showed these links."""
        new = self.known.new(links)
        self._brought[page] = {number for link, number in new.items() if self.scope.has(link, page)}
        self._relevance[page] = relevance

    def judged(self) -> list[Followed]:
        """Every followed page that showed its links, those that brought most first."""
        covered = set(self._found_ids)
        heap = [(-len(new - covered), page) for page, new in self._brought.items()]
        heapq.heapify(heap)
        judged = []
        while heap:
            claimed, page = heapq.heappop(heap)
            own = self._brought[page] - covered
            if len(own) < -claimed:  # others have brought some of them meanwhile
                heapq.heappush(heap, (-len(own), page))
                continue
            judged.append(self._judgement(page, len(own)))
            if judged[-1].is_hub:
                covered |= own
        return judged

    def _judgement(self, page: str, n_new: int) -> Followed:
        relevance = self._relevance[page]
        is_relevant = relevance is None or relevance > RELEVANT
        return Followed(url=page, new_links=n_new, relevance=relevance, is_hub=is_relevant and n_new >= self.adopt)
