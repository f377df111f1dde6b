"""Which of the pages found so far to fetch first, when a collection is crawled for the first time."""

from __future__ import annotations

import heapq
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy import sparse

from recrawl.graph import Walk
from recrawl.policies.base import Floats, Ints
from recrawl.urls import host

GROWTH = 1.25  #: ranks are worked out anew whenever the pages fetched have grown by this factor …
MIN_GROWTH = 25  #: … and by so many pages


_FAR = 1 << 30  # depth of a page that was only numbered


Text = str | Counter[str]  #: what a page says, or how often it says each word


class Order(Protocol):
    """Says how promising pages are that nobody has seen yet."""

    needs_words: ClassVar[bool]  # whether it minds what pages say

    def fetched(self, page: int, links: list[int], text: Text) -> None:
        """A page was seen: the numbers of the pages it links to, and what it says."""

    def scores(self, pages: list[int]) -> list[float]:
        """How promising some pages are, by all that was seen so far."""

    def renewal(self) -> Callable[[], Any] | None:
        """What is to be worked out before all scores are renewed, if it is time for that; it may be done in another thread."""

    def renew(self, worked_out: Any) -> None:
        """Take in what was worked out: from now on scores are other ones."""


class NeverOutdated:
    """Of orders whose scores stay as they are."""

    needs_words: ClassVar[bool] = False

    def renewal(self) -> Callable[[], Any] | None:
        """Never."""
        return None

    def renew(self, worked_out: Any) -> None:
        """Nothing to take in."""


class ByRank:
    """PageRank × TrustRank of the pages found so far, kept up to date as the crawl goes.

    TrustRank restarts from the trusted pages. Between two updates a new page takes its share of the ranks of the pages that link to
    it. The walks go on from where they were, so an update takes few iterations.

    References: Dang and others (2023), section 4.1: the crawl is guided by PageRank × TrustRank, both updated dynamically.
    """

    needs_words: ClassVar[bool] = False

    def __init__(self, trusted: Iterable[int], damping: float = 0.85) -> None:
        self.trusted, self.damping = frozenset(trusted), damping
        self._from, self._to = array("q"), array("q")
        self._n_fetched = self._n_ranked = 0
        self._ranks = np.zeros((2, 0))
        self._given: defaultdict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])  # since the last update
        self._since: defaultdict[int, list[float]] | None = None  # the same, while the next one is worked out

    def fetched(self, page: int, links: list[int], text: Text) -> None:
        """Remember the links, and hand the page's ranks on to what it links to."""
        others = [link for link in dict.fromkeys(links) if link != page]
        self._from.extend([page] * len(others))
        self._to.extend(others)
        self._n_fetched += 1
        ranks = self._both([page])[:, 0]
        shares = (self.damping * ranks / max(len(others), 1)).tolist()
        for given in (self._given, self._since):
            for link in others if given is not None else ():
                given[link][0] += shares[0]  # type: ignore[index]
                given[link][1] += shares[1]  # type: ignore[index]

    def scores(self, pages: list[int]) -> list[float]:
        """The products of both ranks."""
        found: list[float] = self._both(pages).prod(axis=0).tolist()
        return found

    def _both(self, pages: list[int]) -> Floats:
        """Both ranks of some pages: as worked out, with what they were given since; of others what a restart gives, at least."""
        page, width = np.asarray(pages, np.int64), self._ranks.shape[1]
        known = np.zeros((2, len(page)))
        known[:, page < width] = self._ranks[:, page[page < width]]
        nothing = (0.0, 0.0)
        given = np.array([self._given.get(one, nothing) for one in pages]).reshape(-1, 2).T
        own = np.array([np.ones(len(page)), [one in self.trusted for one in pages]])
        ranks: Floats = np.where(known > 0, known + given, np.maximum(given, (1 - self.damping) * own))
        return ranks

    def renewal(self) -> Callable[[], Any] | None:
        """After a quarter more pages, unless the last one is still being worked out."""
        is_time = self._n_fetched >= max(self._n_ranked * GROWTH, self._n_ranked + MIN_GROWTH)
        if not is_time or self._since is not None:
            return None
        self._since = defaultdict(lambda: [0.0, 0.0])
        links = np.array(self._from), np.array(self._to)
        return partial(self._worked_out, *links, self._ranks, self._n_fetched)

    def renew(self, worked_out: tuple[Floats, int]) -> None:
        """The ranks, and for how many pages they were worked out."""
        assert self._since is not None
        (self._ranks, self._n_ranked), self._given, self._since = worked_out, self._since, None

    def _worked_out(self, out_of: Ints, into: Ints, before: Floats, n_fetched: int) -> tuple[Floats, int]:
        n = 1 + max(int(out_of.max(initial=0)), int(into.max(initial=0)), max(self.trusted, default=0))
        links = sparse.csr_array((np.ones(len(out_of)), (out_of, into)), shape=(n, n))
        restarts = np.full(n, 1.0 / n), np.bincount(sorted(self.trusted), minlength=n) / max(len(self.trusted), 1)
        ranks = np.empty((2, n))
        for kind, restart in enumerate(restarts):
            walk = Walk(restart, self.damping, 1e-4, 50)
            earlier = np.append(before[kind], np.zeros(n - before.shape[1]))
            if earlier.sum() > 0:
                walk.visits = earlier / earlier.sum()
            ranks[kind] = walk.follow(links)
        return ranks, n_fetched


