import numpy as np
import pytest
from scipy.stats import nbinom

from recrawl.policies.stock.interval import KEPT, LEVEL, PSEUDO_LINKS, Calibration, NegativeBinomial

N = 4_000


def drawn(seed: int, mean: float, answers: float, shape: float, spread: float) -> np.ndarray:
    """Counts of the stated law: batches of links at a rate that is not known exactly, on a page that answers at times."""
    chance = np.random.default_rng(seed)
    of_those = mean / answers
    variance = spread * of_those + of_those**2 / shape
    rate = chance.gamma(of_those**2 / (variance - of_those), variance / of_those - 1, N)
    return chance.poisson(rate) * (chance.random(N) < answers)


LAWS = [
    (0.05, 0.9, 0.3, 2.0),
    (0.7, 0.5, 2.0, 1.5),
    (3.0, 1.0, 1.0, 5.0),
    (25.0, 0.85, 20.0, 1.2),
    (60.0, 0.95, 4.0, 3.0),
]


@pytest.mark.parametrize(("mean", "answers", "shape", "spread"), LAWS)
def test_counts_fall_into_their_intervals_as_often_as_stated(
    mean: float, answers: float, shape: float, spread: float
) -> None:
    calibration = Calibration()
    law = [np.array([value]) for value in (mean, answers, shape)]
    low, high, stated = (end[0] for end in calibration.interval(*law, spread))
    came = drawn(0, mean, answers, shape, spread)
    noise = 3 * np.sqrt(0.25 / N)
    assert stated >= LEVEL - 1e-9
    assert abs(((came >= low) & (came <= high)).mean() - stated) < noise
    assert (came > high).mean() < (1 - LEVEL) / 2 + noise
    assert (came < low).mean() < (1 - LEVEL) / 2 + noise
    assert abs((came > 0).mean() - calibration.probability(*law, spread)[0]) < noise


def width_after(spread: float, seed: int = 0) -> float:
    """The width when counts vary so many times more than chance, and the model believes 4 times."""
    calibration = Calibration()
    for cycle in range(60):
        came = drawn(seed + cycle, 20.0, 1.0, 5.0, spread)[:50]
        calibration.learn(np.full(50, 20.0), came, np.zeros(50, bool), np.ones(50), np.full(50, 5.0), 4.0)
    return calibration.width


def test_intervals_become_wider_when_counts_fall_outside_too_often_and_narrower_when_seldom() -> None:
    right, wild, tame = width_after(4.0), width_after(40.0), width_after(1.01)
    assert 0.6 < right < 1.6
    assert wild > 2 * right
    assert tame < 0.7 * right


def test_the_width_does_not_grow_without_end() -> None:
    calibration, raw = Calibration(), np.full(10, 5.0)
    law = (np.zeros(10, bool), np.ones(10), np.full(10, 100.0), 1.0)
    for _ in range(40):
        calibration.learn(raw, np.full(10, 10_000), *law)
        calibration.came[:], calibration.due[:] = 1.0, 1.0  # the expectation does not follow
    assert calibration.width == 50.0


def test_what_is_expected_moves_to_what_came_for_pages_seen_and_unseen_by_themselves() -> None:
    calibration = Calibration()
    raw, is_unseen = np.full(20, 2.0), np.arange(20) < 10
    assert calibration.expected(raw, is_unseen).tolist() == raw.tolist()
    for _ in range(300):
        calibration.learn(raw, np.where(is_unseen, 1, 6), is_unseen, np.ones(20), np.full(20, 3.0), 2.0)
    told = calibration.expected(raw, is_unseen)
    # What 50 cycles brought (the sum of 0.98, 0.98² …), beside 20 links as expected.
    for kind, came in ((1, 1.0), (0, 6.0)):
        by_hand = (10 * came / (1 - KEPT) + PSEUDO_LINKS) / (10 * 2.0 / (1 - KEPT) + PSEUDO_LINKS)
        assert np.allclose(told[is_unseen == bool(kind)], 2.0 * by_hand, rtol=0.01)


def test_visits_that_never_happened_teach_nothing() -> None:
    calibration, none = Calibration(), np.empty(0)
    calibration.learn(none, np.empty(0, np.int64), np.empty(0, bool), none, none, 2.0)
    assert calibration.width == 1.0
    assert np.allclose(calibration.came / calibration.due, 1.0)


def test_a_page_that_will_hardly_answer_has_an_interval_that_begins_and_ends_at_nothing() -> None:
    low, high, stated = Calibration().interval(np.array([0.5]), np.array([0.05]), np.array([5.0]), 1.0)
    assert (low[0], high[0]) == (0, 0)
    assert np.isclose(stated[0], 0.95, atol=0.01)


def test_the_law_is_that_of_scipy() -> None:
    chance = np.random.default_rng(1)
    successes, p = 10 ** chance.uniform(-4, 4, 3_000), chance.uniform(1e-4, 1 - 1e-6, 3_000)
    p[:500] = 1 - 10 ** chance.uniform(-6, -1, 500)
    law, theirs, q = NegativeBinomial(successes, p), nbinom(successes, p), chance.uniform(1e-9, 1 - 1e-9, 3_000)
    assert law.quantile(q).tolist() == theirs.ppf(q).tolist()
    count = np.floor(theirs.ppf(q)) - chance.integers(0, 3, 3_000)
    np.testing.assert_allclose(law.cdf(count), theirs.cdf(count), atol=1e-12)
    np.testing.assert_allclose(law.any(), theirs.sf(0), rtol=1e-9)
