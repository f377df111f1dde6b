"""The replay of paper 002 in plain Python: dicts, sets and loops, written from the definitions and not from the package.

Pages are named by their URLs, links too. Where the paper is silent the rules are those of the documentation: pages fetched at
most once come first, ties go by name, and what overlap leaves of a budget is filled up.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from sklearn.linear_model import LinearRegression


@dataclass
class SlowWorld:
    """`shown[t][page]`: the links that a page showed in cycle t; None: it was fetched and did not show any; absent: no record."""

    pages: list[str]
    times: list[datetime]
    shown: list[dict[str, frozenset[str] | None]]
    content: list[dict[str, Any]]  # what each page was last known to hold
    early: set[str] = field(default_factory=set)  # links that stragglers showed before cycle 0, or another visit of it
    seen_at: dict[str, datetime] = field(default_factory=dict)  # when each link was first on any page

    @property
    def first_shown(self) -> dict[str, int]:
        first: dict[str, int] = dict.fromkeys(self.early, 0)
        for t, cycle in enumerate(self.shown):
            for links in cycle.values():
                for link in links or ():
                    first.setdefault(link, t)
        return first

    @property
    def discoverable(self) -> int:
        return sum(1 for t in self.first_shown.values() if t > 0)


def slow_world(visits: Iterable[dict[str, Any]], ends: Sequence[datetime]) -> SlowWorld:
    """Visits as plain records (url, at, status, links, text_digest), cycles that end at the given times."""
    copies: dict[str, tuple[frozenset[str], Any]] = {}
    rounds: list[dict[str, tuple[frozenset[str], Any] | None]] = [{} for _ in ends]
    sighted: list[tuple[int, frozenset[str]]] = []
    seen_at: dict[str, datetime] = {}
    for visit in sorted(visits, key=lambda visit: visit["at"]):
        page, status = visit["url"], visit["status"]
        number = sum(1 for end in ends if end < visit["at"])
        if status == 200:
            copies[page] = (frozenset(visit["links"]), visit["text_digest"])
        copy = copies.get(page) if status in (200, 304) else None
        if copy is not None:
            sighted.append((number, copy[0]))
            for link in copy[0]:
                seen_at.setdefault(link, visit["at"])
        if number < len(ends) and (copy is not None or page not in rounds[number]):
            rounds[number][page] = copy
    pages = sorted({page for cycle in rounds for page, copy in cycle.items() if copy is not None})
    full = [sum(copy is not None for copy in cycle.values()) > len(pages) / 2 for cycle in rounds].index(True)
    for straggler in reversed(rounds[:full]):
        for page, copy in straggler.items():
            if rounds[full].get(page) is None:
                rounds[full][page] = copy
    kept = [{page: copy for page, copy in cycle.items() if page in set(pages)} for cycle in rounds[full:]]
    known: dict[str, Any] = {}
    content = []
    for cycle in kept:
        known.update({page: copy for page, copy in cycle.items() if copy is not None})
        content.append(dict(known))
    shown = [{page: None if copy is None else copy[0] for page, copy in cycle.items()} for cycle in kept]
    early = {link for number, links in sighted if number <= full for link in links}
    return SlowWorld(pages, list(ends[full:]), shown, content, early, seen_at)


@dataclass
class Seen:
    """One visit as a policy sees it."""

    new: set[str]
    answered: bool
    is_first: bool
    hours: float  # since it was last fetched


@dataclass
class Told:
    """One cycle of a replay."""

    chosen: list[str]
    found: int
    shown_new: int
    ages: list[float]
    current: float


@dataclass
class Crawl:
    """What a crawler knows at some moment, and the visits it made."""

    world: SlowWorld
    known: set[str] = field(default_factory=set)
    fetched: dict[str, list[datetime]] = field(default_factory=lambda: defaultdict(list))
    copy: dict[str, Any] = field(default_factory=dict)
    past: list[dict[str, Seen]] = field(default_factory=list)  # of every cycle so far, cycle 0 included

    def hours(self, page: str, now: datetime) -> float:
        return (now - self.fetched[page][-1]).total_seconds() / 3600 if self.fetched[page] else math.inf

    def is_new(self, page: str) -> bool:
        return len(self.fetched[page]) < 2

    def visit(self, t: int, pages: Iterable[str]) -> dict[str, Seen]:
        now, seen = self.world.times[t], {}
        for page in pages:
            links = self.world.shown[t].get(page)
            new = set() if links is None or t == 0 else set(links) - self.known
            seen[page] = Seen(new, links is not None, not self.fetched[page], self.hours(page, now))
            if links is not None:
                self.copy[page] = self.world.content[t][page]
        for page in seen:
            self.fetched[page].append(now)
            self.known |= self.world.shown[t].get(page) or frozenset()
        self.past.append(seen)
        return seen


def slow_replay(world: SlowWorld, policy: SlowPolicy, k: int) -> Iterator[Told]:
    """Every cycle of a replay with k pages a cycle."""
    crawl = Crawl(world, set(world.early))
    crawl.visit(0, sorted(world.shown[0]))
    for t in range(1, len(world.times)):
        chosen = policy.choose(crawl, t, k)
        seen = crawl.visit(t, chosen)
        found = set().union(*(visit.new for visit in seen.values()))
        policy.reward(len(found))
        ages = [(world.times[t] - world.seen_at[link]).total_seconds() / 3600 for link in found]
        now = world.content[t]
        current = sum(page in crawl.copy and crawl.copy[page] == now[page] for page in world.pages)
        n_new = sum(len(visit.new) for visit in seen.values())
        yield Told(chosen, len(found), n_new, sorted(ages), current / len(world.pages))


class SlowPolicy:
    """Ranks all pages; `pick` takes the best k of a ranking."""

    def __init__(self, window: int = 168, memory: int | None = None, above: float = 0.7) -> None:
        self.window, self.memory, self.above = window, memory, above

    def choose(self, crawl: Crawl, t: int, k: int) -> list[str]:
        raise NotImplementedError

    def reward(self, found: int) -> None:
        """Only the bandit cares."""

    def counts(self, crawl: Crawl, page: str, until: int) -> list[int]:
        """|O(page)| of the visits in the last `window` cycles before cycle `until`."""
        past = crawl.past[max(0, until - self.window) : until]
        visits = [cycle[page] for cycle in past if page in cycle]
        return [len(visit.new) for visit in visits if visit.answered and not visit.is_first]

    def mean(self, crawl: Crawl, page: str, until: int) -> float:
        counts = self.counts(crawl, page, until)
        return sum(counts) / len(counts) if counts else 0.0

    def overlap(self, crawl: Crawl, one: str, other: str) -> float:
        """Jaccard of the new links in the last cycle that visited both; `memory` cycles later it is forgotten."""
        for age, cycle in enumerate(reversed(crawl.past)):
            if self.memory is not None and age > self.memory:
                break
            if one in cycle and other in cycle and cycle[one].answered and cycle[other].answered:
                both = cycle[one].new | cycle[other].new
                if both:
                    return len(cycle[one].new & cycle[other].new) / len(both)
        return 0.0

    def ranked(self, crawl: Crawl, score: dict[str, float]) -> list[str]:
        return sorted(score, key=lambda page: (not crawl.is_new(page), -score[page], page))

    def without_overlap(self, crawl: Crawl, ranked: list[str], k: int) -> list[str]:
        """Algorithm 2, then the pages passed over, if there is room for them."""
        chosen: list[str] = []
        for page in ranked:
            same_site = [other for other in chosen if site(other) == site(page)]
            if len(chosen) < k and not any(self.overlap(crawl, page, other) > self.above for other in same_site):
                chosen.append(page)
        passed_over = [page for page in ranked if page not in chosen]
        return chosen + passed_over[: k - len(chosen)]


def site(url: str) -> str:
    """The registrable domain of the made-up web's URLs: their public suffixes have one part."""
    return ".".join((urlsplit(url).hostname or "").split(".")[-2:])