class ByRelevance(NeverOutdated):
    """How relevant the pages are that link to a page, on average: a focused crawl.

    `judge` gives the relevance of a text, from 0 to 1, as `recrawl relevance` learns it.

    References: Chakrabarti, van den Berg and Dom (1999): the relevance of a page is a guess at that of its neighbours.
    """

    needs_words: ClassVar[bool] = True

    def __init__(self, judge: Callable[[Text], float]) -> None:
        self.judge = judge
        self._sums: defaultdict[int, float] = defaultdict(float)
        self._counts: defaultdict[int, int] = defaultdict(int)
        self.relevance: dict[int, float] = {}  # of pages seen

    def fetched(self, page: int, links: list[int], text: Text) -> None:
        """Judge the page, and let its links take after it."""
        self.relevance[page] = relevance = self.judge(text)
        for link in dict.fromkeys(links):
            self._sums[link] += relevance
            self._counts[link] += 1

    def scores(self, pages: list[int]) -> list[float]:
        """The mean over the pages that link to each; 1 for seeds."""
        return [self._sums[page] / self._counts[page] if self._counts[page] else 1.0 for page in pages]


class BreadthFirst(NeverOutdated):
    """In the order in which they were found."""

    def fetched(self, page: int, links: list[int], text: Text) -> None:
        """Nothing to learn."""

    def scores(self, pages: list[int]) -> list[float]:
        """The lower the number, the earlier it was found."""
        return [-float(page) for page in pages]


@dataclass(frozen=True)
class Limits:
    """How far a first crawl goes."""

    pages: int = 1_000
    depth: int | None = None  # links away from the seeds
    per_host: int | None = None


