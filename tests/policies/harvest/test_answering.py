import numpy as np

from recrawl.core.arrays import LinkLists
from recrawl.core.times import US_PER_HOUR, moment
from recrawl.policies.harvest.answering import Answering
from recrawl.world.pages import Visits


def visits(page: np.ndarray, answered: np.ndarray, gone: np.ndarray, hours: float) -> Visits:
    n, none = len(page), LinkLists(np.zeros(len(page) + 1, np.int64), np.empty(0, np.int32))
    unknown = np.full(n, -1, np.int8)
    at = round(hours * US_PER_HOUR)
    return Visits(
        at=np.full(n, at),
        ended_at=moment(at),
        page=page,
        age_hours=np.zeros(n),
        is_first=np.zeros(n, bool),
        answered=answered,
        gone=gone,
        failed=~answered & ~gone,
        changed=unknown,
        n_new_since=unknown.astype(np.int32),
        updated=unknown,
        shown=none,
        new=none,
        n_found=0,
    )


def observe(
    answering: Answering, hours: float, page: np.ndarray, answered: np.ndarray, gone: np.ndarray, links: np.ndarray
) -> None:
    """All visits at the same time."""
    returns, counts = answering.observe(visits(page, answered, gone, hours), np.full(len(page), hours), links)
    answering.settle(returns.values(), counts, len(page) / len(answering.site))


class Slow:
    """The same law, one page after the other."""

    def __init__(self, n_pages: int) -> None:
        self.pages = [{"state": "not yet", "visited": None, "down": 0.0, "n": 0, "yes": 0} for _ in range(n_pages)]
        self.returns: list[tuple[str, int, float, bool, float]] = []  # state, age, hours, whether it came back, weight
        self.firsts: list[int] = []
        self.begun = None

    def fade(self, n_visits: int) -> None:
        kept = 0.5 ** (n_visits / (5 * len(self.pages)))
        self.returns = [(*rest, weight * kept) for *rest, weight in self.returns]  # type: ignore[misc]

    def since(self, page: int, now: float) -> float:
        visited = self.pages[page]["visited"]
        return now - (visited if visited is not None else now if self.begun is None else self.begun)

    def observe(self, page: int, answered: bool, gone: bool, now: float, n_links: int) -> None:
        known = self.pages[page]
        state, waited = known["state"], self.since(page, now)
        if state == "up":
            known["n"] += 1
            known["yes"] += answered
        elif waited:
            self.returns.append((state, age(known["down"] + waited / 2), waited / (1 + answered), answered, 1.0))
        if state == "not yet" and answered and self.begun is not None:
            self.firsts.append(n_links)
        if answered:
            known["state"], known["down"] = "up", 0.0
        else:
            known["down"] += 0.0 if state == "up" else waited
            if state != "not yet":
                known["state"] = "gone" if gone else "failing"
        known["visited"] = now

    def rate(self, state: str, of_age: int, sweep: float) -> float:
        mine = [(a, hours * weight, back * weight) for s, a, hours, back, weight in self.returns if s == state]
        whole = (sum(back for _, _, back in mine) + 0.5) / (sum(hours for _, hours, _ in mine) + 0.5 * sweep)
        here = [(hours, back) for a, hours, back in mine if a == of_age]
        return (sum(back for _, back in here) + 2) / (sum(hours for hours, _ in here) + 2 / whole)

    def probability(self, page: int, now: float, sweep: float) -> float:
        known = self.pages[page]
        if known["state"] == "up":
            all_yes, all_n = sum(p["yes"] for p in self.pages), sum(p["n"] for p in self.pages)
            return (known["yes"] + (all_yes + 5) / (all_n + 5.5)) / (known["n"] + 1)
        begin, end, stays = known["down"], known["down"] + self.since(page, now), 1.0
        while begin < end:  # from one age to the next
            until = min(end, 2.0 ** (age(begin) + 1))
            stays *= np.exp(-self.rate(known["state"], age(begin), sweep) * (until - begin))
            begin = until
        return 1 - stays


def age(hours: float) -> int:
    return int(np.log2(hours)) if hours >= 1 else 0


