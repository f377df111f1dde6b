from collections.abc import Iterator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq

from recrawl.core.whole import ONE_PIECE
from recrawl.policies.harvest.streams import HALF_LIVES, HAZARDS, N_STREAMS, Streams, half_gone, seen_one


@given(st.floats(1e-6, 1e4))
def test_the_hours_seen_are_the_integral_of_survival(waited: float) -> None:
    for weights, hazard in zip(np.eye(N_STREAMS), HAZARDS, strict=True):
        longest = min(waited, 50 / hazard) if hazard else waited  # beyond, nothing is left
        integral = quad(lambda t, hazard=hazard: np.exp(-hazard * t), 0, longest)[0]
        assert np.isclose(seen_one(weights, HAZARDS, waited), integral, rtol=1e-6)


def test_the_hours_seen_of_a_page_are_weighed_by_its_streams() -> None:
    streams = Streams(2)
    streams.followed[1] = np.arange(N_STREAMS)
    weights = streams.weights(np.array([1]))[0]
    expected = sum(w * seen_one(each, HAZARDS, 7.0) for w, each in zip(weights, np.eye(N_STREAMS), strict=True))
    assert np.isclose(streams.seen(np.array([1]), np.array([7.0]))[0], expected)


@given(st.lists(st.floats(0, 1), min_size=N_STREAMS, max_size=N_STREAMS).filter(lambda w: sum(w) > 0.1))
def test_half_of_the_links_are_gone_when_survival_is_a_half(raw: list[float]) -> None:
    weights = np.array(raw) / sum(raw)
    gone = half_gone(weights)
    if weights[-1] > 0.5:
        assert np.isinf(gone)
    elif weights[-1] < 0.499:
        root = brentq(lambda t: weights @ np.exp(-HAZARDS * t) - 0.5, 0, 1e6, xtol=1e-10)
        assert np.isclose(gone, root, rtol=1e-6)


def slow_followed(weights: list[float], waited: float, n: int, stayed: int, gap: float, most: float) -> list[float]:
    """How many links of each stream arrived, given that n were seen at the last visit and some of these stayed."""
    if n == 0:
        return [0.0] * N_STREAMS
    seen = [(1 - np.exp(-h * gap)) / h if h else gap for h in HAZARDS]
    stay = [np.exp(-h * waited) for h in HAZARDS]
    of_stayed = [w * s * e for w, s, e in zip(weights, seen, stay, strict=True)]
    of_left = [w * s * (1 - e) for w, s, e in zip(weights, seen, stay, strict=True)]
    followed = []
    for j in range(N_STREAMS):
        links = stayed * of_stayed[j] / sum(of_stayed) + (n - stayed) * of_left[j] / sum(of_left)
        followed.append(links * min(1.0, most / n) * gap / seen[j])
    return followed


def test_learning_agrees_with_a_plain_loop() -> None:
    chance = np.random.default_rng(0)
    streams = Streams(6, pseudo_links=7.0, per_visit=4.0)
    arrivals, exposure, followed = [0.0] * 6, np.zeros((6, N_STREAMS)), np.zeros((6, N_STREAMS))
    for cycle in range(30):
        page = np.flatnonzero(chance.random(6) < 0.6)
        waited, gap = chance.gamma(1.0, 20.0, len(page)) + 0.1, chance.gamma(1.0, 20.0, len(page)) + 0.1
        arrived, before = chance.poisson(3.0, len(page)).astype(float), chance.poisson(3.0, len(page))
        stayed, kept = chance.binomial(before, 0.6), chance.uniform(0.7, 1.0, len(page))
        for i, p in enumerate(page):
            weights = (followed[p] + 7.0 * streams.shares) / (followed[p].sum() + 7.0)
            more = slow_followed(weights.tolist(), waited[i], before[i], stayed[i], gap[i], 4.0)
            arrivals[p] = arrivals[p] * kept[i] + arrived[i]
            for j, hazard in enumerate(HAZARDS):
                hours = (1 - np.exp(-hazard * waited[i])) / hazard if hazard else waited[i]
                exposure[p, j] = exposure[p, j] * kept[i] + hours
                followed[p, j] = followed[p, j] * kept[i] + more[j]
        streams.learn(page, waited, arrived, before, stayed, gap, kept)
        if cycle % 7 == 6:
            streams.refit(ONE_PIECE)
            own = [sum(followed[p, j] for p in range(6)) + 5.0 / N_STREAMS for j in range(N_STREAMS)]
            assert np.allclose(streams.shares, np.array(own) / sum(own))
    assert np.allclose(streams.arrivals, arrivals)
    assert np.allclose(streams.exposure, exposure)
    assert np.allclose(streams.followed, followed)
    shares = streams.weights(np.arange(6))
    assert np.allclose(shares.sum(axis=1), 1.0)
    assert np.allclose(streams.exposures(), [sum(shares[p] * exposure[p]) for p in range(6)])


#: A true page: six links in ten leave after an hour and a half, the others after five days.
FAST, SLOW, RATE = HALF_LIVES[1], HALF_LIVES[5], 0.8
HALVES = ((0.6, FAST), (0.4, SLOW))


def survival(hours: np.ndarray) -> np.ndarray:
    return sum(share * 0.5 ** (hours / half) for share, half in HALVES)


def lived(chance: np.random.Generator, n_visits: int) -> Iterator[tuple[float, int, int, int, float]]:
    """Visits to a page whose links arrive at random: hours waited, arrived, before, stayed, hours waited before."""
    cohort, gap_before = np.empty(0), 0.0
    for _ in range(n_visits):
        waited = chance.uniform(1.0, 24.0)
        n = chance.poisson(RATE * waited)
        half = np.where(chance.random(n) < HALVES[0][0], FAST, SLOW)
        gone = chance.uniform(0.0, waited, n) + chance.exponential(half / np.log(2))
        there = np.sort(gone[gone > waited]) - waited  # hours that each link of this visit will still stay
        yield waited, len(there), len(cohort), int((cohort > waited).sum()), gap_before
        cohort, gap_before = there, waited


def test_survival_and_rate_come_near_the_truth_although_links_leave_unseen() -> None:
    n_pages, n_visits = 30, 300
    streams = Streams(n_pages)
    pages = [list(lived(np.random.default_rng(p), n_visits)) for p in range(n_pages)]
    for visit in range(n_visits):
        waited, arrived, before, stayed, gap = (
            np.array(column) for column in zip(*(p[visit] for p in pages), strict=True)
        )
        kept = np.full(n_pages, 0.97)
        streams.learn(np.arange(n_pages), waited, arrived.astype(float), before, stayed, gap, kept)
        if visit % 10 == 9:
            streams.refit(ONE_PIECE)
    seen = sum(visit[1] for p in pages for visit in p) / sum(visit[0] for p in pages for visit in p)
    assert seen < 0.65 * RATE  # the count of an observer who ignores links that left
    weights = streams.weights(np.arange(n_pages)).mean(axis=0)
    hours = np.array([4.0, 8.0, 16.0, 24.0])
    learnt = np.exp(-np.outer(hours, HAZARDS)) @ weights
    assert np.allclose(learnt, survival(hours), atol=0.06)
    rate = streams.arrivals.sum() / streams.exposures().sum()
    assert abs(rate / RATE - 1) < 0.15
