import numpy as np
import pytest
from scipy.stats import nbinom

from recrawl.models.distributions import NegativeBinomial
from recrawl.policies.harvest.interval import KEPT, PSEUDO_LINKS, QUANTILES, Calibration, _ranks

N = 4_000


def learn(calibration, raw, brought, is_unseen, answers, shape, dispersion) -> None:
    """Every visit is in the sample."""
    rows = {
        "raw": raw,
        "brought": brought.astype(float),
        "unseen": is_unseen.astype(float),
        "answers": answers,
        "shape": shape,
    }
    found, due = (np.array([values[~is_unseen].sum(), values[is_unseen].sum()]) for values in (brought, raw))
    calibration.learn(rows, found, due, dispersion)


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


def trained(mean: float, answers: float, shape: float, spread: float, model_spread: float) -> Calibration:
    """After many visits of one kind, when the model believes in another spread."""
    calibration = Calibration()
    for cycle in range(200):
        brought = drawn(cycle, mean, answers, shape, spread)[:50]
        law = (np.full(50, answers), np.full(50, shape), model_spread)
        learn(calibration, np.full(50, mean), brought, np.zeros(50, bool), *law)
        calibration.found[:], calibration.due[:] = 1.0, 1.0  # the expectation is right
    return calibration


@pytest.mark.parametrize(("mean", "answers", "shape", "spread"), LAWS)
@pytest.mark.parametrize("factor", [1.0, 0.5, 3.0])
@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_counts_fall_into_their_intervals_as_often_as_stated_whatever_the_model_believes(
    mean: float, answers: float, shape: float, spread: float, factor: float, level: float
) -> None:
    model_spread = max(1.05, factor * spread)
    calibration = trained(mean, answers, shape, spread, model_spread)
    law = [np.array([value]) for value in (mean, answers, shape)]
    low, high, stated = (end[0] for end in calibration.interval(*law, model_spread, level))
    brought = drawn(1_000, mean, answers, shape, spread)
    assert stated >= level - 1e-9
    assert abs(((brought >= low) & (brought <= high)).mean() - stated) < 0.04
    assert (brought > high).mean() < (1 - level) / 2 + 0.03
    assert (brought < low).mean() < (1 - level) / 2 + 0.03
    assert abs((brought > 0).mean() - calibration.probability(*law, model_spread)[0]) < 0.03


def test_all_or_nothing_is_learnt() -> None:
    """Fifty links on one visit of five, and none on the others: no negative binomial distribution has that."""
    calibration, chance = Calibration(), np.random.default_rng(0)
    for _ in range(200):
        brought = np.where(chance.random(40) < 0.2, chance.poisson(50.0, 40), 0)
        learn(calibration, np.full(40, 10.0), brought, np.zeros(40, bool), np.ones(40), np.full(40, 20.0), 3.0)
    law = (np.array([10.0]), np.ones(1), np.array([20.0]), 3.0)
    assert abs(calibration.probability(*law)[0] - 0.2) < 0.03
    low, high, stated = (end[0] for end in calibration.interval(*law))
    assert low == 0
    assert 40 < high < 60
    low, high, stated = (end[0] for end in calibration.interval(*law, 0.5))
    assert (low, high) == (0, 0)
    assert abs(stated - 0.8) < 0.03


def test_counts_of_busy_pages_may_be_nearer_to_what_is_expected_than_those_of_others() -> None:
    calibration, chance = Calibration(), np.random.default_rng(0)
    mean = np.repeat([10.0, 200.0], 30)

    def brought() -> np.ndarray:
        return np.where(mean < 100, 1 + chance.geometric(1 / 9.0, 60), chance.poisson(mean))

    for _ in range(150):
        learn(calibration, mean, brought(), np.zeros(60, bool), np.ones(60), np.full(60, 50.0), 4.0)
        calibration.found[:], calibration.due[:] = 1.0, 1.0
    low, high, stated = calibration.interval(mean, np.ones(60), np.full(60, 50.0), 4.0)
    counts = np.array([brought() for _ in range(200)])
    held = ((counts >= low) & (counts <= high)).mean(axis=0)
    for some in (slice(0, 30), slice(30, 60)):
        assert abs(held[some].mean() - stated[some].mean()) < 0.06


def test_intervals_before_anything_was_learnt_are_those_of_the_model() -> None:
    calibration = Calibration()
    for mean, answers, shape, spread in LAWS:
        law = [np.array([value]) for value in (mean, answers, shape)]
        given = mean / answers
        variance = spread * given + given**2 / shape
        theirs = nbinom(given**2 / (variance - given), given / variance)
        assert np.isclose(calibration.probability(*law, spread)[0], min(answers * theirs.sf(0), mean))


def test_a_count_that_spans_several_quantiles_is_divided_among_them() -> None:
    law = NegativeBinomial.of_failures(
        np.array([1.0, 1.0]), np.array([0.5, 0.5])
    )  # half of the counts are 0, a quarter 1
    ranks = _ranks(law, np.array([0.0, 1.0]))
    assert np.allclose(ranks.sum(axis=1), 1)
    ranks = ranks.sum(axis=0)
    middle = np.searchsorted(QUANTILES, 0.5)
    assert np.allclose(ranks[:middle], 2 * np.diff(QUANTILES)[:middle])
    upper = (QUANTILES[:-1] >= 0.5) & (QUANTILES[1:] <= 0.7)
    assert np.allclose(ranks[upper], 4 * np.diff(QUANTILES)[upper])


def test_expectations_move_to_what_was_found_separately_for_pages_seen_and_unseen() -> None:
    calibration = Calibration()
    raw, is_unseen = np.full(20, 2.0), np.arange(20) < 10
    assert calibration.expected(raw, is_unseen).tolist() == raw.tolist()
    for _ in range(300):
        learn(calibration, raw, np.where(is_unseen, 1, 6), is_unseen, np.ones(20), np.full(20, 3.0), 2.0)
    expected = calibration.expected(raw, is_unseen)
    # What 50 cycles brought (the sum of 0.98, 0.98² …), beside a hundred links as expected.
    for kind, n in ((1, 1.0), (0, 6.0)):
        by_hand = (10 * n / (1 - KEPT) + PSEUDO_LINKS) / (10 * 2.0 / (1 - KEPT) + PSEUDO_LINKS)
        assert np.allclose(expected[is_unseen == bool(kind)], 2.0 * by_hand, rtol=0.01)


def test_visits_that_never_happened_teach_nothing() -> None:
    calibration, none = Calibration(), np.empty(0)
    learn(calibration, none, np.empty(0, np.int64), np.empty(0, bool), none, none, 2.0)
    assert np.allclose(calibration.found / calibration.due, 1.0)
    predicted = np.array([1e-9, 0.01, 0.5, 0.9])
    assert np.allclose(calibration.any.corrected(predicted), predicted)
    assert np.allclose(calibration._seen(), QUANTILES)


def test_a_page_that_will_hardly_answer_has_an_interval_that_begins_and_ends_at_nothing() -> None:
    low, high, stated = Calibration().interval(np.array([0.5]), np.array([0.05]), np.array([5.0]), 1.0)
    assert (low[0], high[0]) == (0, 0)
    assert np.isclose(stated[0], 0.95, atol=0.01)