def test_probabilities_agree_with_a_slow_version() -> None:
    chance = np.random.default_rng(0)
    fast, slow, now = Answering(np.zeros(12, np.int64)), Slow(12), 100.0
    for cycle in range(60):
        page = np.flatnonzero(chance.random(12) < (0.3 if cycle else 0.6))
        answered = chance.random(len(page)) < np.where(page % 3 == 0, 0.3, 0.9)
        gone = ~answered & (chance.random(len(page)) < 0.5)
        n_links = chance.integers(0, 9, len(page))
        observe(fast, now, page, answered, gone, n_links)
        slow.fade(len(page))
        for i, p in enumerate(page):
            slow.observe(p, answered[i], gone[i], now, n_links[i])
        slow.begun = now if slow.begun is None else slow.begun
        now += chance.gamma(1.0, 5.0)
        probability = fast.probability(np.arange(12), now, 40.0)
        assert np.allclose(probability, [slow.probability(p, now, 40.0) for p in range(12)])
        mean, n = (sum(slow.firsts) + 2) / (len(slow.firsts) + 1), len(slow.firsts)
        assert np.allclose(fast.first_links(np.arange(12)), (sum(slow.firsts) + 5 * mean) / (n + 5))


def down(gone: bool, was_up: bool) -> Answering:
    """One page that does not answer at hour 10, and did at hour 0 or did not."""
    answering, page = Answering(np.zeros(1, np.int64)), np.zeros(1, np.int64)
    for hours, answered in ((0.0, was_up), (10.0, False)):
        observe(answering, hours, page, np.array([answered]), np.array([gone and not answered]), page)
    return answering


def test_a_page_that_failed_is_the_more_likely_to_answer_the_longer_it_was_not_visited() -> None:
    for answering in (down(True, True), down(False, True), down(False, False)):
        likely = [answering.probability(np.zeros(1, np.int64), hours, 24.0)[0] for hours in (10.0, 11.0, 30.0, 1e5)]
        assert likely[0] == 0
        assert likely == sorted(likely)
        assert likely[1] < 0.1
        assert likely[-1] > 0.99


def test_a_page_that_never_came_back_is_less_likely_to_than_one_that_just_failed() -> None:
    answering = Answering(np.zeros(2, np.int64))
    both, first = np.arange(2), np.zeros(1, np.int64)
    no = np.zeros(2, bool)
    observe(answering, 0.0, both, ~no, no, both)
    observe(answering, 1.0, first, no[:1], no[:1], first)
    observe(answering, 50.0, first, no[:1], no[:1], first)
    observe(answering, 99.0, both, no, no, both)
    likely = answering.probability(both, 120.0, 24.0)
    assert likely[0] < likely[1]


def test_the_probability_of_an_unvisited_page_is_learnt_from_first_visits_to_others() -> None:
    """After a first crawl of page 0, one new page is visited in each cycle."""
    for is_there in (True, False):
        answering = Answering(np.zeros(40, np.int64))
        for cycle in range(30):
            page = np.array([cycle])
            observe(answering, 24.0 * cycle, page, np.array([is_there or not cycle]), np.zeros(1, bool), page)
        likely = answering.probability(np.array([39]), 24.0 * 30, 24.0 * 40)[0]
        assert likely > 0.6 if is_there else likely < 0.2


def test_pages_that_appear_long_after_they_were_known_are_not_given_up() -> None:
    """Of forty pages visited every day one appears each day: the last ones are the likelier the fewer are left."""
    answering, likely = Answering(np.zeros(41, np.int64)), []
    for day in range(40):
        page = np.append(0, np.arange(day, 41)) if day else np.arange(41)
        answered = page <= day
        page, first = np.unique(page, return_index=True)
        observe(answering, 24.0 * day, page, answered[first], np.zeros(len(page), bool), page)
        likely.append(answering.probability(np.array([40]), 24.0 * day + 24, 24.0)[0])
    assert likely[30] > likely[10]
    assert abs(likely[30] - 0.1) < 0.07  # one of ten


def test_pages_are_expected_to_begin_as_others_of_their_site_did() -> None:
    answering = Answering(np.array([0, 0, 0, 1, 1, 1]))
    every = np.arange(6)
    is_there = np.array([True, False, False, True, False, False])
    observe(answering, 0.0, every, is_there, np.zeros(6, np.bool_), np.zeros(6, np.int64))
    observe(answering, 1.0, np.array([1, 4]), np.ones(2, np.bool_), np.zeros(2, np.bool_), np.array([20, 2]))
    busy, quiet = answering.first_links(np.array([2, 5]))
    assert busy == (20 + 5 * 8) / 6  # 24 links on 3 pages: the mean of all
    assert quiet == (2 + 5 * 8) / 6
