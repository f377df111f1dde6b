"""The frontier of a first crawl: which of the pages found so far to fetch next."""

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

from recrawl.core.arrays import Floats, Ints
from recrawl.insight.graph import Walk
from recrawl.web.urls import host

#: Ranks are computed again when the number of fetched pages has grown by this factor and by at least `MIN_GROWTH`.
GROWTH = 1.25
MIN_GROWTH = 25

_UNREACHED = 1 << 30  # depth of a page that has a number but was not found on any page yet

Text = str | Counter[str]  #: a page's text, or the count of each of its words


class Order(Protocol):
    """Scores the pages that are not fetched yet."""

    needs_words: ClassVar[bool]  # whether it reads the text of pages

    def observe(self, page: int, links: list[int], text: Text) -> None:
        """Learn from a fetched page: the numbers of the pages it links to, and its text."""

    def scores(self, pages: list[int]) -> list[float]:
        """The score of each page, from all pages observed so far; higher is better."""

    def update_task(self) -> Callable[[], Any] | None:
        """The computation that a renewal of all scores needs, if one is due. It may run in another thread."""

    def apply_update(self, result: Any) -> None:
        """Use the result of that computation: from now on `scores` returns new values."""


class FixedScores:
    """Base of orders that never have to score all pages again."""

    needs_words: ClassVar[bool] = False

    def update_task(self) -> Callable[[], Any] | None:
        """Nothing to compute."""
        return None

    def apply_update(self, result: Any) -> None:
        """Nothing to apply."""


class ByRank:
    """PageRank × TrustRank of the pages found so far, updated during the crawl.

    TrustRank restarts from the trusted pages. Between two updates a new page receives its share of the ranks of the pages that
    link to it. The walks continue from their last result, so an update takes few iterations.

    References: Dang and others (2023), section 4.1: the crawl is guided by PageRank × TrustRank, both updated dynamically.
    """

    needs_words: ClassVar[bool] = False

    def __init__(self, trusted: Iterable[int], damping: float = 0.85) -> None:
        self.trusted, self.damping = frozenset(trusted), damping
        self._from, self._to = array("q"), array("q")
        self._n_fetched = self._n_ranked = 0
        self._ranks = np.zeros((2, 0))
        self._received: defaultdict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])  # since the last update
        #: Received since the running update began; None if no update is running.
        self._received_meanwhile: defaultdict[int, list[float]] | None = None

    def observe(self, page: int, links: list[int], text: Text) -> None:
        """Remember the links, and pass the page's ranks on to the pages it links to."""
        others = [link for link in dict.fromkeys(links) if link != page]
        self._from.extend([page] * len(others))
        self._to.extend(others)
        self._n_fetched += 1
        ranks = self._both([page])[:, 0]
        shares = (self.damping * ranks / max(len(others), 1)).tolist()
        for received in (self._received, self._received_meanwhile):
            if received is not None:
                for link in others:
                    received[link][0] += shares[0]
                    received[link][1] += shares[1]

    def scores(self, pages: list[int]) -> list[float]:
        """The products of both ranks."""
        products: list[float] = self._both(pages).prod(axis=0).tolist()
        return products

    def _both(self, pages: list[int]) -> Floats:
        """Both ranks of some pages: the last computed ones plus what they received since; at least what a restart gives."""
        page, width = np.asarray(pages, np.int64), self._ranks.shape[1]
        computed = np.zeros((2, len(page)))
        computed[:, page < width] = self._ranks[:, page[page < width]]
        nothing = (0.0, 0.0)
        received = np.array([self._received.get(number, nothing) for number in pages]).reshape(-1, 2).T
        restart = np.array([np.ones(len(page)), [number in self.trusted for number in pages]])
        at_least = np.maximum(received, (1 - self.damping) * restart)
        ranks: Floats = np.where(computed > 0, computed + received, at_least)
        return ranks

    def update_task(self) -> Callable[[], Any] | None:
        """Compute the ranks again after a quarter more pages, unless that is already running."""
        is_due = self._n_fetched >= max(self._n_ranked * GROWTH, self._n_ranked + MIN_GROWTH)
        if not is_due or self._received_meanwhile is not None:
            return None
        self._received_meanwhile = defaultdict(lambda: [0.0, 0.0])
        links = np.array(self._from), np.array(self._to)
        return partial(self._computed, *links, self._ranks, self._n_fetched)

    def apply_update(self, result: tuple[Floats, int]) -> None:
        """Use new ranks; the result also says from how many fetched pages they were computed."""
        assert self._received_meanwhile is not None
        self._ranks, self._n_ranked = result
        self._received, self._received_meanwhile = self._received_meanwhile, None

    def _computed(self, source: Ints, target: Ints, before: Floats, n_fetched: int) -> tuple[Floats, int]:
        n = 1 + max(int(source.max(initial=0)), int(target.max(initial=0)), max(self.trusted, default=0))
        links = sparse.csr_array((np.ones(len(source)), (source, target)), shape=(n, n))
        restarts = np.full(n, 1.0 / n), np.bincount(sorted(self.trusted), minlength=n) / max(len(self.trusted), 1)
        ranks = np.empty((2, n))
        for kind, restart in enumerate(restarts):
            walk = Walk(restart, self.damping, 1e-4, 50)
            earlier = np.append(before[kind], np.zeros(n - before.shape[1]))
            if earlier.sum() > 0:
                walk.visits = earlier / earlier.sum()
            ranks[kind] = walk.follow(links)
        return ranks, n_fetched


