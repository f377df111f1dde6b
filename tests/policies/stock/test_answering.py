import numpy as np

from recrawl.policies.base import LinkLists, Visits, moment
from recrawl.policies.stock.answering import Answering


def visits(page: np.ndarray, answered: np.ndarray, gone: np.ndarray) -> Visits:
    n, none = len(page), LinkLists(np.zeros(len(page) + 1, np.int64), np.empty(0, np.int32))
    unknown = np.full(n, -1, np.int8)
    return Visits(
        moment(0), page, np.zeros(n), np.zeros(n, bool), answered, gone, ~answered & ~gone, unknown,
        unknown.astype(np.int32), unknown, none, none, 0,
    )  # fmt: skip


class Slow:
    """The same law, one page after the other."""

    def __init__(self, n_pages: int) -> None:
        self.pages = [{"state": "not yet", "asked": None, "down": 0.0, "n": 0, "yes": 0} for _ in range(n_pages)]
        self.waited = dict.fromkeys(("not yet", "gone", "failing"), 0.0)
        self.back = dict.fromkeys(self.waited, 0)
        self.firsts: list[int] = []
        self.is_begun = False

    def observe(self, page: int, answered: bool, gone: bool, now: float, n_links: int) -> None:
        one = self.pages[page]
        state, waited = one["state"], 0.0 if one["asked"] is None else now - one["asked"]
        if state == "up":
            one["n"] += 1
            one["yes"] += answered
        elif one["asked"] is not None:
            self.waited[state] += waited
            self.back[state] += answered
        if state == "not yet" and answered and self.is_begun:
            self.firsts.append(n_links)
        if answered:
            one["state"], one["down"] = "up", 0.0
        else:
            one["down"] += 0.0 if state == "up" else waited
            if state != "not yet":
                one["state"] = "gone" if gone else "failing"
        one["asked"] = now

    def probability(self, page: int, now: float, sweep: float) -> float:
        one = self.pages[page]
        all_yes, all_n = sum(p["yes"] for p in self.pages), sum(p["n"] for p in self.pages)
        if one["state"] == "up" or one["asked"] is None:
            return (one["yes"] + (all_yes + 5) / (all_n + 5.5)) / (one["n"] + 1)
        rate = (self.back[one["state"]] + 0.5) / (self.waited[one["state"]] + 0.5 * sweep)
        own = 2.0 / (2.0 / rate + one["down"])
        return 1 - np.exp(-own * (now - one["asked"]))


def test_probabilities_agree_with_a_slow_version() -> None:
    chance = np.random.default_rng(0)
    fast, slow, now = Answering(np.zeros(12, np.int64)), Slow(12), 100.0
    for cycle in range(60):
        page = np.flatnonzero(chance.random(12) < (0.3 if cycle else 0.6))
        answered = chance.random(len(page)) < np.where(page % 3 == 0, 0.3, 0.9)
        gone = ~answered & (chance.random(len(page)) < 0.5)
        n_links = chance.integers(0, 9, len(page))
        fast.observe(visits(page, answered, gone), now, n_links)
        for i, p in enumerate(page):
            slow.observe(p, answered[i], gone[i], now, n_links[i])
        slow.is_begun = True
        now += chance.gamma(1.0, 5.0)
        told = fast.probability(np.arange(12), now, 40.0)
        assert np.allclose(told, [slow.probability(p, now, 40.0) for p in range(12)])
        mean, n = (sum(slow.firsts) + 2) / (len(slow.firsts) + 1), len(slow.firsts)
        assert np.allclose(fast.first_links(np.arange(12)), (sum(slow.firsts) + 5 * mean) / (n + 5))


def down(gone: bool, was_up: bool) -> Answering:
    """One page that does not answer at hour 10, and did at hour 0 or did not."""
    answering, one = Answering(np.zeros(1, np.int64)), np.zeros(1, np.int64)
    for hours, answered in ((0.0, was_up), (10.0, False)):
        answering.observe(visits(one, np.array([answered]), np.array([gone and not answered])), hours, one)
    return answering


def test_a_page_that_does_not_answer_is_the_more_likely_to_the_longer_it_was_left_alone() -> None:
    for answering in (down(True, True), down(False, True), down(False, False)):
        told = [answering.probability(np.zeros(1, np.int64), hours, 24.0)[0] for hours in (10.0, 11.0, 30.0, 1e5)]
        assert told[0] == 0
        assert told == sorted(told)
        assert told[1] < 0.1
        assert told[-1] > 0.99


def test_a_page_that_never_came_back_is_less_likely_to_than_one_that_just_failed() -> None:
    answering = Answering(np.zeros(2, np.int64))
    both, first = np.arange(2), np.zeros(1, np.int64)
    no = np.zeros(2, bool)
    answering.observe(visits(both, ~no, no), 0.0, both)
    answering.observe(visits(first, no[:1], no[:1]), 1.0, first)
    answering.observe(visits(first, no[:1], no[:1]), 50.0, first)
    answering.observe(visits(both, no, no), 99.0, both)
    told = answering.probability(both, 120.0, 24.0)
    assert told[0] < told[1]


def test_a_page_that_nobody_asked_for_answers_as_often_as_others_after_an_answer() -> None:
    answering, one = Answering(np.zeros(2, np.int64)), np.ones(1, np.int64)
    for hours in range(5):
        answering.observe(visits(one, np.array([hours != 2]), np.zeros(1, bool)), float(hours), one)
    # Asked three times after an answer (at 1, 2 and 4), and answered twice; page 0 stands for whatever is like them.
    assert np.isclose(answering.probability(np.array([0]), 9.0, 2.0)[0], (2 + 5) / (3 + 5.5))


def test_pages_are_expected_to_begin_as_others_of_their_site_did() -> None:
    answering = Answering(np.array([0, 0, 0, 1, 1, 1]))
    every = np.arange(6)
    answering.observe(
        visits(every, np.array([True, False, False, True, False, False]), np.zeros(6, np.bool_)),
        0.0,
        np.zeros(6, np.int64),
    )
    answering.observe(visits(np.array([1, 4]), np.ones(2, np.bool_), np.zeros(2, np.bool_)), 1.0, np.array([20, 2]))
    busy, quiet = answering.first_links(np.array([2, 5]))
    assert busy == (20 + 5 * 8) / 6  # 24 links on 3 pages: the mean of all
    assert quiet == (2 + 5 * 8) / 6
