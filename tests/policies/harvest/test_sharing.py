"""Which links arrived on a page, and which siblings show them, beside dictionaries and sets."""

from collections import defaultdict

import numpy as np

from recrawl.core.arrays import LinkLists
from recrawl.core.hashtable import STRIDE
from recrawl.policies.harvest import siblings as siblings_module
from recrawl.policies.harvest.siblings import MOST_PAIRS, PAST, Neighbours, Siblings
from recrawl.policies.harvest.sightings import Sightings

N = 24
SITE = np.repeat([0, 1, 2], [12, 8, 4])


def lists(sets: list[set[int]]) -> LinkLists:
    start = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    return LinkLists(start, np.array([link for links in sets for link in sorted(links)], np.int32))


class Slow:
    """First sightings and showers of links, one by one."""

    def __init__(self) -> None:
        self.first: dict[int, float] = {}
        self.showers: dict[int, list[int]] = defaultdict(list)
        self.last: dict[int, float] = {}

    def visit(self, seen: dict[int, set[int]], hours: float) -> tuple[dict[int, set[int]], dict[tuple[int, int], int]]:
        """What arrived on each page, and how many of these links each page of its site showed as well."""
        arrived = {
            p: {x for x in shown if x not in self.first or (p in self.last and self.first[x] > self.last[p])}
            for p, shown in seen.items()
        }
        for p in sorted(arrived):
            for link in arrived[p]:
                self.showers[link].append(p)
                self.first.setdefault(link, hours)
            self.last[p] = hours
        shared: dict[tuple[int, int], int] = defaultdict(int)
        for p in arrived:
            for link in arrived[p]:
                for q in [q for q in self.showers[link] if SITE[q] == SITE[p]][-MOST_PAIRS:]:
                    if q != p:
                        shared[p, q] += 1
        return arrived, shared