class ByRelevance(FixedScores):
    """Mean relevance of the pages that link to a page: a focused crawl.

    `judge` returns the relevance of a text, from 0 to 1, such as a classifier of `recrawl relevance`.

    References: Chakrabarti, van den Berg and Dom (1999): the relevance of a page predicts that of the pages it links to.
    """

    needs_words: ClassVar[bool] = True

    def __init__(self, judge: Callable[[Text], float]) -> None:
        self.judge = judge
        self._sums: defaultdict[int, float] = defaultdict(float)
        self._counts: defaultdict[int, int] = defaultdict(int)
        self.relevance: dict[int, float] = {}  # of fetched pages

    def observe(self, page: int, links: list[int], text: Text) -> None:
        """Judge the page, and add its relevance to the scores of its links."""
        self.relevance[page] = relevance = self.judge(text)
        for link in dict.fromkeys(links):
            self._sums[link] += relevance
            self._counts[link] += 1

    def scores(self, pages: list[int]) -> list[float]:
        """The mean over the pages that link to each page; 1 for seeds."""
        return [self._sums[page] / self._counts[page] if self._counts[page] else 1.0 for page in pages]


class BreadthFirst(FixedScores):
    """The order in which the pages were found."""

    def observe(self, page: int, links: list[int], text: Text) -> None:
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
    """Pages that were found and not fetched yet, the highest score first; `allowed` says which may be fetched at all.

    At most `host_concurrency` pages of a host are in progress at a time, so that a slow host does not hold up the others.

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
    host_concurrency: int = 2
    n_taken: int = 0
    _number: dict[str, int] = field(default_factory=dict)  # every page found
    _url: list[str] = field(default_factory=list)
    _depth: list[int] = field(default_factory=list)
    _open: dict[int, float] = field(default_factory=dict)  # pages that wait → -score
    _taken: set[int] = field(default_factory=set)
    _heap: list[tuple[float, int]] = field(default_factory=list)  # (-score, page); stale unless `_open` agrees
    _held: defaultdict[str, list[tuple[float, int]]] = field(default_factory=lambda: defaultdict(list))  # of busy hosts
    _busy: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))  # host → pages in progress
    _n_in_progress: int = 0
    _per_host: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))  # host → pages taken

    @property
    def n_in_progress(self) -> int:
        """Pages taken that are not done yet."""
        return self._n_in_progress

    @property
    def seeds(self) -> list[str]:
        """The pages at which the crawl begins."""
        return [url for url, depth in zip(self._url, self._depth, strict=True) if depth == 0]

    def number(self, url: str) -> int:
        """The number of a page; a new one if the page has none yet."""
        if url not in self._number:
            self._number[url] = len(self._url)
            self._url.append(url)
            self._depth.append(_UNREACHED)
        return self._number[url]

    def add(self, urls: Iterable[str], depth: int) -> None:
        """Add pages found `depth` links away from the seeds."""
        waiting = []
        for url in dict.fromkeys(urls):
            page = self.number(url)
            self._depth[page] = min(self._depth[page], depth)
            if page not in self._taken and (page in self._open or self._may(url, depth)):
                waiting.append(page)
        for page, score in zip(waiting, self.order.scores(waiting), strict=True):
            if self._open.get(page) != -score:
                self._open[page] = -score
                heapq.heappush(self._heap, (-score, page))

    def take(self) -> str | None:
        """The best page that may be fetched now; None if there is none or the limit is reached."""
        if self.n_taken >= self.limits.pages:
            return None
        while self._heap:
            entry = heapq.heappop(self._heap)
            page = entry[1]
            if self._open.get(page) != entry[0]:
                continue
            url = self._url[page]
            name = host(url)
            if self._busy[name] >= self.host_concurrency:
                self._held[name].append(entry)
                continue
            if self.limits.per_host is not None and self._per_host[name] >= self.limits.per_host:
                if self._busy[name]:  # a page in progress may turn out not to count
                    self._held[name].append(entry)
                else:
                    del self._open[page]
                    self._taken.add(page)
                continue
            del self._open[page]
            self._taken.add(page)
            self._busy[name] += 1
            self._n_in_progress += 1
            self._per_host[name] += 1
            self.n_taken += 1
            return url
        return None

    def restore(self, url: str, links: Iterable[str] = (), text: Text = "") -> bool:
        """Count a page that an interrupted crawl has fetched as taken and done; whether it was waiting."""
        page = self._number.get(url, -1)
        was_waiting = page in self._open
        if was_waiting:
            del self._open[page]
            self._taken.add(page)
            self._per_host[host(url)] += 1
            self.n_taken += 1
        if page in self._taken:
            self.done(url, links, text)
        return was_waiting

    def done(self, url: str, links: Iterable[str] = (), text: Text = "") -> None:
        """A page was fetched and showed these links; none if it failed."""
        page, name = self._number[url], host(url)
        if self._busy[name]:
            self._busy[name] -= 1
            self._n_in_progress -= 1
        for entry in self._held.pop(name, ()):
            heapq.heappush(self._heap, entry)
        links = list(dict.fromkeys(links))
        self.order.observe(page, [self.number(link) for link in links], text)
        self.add(links, self._depth[page] + 1)
        if (task := self.order.update_task()) is not None:
            self.run_update(task)

    def run_update(self, task: Callable[[], Any]) -> None:
        """Compute what the order needs and score all pages again. A crawl replaces this, to compute in another thread."""
        self.apply_update(task())

    def apply_update(self, result: Any) -> None:
        """Put all waiting pages in their new order."""
        self.order.apply_update(result)
        pages = sorted(self._open)
        self._open = {page: -score for page, score in zip(pages, self.order.scores(pages), strict=True)}
        self._heap = [(place, page) for page, place in self._open.items()]
        heapq.heapify(self._heap)
        self._held.clear()

    def not_requested(self, url: str) -> None:
        """A page was not fetched after all, because robots.txt forbids it: it counts towards no limit."""
        self.n_taken -= 1
        self._per_host[host(url)] -= 1
        self.done(url)

    def _may(self, url: str, depth: int) -> bool:
        return (self.limits.depth is None or depth <= self.limits.depth) and self.allowed(url)