class SlowRoundRobin(SlowPolicy):
    def choose(self, crawl: Crawl, t: int, k: int) -> list[str]:
        return longest_waiting(crawl, t, crawl.world.pages)[:k]


def longest_waiting(crawl: Crawl, t: int, pages: Iterable[str]) -> list[str]:
    return sorted(pages, key=lambda page: (-crawl.hours(page, crawl.world.times[t]), page))


class SlowOutdegree(SlowPolicy):
    def choose(self, crawl: Crawl, t: int, k: int) -> list[str]:
        return self.ranked(crawl, {page: self.mean(crawl, page, t) for page in crawl.world.pages})[:k]


class SlowClique(SlowPolicy):
    def choose(self, crawl: Crawl, t: int, k: int) -> list[str]:
        ranked = self.ranked(crawl, {page: self.mean(crawl, page, t) for page in crawl.world.pages})
        return self.without_overlap(crawl, ranked, k)


def greedily(sets: dict[str, set[str]], k: int) -> list[str]:
    """The page that adds most to the union, again and again, until nothing is added any more."""
    chosen: list[str] = []
    covered: set[str] = set()
    while len(chosen) < k:
        rest = sorted(page for page in sets if page not in chosen)
        best = max(rest, key=lambda page: len(sets[page] - covered), default=None)
        if best is None or not sets[best] - covered:
            break
        chosen.append(best)
        covered |= sets[best]
    return chosen