@dataclass
class Frontier:
    """Pages that were found and not fetched yet, the most promising first; `allowed` tells which may be fetched at all.

    At most `at_once` pages of a host are given out before one of them came back, so that a slow host does not hold up the others.

    >>> frontier = Frontier(BreadthFirst(), Limits(pages=3))
    >>> frontier.add(["https://a.org/", "https://b.org/"], depth=0)
    >>> first = frontier.take()
    >>> frontier.done(first, ["https://a.org/1", "https://b.org/"], "")
    >>> first, frontier.take(), frontier.take(), frontier.take()
    ('https://a.org/', 'https://b.org/', 'https://a.org/1', None)
    """

    order: Order
    limits: Limits
    allowed: Callable[[str], bool] = lambda url: True
    at_once: int = 2
    n_given: int = 0
    _number: dict[str, int] = field(default_factory=dict)  # every page found
    _url: list[str] = field(default_factory=list)
    _depth: list[int] = field(default_factory=list)
    _open: dict[int, float] = field(default_factory=dict)  # found, may be fetched, not given out → its place, -score
    _taken: set[int] = field(default_factory=set)
    _heap: list[tuple[float, int]] = field(default_factory=list)  # (-score, page); stale unless `_open` says the same
    _held: defaultdict[str, list[tuple[float, int]]] = field(default_factory=lambda: defaultdict(list))  # of busy hosts
    _busy: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    _n_under_way: int = 0
    _per_host: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def n_under_way(self) -> int:
        """Pages given out that did not come back yet."""
        return self._n_under_way

    @property
    def seeds(self) -> list[str]:
        """Where the crawl begins."""
        return [url for url, depth in zip(self._url, self._depth, strict=True) if depth == 0]

    def number(self, url: str) -> int:
        """The number of a page, found now or before."""
        if url not in self._number:
            self._number[url] = len(self._url)
            self._url.append(url)
            self._depth.append(_FAR)
        return self._number[url]

    def add(self, urls: Iterable[str], depth: int) -> None:
        """Pages were found, so many links away from the seeds."""
        found = []
        for url in dict.fromkeys(urls):
            page = self.number(url)
            self._depth[page] = min(self._depth[page], depth)
            if page not in self._taken and (page in self._open or self._may(url, depth)):
                found.append(page)
        for page, score in zip(found, self.order.scores(found), strict=True):
            if self._open.get(page) != -score:
                self._open[page] = -score
                heapq.heappush(self._heap, (-score, page))

    def take(self) -> str | None:
        """The best page that may be fetched now; None where there is none, or the limit is reached."""
        if self.n_given >= self.limits.pages:
            return None
        while self._heap:
            entry = heapq.heappop(self._heap)
            page = entry[1]
            if self._open.get(page) != entry[0]:
                continue
            url = self._url[page]
            name = host(url)
            if self._busy[name] >= self.at_once:
                self._held[name].append(entry)
                continue
            if self.limits.per_host is not None and self._per_host[name] >= self.limits.per_host:
                if self._busy[name]:  # which may turn out not to count
                    self._held[name].append(entry)
                else:
                    del self._open[page]
                    self._taken.add(page)
                continue
            del self._open[page]
            self._taken.add(page)
            self._busy[name] += 1
            self._n_under_way += 1
            self._per_host[name] += 1
            self.n_given += 1
            return url
        return None

    def visited(self, url: str, links: Iterable[str] = (), text: Text = "") -> bool:
        """A page was fetched before this crawl began: as if it had been given out and come back; whether it was one of ours."""
        page = self._number.get(url, -1)
        is_ours = page in self._open
        if is_ours:
            del self._open[page]
            self._taken.add(page)
            self._per_host[host(url)] += 1
            self.n_given += 1
        if page in self._taken:
            self.done(url, links, text)
        return is_ours

    def done(self, url: str, links: Iterable[str] = (), text: Text = "") -> None:
        """A page came back, with these links; none if it failed."""
        page, name = self._number[url], host(url)
        if self._busy[name]:
            self._busy[name] -= 1
            self._n_under_way -= 1
        for entry in self._held.pop(name, ()):
            heapq.heappush(self._heap, entry)
        links = list(dict.fromkeys(links))
        self.order.fetched(page, [self.number(link) for link in links], text)
        self.add(links, self._depth[page] + 1)
        if (work := self.order.renewal()) is not None:
            self.renewing(work)

    def renewing(self, work: Callable[[], Any]) -> None:
        """Work out what the order needs, and renew all scores; a crawl does the first part in another thread."""
        self.renewed(work())

    def renewed(self, worked_out: Any) -> None:
        """Put all pages that wait in their new order."""
        self.order.renew(worked_out)
        pages = sorted(self._open)
        self._open = {page: -score for page, score in zip(pages, self.order.scores(pages), strict=True)}
        self._heap = [(place, page) for page, place in self._open.items()]
        heapq.heapify(self._heap)
        self._held.clear()

    def not_asked(self, url: str) -> None:
        """A page was not fetched after all, since nobody may: it counts towards no limit."""
        self.n_given -= 1
        self._per_host[host(url)] -= 1
        self.done(url)

    def _may(self, url: str, depth: int) -> bool:
        return (self.limits.depth is None or depth <= self.limits.depth) and self.allowed(url)