def random_visits(seed: int, n_cycles: int = 80):
    """Pages of a site take their links from one list, so that they share some; link numbers grow beyond the first table."""
    chance = np.random.default_rng(seed)
    for cycle in range(n_cycles):
        page = np.flatnonzero(chance.random(N) < 0.4)
        newest = 60 * cycle
        shown = {
            int(p): {int(SITE[p]) + 3 * int(x) for x in chance.integers(newest // 2, newest + 60, 25)} for p in page
        }
        answered = chance.random(len(page)) < 0.85
        yield float(cycle), page, answered, [shown[int(p)] if a else set() for p, a in zip(page, answered, strict=True)]


def test_what_arrived_and_which_pages_share_it_agree_with_dictionaries() -> None:
    sightings, slow = Sightings(), Slow()
    n_shared = 0
    for hours, page, answered, shown in random_visits(0):
        since = np.array([slow.last.get(int(p), np.inf) for p in page])
        arrivals = sightings.arrivals(page, answered, since, lists(shown), np.full(len(page), hours), SITE)
        seen = {int(p): shown[i] for i, p in enumerate(page) if answered[i]}
        slow_arrivals, slow_shared = slow.visit(seen, hours)
        assert [set(arrivals[i].tolist()) for i in range(len(page))] == [slow_arrivals.get(int(p), set()) for p in page]
        keys, times = sightings.shared(page, arrivals, np.ones(len(page)), SITE, MOST_PAIRS)
        shared = {divmod(int(key), STRIDE): float(n) for key, n in zip(keys, times, strict=True)}
        assert shared == slow_shared
        assert (np.diff(keys) > 0).all()
        weight = np.where(page % 3 == 0, 0.0, 0.1 * page)  # visits that do not count, and those that count for more
        of = dict(zip(page.tolist(), weight.tolist(), strict=True))
        keys, sums = sightings.shared(page, arrivals, weight, SITE, MOST_PAIRS)
        weighed = {pair: n * of[pair[0]] for pair, n in slow_shared.items() if of[pair[0]]}
        assert {divmod(int(key), STRIDE) for key in keys} == weighed.keys()
        assert np.allclose(sums, [weighed[divmod(int(key), STRIDE)] for key in keys])
        unshared = [
            sum(all(q == p or SITE[q] != SITE[p] for q in slow.showers[x]) for x in slow_arrivals.get(int(p), set()))
            for p in page
        ]
        n_unshared = sightings.unshared(page, arrivals.links, arrivals.start[:-1], arrivals.sizes, SITE)
        assert n_unshared.tolist() == unshared
        n_shared = max(n_shared, len(shared))
    assert n_shared > 50
    assert len(sightings.first) > 1024
    assert len(sightings._before) > 1024
    assert all(sightings.began + sightings.first[link] / 3600 == hours for link, hours in slow.first.items())


def test_what_the_first_crawl_showed_is_not_new() -> None:
    sightings = Sightings()
    sightings.all_known(lists([{1, 2}, {2, 5_000}]), np.full(2, 10.0))
    both, yes = np.arange(2), np.ones(2, bool)
    shown, last = lists([{1, 2, 3}, {3, 4, 5_000}]), np.array([10.0, np.inf])
    arrivals = sightings.arrivals(both, yes, last, shown, np.full(2, 11.0), both)
    assert [arrivals[0].tolist(), arrivals[1].tolist()] == [[3], [3, 4]]
    arrivals = sightings.arrivals(both, yes, np.array([10.0, 11.0]), lists([{1, 3, 4}, {3, 4}]), np.full(2, 12.0), both)
    assert [arrivals[0].tolist(), arrivals[1].tolist()] == [[3, 4], []]


def test_only_the_latest_showers_of_a_link_are_named_the_first_pages_first() -> None:
    sightings, n = Sightings(), MOST_PAIRS + 10
    page, site = np.arange(n), np.zeros(n, np.int64)
    arrivals = sightings.arrivals(page, np.ones(n, bool), np.full(n, np.inf), lists([{7}] * n), np.ones(n), site)
    keys, times = sightings.shared(page, arrivals, np.ones(n), site, MOST_PAIRS)
    first, other = np.divmod(keys, STRIDE)
    assert len(keys) > 1024  # the table has grown
    assert (times == 1).all()
    assert set(other.tolist()) == set(range(MOST_PAIRS))
    assert np.bincount(first).tolist() == [MOST_PAIRS - 1] * MOST_PAIRS + [MOST_PAIRS] * 10


def summed(page, other, links) -> tuple[np.ndarray, np.ndarray]:
    """The key of every pair once, and its links."""
    keys, place = np.unique(page * STRIDE + other, return_inverse=True)
    return keys, np.bincount(place, links)


class SlowSiblings:
    """Hits and trials by pair, in dictionaries."""

    def __init__(self, per_visit: float) -> None:
        self.per_visit = per_visit
        self.hits: dict[tuple[int, int], float] = {}
        self.trials: dict[tuple[int, int], float] = {}
        self.n_arrived: dict[int, float] = defaultdict(float)
        self.fading: dict[int, float] = defaultdict(lambda: 1.0)

    def visit(
        self, n_arrived: dict[int, int], shared: dict[tuple[int, int], int], visible, kept: dict[int, float]
    ) -> None:
        for p, q in shared:
            if (p, q) not in self.hits:
                self.hits[p, q], self.trials[p, q] = 0.0, PAST * self.n_arrived[p]
        for p in n_arrived:
            self.fading[p] *= kept[p]
        for p, q in self.hits:
            if n_arrived.get(p, 0):
                self.hits[p, q] *= self.fading[p]
                more = min(n_arrived[p], self.per_visit) * visible(p, q)
                self.trials[p, q] = self.trials[p, q] * self.fading[p] + more
        for p, n in n_arrived.items():
            self.fading[p] = 1.0 if n else self.fading[p]
            self.n_arrived[p] = self.n_arrived[p] * kept[p] + min(n, self.per_visit)
        for (p, q), n in shared.items():
            self.hits[p, q] += n * min(1.0, self.per_visit / n_arrived[p])
            self.trials[p, q] = max(self.trials[p, q], self.hits[p, q])

    def share(self, p: int, q: int, alpha: float) -> float:
        prior = min(0.05, 2 / (SITE[p] == SITE).sum())
        return min((self.hits[p, q] + alpha * prior) / (self.trials[p, q] + alpha), 0.999)


def visible_share(p: int, q: int) -> float:
    return (3 * p + 5 * q) % 7 / 6


def test_hits_and_trials_agree_with_dictionaries() -> None:
    siblings, slow, chance = Siblings(SITE, per_visit=4.0), SlowSiblings(4.0), np.random.default_rng(1)
    for _ in range(60):
        page = np.flatnonzero(chance.random(N) < 0.4)
        n_arrived, kept = chance.integers(0, 8, len(page)), chance.uniform(0.8, 1.0, len(page))
        shared = {
            (int(p), int(q)): int(chance.integers(1, n + 1))
            for p, n in zip(page, n_arrived, strict=True)
            for q in np.flatnonzero(SITE[p] == SITE)
            if n and q != p and chance.random() < 0.1
        }
        repeated = np.array([pair for pair, n in shared.items() for _ in range(n)], np.int64).reshape(-1, 2)
        weight = dict(zip(page.tolist(), np.minimum(1.0, 4.0 / np.maximum(n_arrived, 1)), strict=True))
        keys, links = summed(repeated[:, 0], repeated[:, 1], np.array([weight[p] for p in repeated[:, 0].tolist()]))
        siblings.add_new(keys)
        place, other, at = siblings.of_visits(page, n_arrived)
        visible = np.array([visible_share(p, q) for p, q in zip(page[place].tolist(), other.tolist(), strict=True)])
        siblings.learn(page, n_arrived, at, place, visible, kept)
        siblings.hit(keys, links)
        by_page, kept_by_page = (dict(zip(page.tolist(), each.tolist(), strict=True)) for each in (n_arrived, kept))
        slow.visit(by_page, shared, visible_share, kept_by_page)
        assert siblings.size == len(slow.hits)
    pairs = siblings.neighbours(np.zeros(siblings.n_pages))
    shares = {
        (p, int(pairs.other[at])): pairs.share[at] for p in range(N) for at in range(pairs.start[p], pairs.start[p + 1])
    }
    assert shares.keys() == slow.hits.keys()
    assert len(shares) > 100
    assert all(np.isclose(share, slow.share(*pair, 5.0)) for pair, share in shares.items())


def dense(pairs: Neighbours, n: int) -> np.ndarray:
    matrix = np.zeros((n, n))
    matrix[np.repeat(np.arange(n), np.diff(pairs.start)), pairs.other] = pairs.share
    return matrix


def test_neighbours_reversed_are_the_transpose_also_after_the_table_has_grown() -> None:
    n = 120
    siblings = Siblings(np.zeros(n, np.int64))
    chance = np.random.default_rng(0)
    seen: set[tuple[int, int]] = set()
    for _ in range(30):
        page, other = chance.integers(0, n, (2, 100))
        keys, links = summed(page, other, chance.random(100))
        siblings.add_new(keys)
        siblings.hit(keys, links)
        seen |= set(zip(page.tolist(), other.tolist(), strict=True))
        plain, turned = (
            dense(siblings.neighbours(np.zeros(n)), n),
            dense(siblings.neighbours(np.zeros(n), is_reversed=True), n),
        )
        assert np.array_equal(plain, turned.T)
        assert set(zip(*np.nonzero(plain), strict=True)) == seen
    assert len(siblings.keys) > 1024
    assert 2 * siblings.size <= len(siblings.keys)


def test_a_share_worked_out_by_hand() -> None:
    siblings = Siblings(np.zeros(3, np.int64), pseudo_links=5.0, share=0.05, per_visit=10.0)
    page, first, other = np.array([0]), np.zeros(4, np.int64), np.ones(4, np.int64)
    none = np.empty(0, np.int64)
    siblings.learn(page, np.array([6]), none, none, np.empty(0), np.ones(1))  # six that no page shared
    keys, links = summed(first, other, np.ones(4))
    siblings.add_new(keys)
    place, _, at = siblings.of_visits(page, np.array([8]))
    siblings.learn(page, np.array([8]), at, place, np.array([0.75]), np.ones(1))
    siblings.hit(keys, links)
    assert np.isclose(
        siblings.neighbours(np.zeros(siblings.n_pages)).share[0], (4 + 5 * 0.05) / (0.5 * 6 + 0.75 * 8 + 5)
    )


def test_pairs_that_are_known_take_no_more_room() -> None:
    siblings = Siblings(np.zeros(30, np.int64))
    pair = np.arange(500)
    keys = pair // 30 * STRIDE + pair % 30
    siblings.add_new(keys)
    siblings.hit(keys, pair / 100)
    before = dense(siblings.neighbours(np.zeros(30)), 30)
    siblings.add_new(keys[:200])
    assert len(siblings.keys) == 1024
    assert np.array_equal(dense(siblings.neighbours(np.zeros(30)), 30), before)


def test_only_the_strongest_pairs_of_each_page_stay_however_many_are_added_between_two_refits(monkeypatch) -> None:
    monkeypatch.setattr(siblings_module, "MOST_PAIRS", 10)
    n = 100
    siblings, chance = Siblings(np.zeros(n, np.int64)), np.random.default_rng(0)
    strong = np.arange(n) * STRIDE + (np.arange(n) + 1) % n  # each page with the one after it
    siblings.add_new(strong)
    siblings.hit(strong, np.full(n, 50.0))
    for _ in range(40):
        pair = np.unique(chance.integers(0, n * n, 500))
        keys = pair // n * STRIDE + pair % n
        siblings.add_new(keys)
        siblings.hit(keys, np.full(len(keys), 0.1))
        if siblings.is_too_large(siblings.size):
            siblings.prune()
        assert siblings.size <= 2 * 10 * n + 500
        assert len(siblings.keys) <= 8192
    siblings.prune()
    pairs = siblings.neighbours(np.zeros(siblings.n_pages))
    assert np.diff(pairs.start).max() == 10
    assert all(pairs.closest(p)[0] == (p + 1) % n for p in range(n))


def test_pairs_fade_with_time_however_seldom_links_arrive() -> None:
    left = []
    for every in (1, 30):
        siblings = Siblings(np.zeros(2, np.int64))
        siblings.add_new(np.array([1]))
        siblings.hit(np.array([1]), np.array([8.0]))
        for day in range(1, 361):
            n_arrived = np.array([int(day % every == 0)])
            place, _, at = siblings.of_visits(np.array([0]), n_arrived)
            siblings.learn(np.array([0]), n_arrived, at, place, np.zeros(len(at)), np.array([0.5 ** (1 / 60)]))
        left.append(float(siblings.hits.max()))
    assert np.allclose(left, 8 / 2**6)