class SlowCover(SlowPolicy):
    def choose(self, crawl: Crawl, t: int, k: int) -> list[str]:
        sets: dict[str, set[str]] = {page: set() for page in crawl.world.pages}
        for cycle in crawl.past:
            for page, visit in cycle.items():
                sets[page] |= visit.new
        chosen = longest_waiting(crawl, t, [page for page in sets if crawl.is_new(page)])[:k]
        covered = set().union(*(sets[page] for page in chosen))
        rest = {page: links - covered for page, links in sets.items() if not crawl.is_new(page)}
        chosen += greedily(rest, k - len(chosen))
        return chosen + longest_waiting(crawl, t, [page for page in sets if page not in chosen])[: k - len(chosen)]


class SlowOracle(SlowPolicy):
    def choose(self, crawl: Crawl, t: int, k: int) -> list[str]:
        shown = crawl.world.shown[t]
        chosen = greedily({page: set(shown.get(page) or ()) - crawl.known for page in crawl.world.pages}, k)
        return chosen + [page for page in crawl.world.pages if page not in chosen][: k - len(chosen)]


class SlowRegression(SlowPolicy):
    bootstrap, retrain = 10, 3

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.model: LinearRegression | None = None
        self.score: dict[str, float] = {}

    def features(self, crawl: Crawl, page: str, t: int, hours: float) -> list[float]:
        counts = self.counts(crawl, page, t) or [0]
        avg, std = float(np.mean(counts)), float(np.std(counts))
        age = hours if math.isfinite(hours) else 0.0
        now = crawl.world.times[t]
        clock = [float(now.hour == hour) for hour in range(24)] + [float(now.weekday() == day) for day in range(7)]
        return [avg, std, age, avg * age, *clock]

    def fit(self, crawl: Crawl, t: int) -> None:
        x, y = [], []
        for then in range(max(0, t - self.window), t):
            for page, visit in crawl.past[then].items():
                if visit.answered and not visit.is_first and self.counts(crawl, page, then):
                    x.append(self.features(crawl, page, then, visit.hours))
                    y.append(len(visit.new))
        if y:
            self.model = LinearRegression().fit(np.array(x), np.array(y))

    def scores(self, crawl: Crawl, t: int) -> dict[str, float]:
        pages, now = crawl.world.pages, crawl.world.times[t]
        if t > self.bootstrap and (self.model is None or (t - self.bootstrap - 1) % self.retrain == 0):
            self.fit(crawl, t)
        if self.model is None:
            return {page: self.mean(crawl, page, t) for page in pages}
        x = [self.features(crawl, page, t, crawl.hours(page, now)) for page in pages]
        predicted = self.model.predict(np.array(x))
        return dict(zip(pages, predicted.round(9).tolist(), strict=True))  # equal features, equal predictions

    def choose(self, crawl: Crawl, t: int, k: int) -> list[str]:
        self.score = self.scores(crawl, t)
        return self.without_overlap(crawl, self.ranked(crawl, self.score), k)


class SlowRegressionRoundRobin(SlowRegression):
    def parted(self, share: float, crawl: Crawl, t: int, k: int) -> list[str]:
        best = SlowRegression.choose(self, crawl, t, round(share * k))
        rest = [page for page in crawl.world.pages if page not in best]
        return best + longest_waiting(crawl, t, rest)[: k - len(best)]

    def choose(self, crawl: Crawl, t: int, k: int) -> list[str]:
        return self.parted(0.9, crawl, t, k)


class SlowBandit(SlowRegressionRoundRobin):
    shares = (0.6, 0.7, 0.8, 0.9, 1.0)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.rewards: dict[float, list[int]] = {share: [] for share in self.shares}
        self.share: float | None = None

    def choose(self, crawl: Crawl, t: int, k: int) -> list[str]:
        self.share = None
        if t <= self.bootstrap:
            return SlowRegression.choose(self, crawl, t, k)
        self.share = max(self.shares, key=self.worth)
        return self.parted(self.share, crawl, t, k)

    def worth(self, share: float) -> float:
        """UCB1: mean reward, scaled by the greatest, plus sqrt(2 ln n / n_share); infinite for what was never tried."""
        rewards = self.rewards[share]
        if not rewards:
            return math.inf
        every = [reward for each in self.rewards.values() for reward in each]
        return sum(rewards) / len(rewards) / max(1, *every) + math.sqrt(2 * math.log(len(every)) / len(rewards))

    def reward(self, found: int) -> None:
        if self.share is not None:
            self.rewards[self.share].append(found)


SLOW: dict[str, type[SlowPolicy]] = {
    "round-robin": SlowRoundRobin,
    "windowed-outdegree": SlowOutdegree,
    "set-cover": SlowCover,
    "windowed-clique": SlowClique,
    "regression": SlowRegression,
    "regression-round-robin": SlowRegressionRoundRobin,
    "bandit": SlowBandit,
    "oracle": SlowOracle,
}
