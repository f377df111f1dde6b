"""Rates of updates: numbers worked out by hand, scipy's Brent page by page, and simulated Poisson pages."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import brentq

from recrawl.core.times import NEVER
from recrawl.insight.rates import (
    ESTIMATORS,
    Intervals,
    LawOfLargeNumbers,
    StochasticApproximation,
    interpolated_intervals,
    last_updates,
    maximum_likelihood_rate,
    observed_intervals,
    probability_of_change,
    regular_rate,
    simple_rate,
)

DAY = 86_400_000_000
SECOND = 1 / 86_400


def visits_of(*pages: list[tuple[float, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int8]]:
    """Visits of each page as (day, what it showed)."""
    start = np.cumsum([0, *map(len, pages)]).astype(np.int64)
    flat = [visit for page in pages for visit in page]
    return start, np.array([int(day * DAY) for day, _ in flat], np.int64), np.array([c for _, c in flat], np.int8)


def one_page(*intervals: tuple[float, bool]) -> Intervals:
    days, changed = zip(*intervals, strict=True) if intervals else ((), ())
    return Intervals(np.array([0, len(days)]), np.array(days, float), np.array(changed, bool))


def of_page(intervals: Intervals, page: int) -> list[tuple[float, bool]]:
    part = slice(intervals.start[page], intervals.start[page + 1])
    return list(zip(intervals.days[part].tolist(), intervals.changed[part].tolist(), strict=True))


def by_brent(lengths: list[float], quiet: float) -> float:
    def difference(rate: float) -> float:
        return sum(t / math.expm1(rate * t) if rate * t < 700 else 0.0 for t in lengths) - quiet

    low, high = 1e-12, 1.0
    while difference(high) > 0:
        high *= 2
    return float(brentq(difference, low, high, xtol=1e-300, rtol=1e-15, maxiter=1000))


def test_observed_intervals_run_from_visit_to_visit() -> None:
    found = observed_intervals(*visits_of([(0, -1), (3, 1), (10, 0)], [], [(5, -1)], [(1, -1), (2, 0)], []))
    assert [of_page(found, page) for page in range(5)] == [[(3, True), (7, False)], [], [], [(1, False)], []]


def test_interpolated_updates_lie_halfway_between_two_visits() -> None:
    found = interpolated_intervals(*visits_of([(0, -1), (4, 1), (10, 1), (20, 0), (21, 0)]))
    # Updates at days 2 and 7: the second comes 5 days after the first, and day 20 is 13 days after the second.
    assert of_page(found, 0) == [(2, True), (5, True), (13, False), (1, False)]


def test_a_baseline_ends_no_interval_and_begins_the_next() -> None:
    visits = visits_of([(0, -1), (4, 1), (10, -1), (12, 1), (20, 0)])
    assert of_page(observed_intervals(*visits), 0) == [(4, True), (2, True), (8, False)]
    assert of_page(interpolated_intervals(*visits), 0) == [(2, True), (1, True), (9, False)]


def test_the_first_visit_of_a_page_tells_nothing_even_where_a_window_was_cut_out() -> None:
    visits = visits_of([(0, 0), (2, 0)], [(7, 1), (8, 0)])
    for build in (observed_intervals, interpolated_intervals):
        assert [of_page(build(*visits), page) for page in (0, 1)] == [[(2, False)], [(1, False)]]
    assert (last_updates(*visits) == NEVER).all()


def test_no_visits_make_no_intervals() -> None:
    empty = observed_intervals(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int8))
    assert all(len(estimate(empty)) == 0 for estimate in ESTIMATORS.values())


def test_last_updates_are_those_of_each_page() -> None:
    visits = visits_of([(0, -1), (4, 1), (10, 1), (20, 0)], [(0, -1), (4, 0)], [(0, -1), (6, 1)])
    assert last_updates(*visits).tolist() == [7 * DAY, NEVER, 3 * DAY]
    assert last_updates(*visits, interpolated=False).tolist() == [10 * DAY, NEVER, 6 * DAY]


def test_rates_of_a_regular_history_worked_out_by_hand() -> None:
    weeks = one_page((7, True), (7, False), (7, False), (7, False))
    assert simple_rate(weeks)[0] == pytest.approx(1 / 28)
    assert regular_rate(weeks)[0] == pytest.approx(math.log(4.5 / 3.5) / 7)
    assert maximum_likelihood_rate(weeks)[0] == pytest.approx(math.log(4 / 3) / 7, rel=1e-12)  # 1/(e^7λ - 1) = 3


def test_irregular_intervals_are_weighed_by_their_length() -> None:
    # 2/(e^2λ - 1) = 1 at λ = ln 3 / 2.
    assert maximum_likelihood_rate(one_page((2, True), (1, False)))[0] == pytest.approx(math.log(3) / 2, rel=1e-12)


def test_a_page_that_changed_at_every_visit_gets_equation_4() -> None:
    always = one_page((3, True), (5, True))
    assert maximum_likelihood_rate(always)[0] == pytest.approx(math.log(2.5 / 0.5) * 2 / 8)
    assert maximum_likelihood_rate(always) == pytest.approx(regular_rate(always))


def test_a_page_that_never_changed_has_rate_0() -> None:
    never = one_page((3, False), (5, False))
    assert [estimate(never)[0] for estimate in ESTIMATORS.values()] == [0] * len(ESTIMATORS)


def test_added_intervals_keep_rates_moderate() -> None:
    known = {"prior_days": 0.5, "bounds": (0.0005, 7.0)}
    assert maximum_likelihood_rate(one_page(), **known)[0] == pytest.approx(2 * math.log(2), rel=1e-12)  # type: ignore[arg-type]
    quiet = maximum_likelihood_rate(one_page((400, False)), **known)[0]  # type: ignore[arg-type]
    assert quiet == pytest.approx(by_brent([0.5], 400.5), rel=1e-9)
    assert maximum_likelihood_rate(one_page((1e5, False)), **known)[0] == 0.0005  # type: ignore[arg-type]
    assert maximum_likelihood_rate(one_page(*[(SECOND, True)] * 99), **known)[0] == 7  # type: ignore[arg-type]


def test_a_negative_prior_is_refused() -> None:
    with pytest.raises(ValueError, match="prior_days is -1"):
        maximum_likelihood_rate(one_page(), prior_days=-1)


lengths = st.floats(SECOND, 40_000)
histories = st.lists(st.tuples(lengths, st.booleans()), min_size=1, max_size=25)


@given(histories)
def test_the_root_is_that_of_brents_method(history: list[tuple[float, bool]]) -> None:
    found = maximum_likelihood_rate(one_page(*history))[0]
    changed, quiet = [d for d, c in history if c], sum(d for d, c in history if not c)
    if changed and quiet:
        assert found == pytest.approx(by_brent(changed, quiet), rel=1e-9)
    else:
        assert found == pytest.approx(regular_rate(one_page(*history))[0])


@given(st.lists(st.tuples(st.sampled_from([0.0, 1e-11, SECOND, 1.0, 4_000.0, 1e7]), st.booleans()), max_size=12))
def test_extreme_intervals_give_finite_rates(history: list[tuple[float, bool]]) -> None:
    for prior in (0.0, 0.5):
        rate = maximum_likelihood_rate(one_page(*history), prior_days=prior)[0]
        assert math.isfinite(rate)
        assert rate >= 0
    assert all(math.isfinite(estimate(one_page(*history))[0]) for estimate in ESTIMATORS.values())


@given(histories, st.integers(0, 24))
def test_one_more_changed_interval_means_a_larger_rate(history: list[tuple[float, bool]], i: int) -> None:
    # Among histories with a quiet interval left: once all have changed Eq. 4 takes over, which is another scale.
    history = [*history, (1.0, False)]
    more = [(d, c or k == i % (len(history) - 1)) for k, (d, c) in enumerate(history)]
    for estimate in ESTIMATORS.values():
        assert estimate(one_page(*more))[0] >= estimate(one_page(*history))[0] * (1 - 1e-12)


@given(st.lists(histories, max_size=5))
def test_pages_do_not_disturb_each_other(pages: list[list[tuple[float, bool]]]) -> None:
    flat = [interval for page in pages for interval in page]
    together = Intervals(
        np.cumsum([0, *map(len, pages)]).astype(np.int64),
        np.array([d for d, _ in flat], float),
        np.array([c for _, c in flat], bool),
    )
    for estimate in ESTIMATORS.values():
        alone = [estimate(one_page(*page))[0] for page in pages]
        assert estimate(together).tolist() == pytest.approx(alone)


def test_visits_at_one_moment_leave_the_estimates_alone() -> None:
    visits = visits_of([(0, -1), (0, 1), (7, 0), (7, 1), (14, 1)])
    plain = visits_of([(0, -1), (7, 0), (14, 1)])
    for estimate in ESTIMATORS.values():
        assert estimate(observed_intervals(*visits)) == pytest.approx(estimate(observed_intervals(*plain)))


def test_the_likeliest_rate_of_simulated_pages_is_the_true_one() -> None:
    random, rate = np.random.default_rng(1), 0.2
    days = random.exponential(6, 40_000)
    changed = random.random(len(days)) < -np.expm1(-rate * days)
    page = Intervals(np.array([0, len(days)]), days, changed)
    assert maximum_likelihood_rate(page)[0] == pytest.approx(rate, rel=0.03)
    assert simple_rate(page)[0] < 0.7 * rate  # biased low, as the paper says


def test_probability_of_change_follows_the_time_since_the_last_update() -> None:
    # HACS II-E: λ = 0.1, last update 3 days ago, e = 7 days.
    assert probability_of_change(0.1, 0, 3 * DAY, 7) == pytest.approx(1 - math.exp(-1))
    assert probability_of_change([0.1, 0.1], [0, NEVER], 3 * DAY, 7).tolist() == pytest.approx([1 - math.exp(-1), 0])
    assert probability_of_change(5.0, 10 * DAY, 0, 7) == 0  # a clock that went backwards


@pytest.mark.parametrize("kind", [LawOfLargeNumbers, StochasticApproximation])
def test_incremental_estimates_approach_the_rates_of_poisson_pages(kind: type) -> None:
    random, n_alike = np.random.default_rng(3), 200
    true = np.repeat([0.05, 0.3, 1.0, 2.5], n_alike)
    visits_per_day = np.repeat([0.5, 1.0, 1.0, 2.0], n_alike)
    estimator, errors = kind(len(true), visits_per_day), []
    for n_visits in (100, 3_900):
        for _ in range(n_visits):
            waits = random.exponential(1 / visits_per_day)
            estimator.observe(np.arange(len(true)), random.random(len(true)) < -np.expm1(-true * waits))
        errors.append((estimator.rates_per_day / true - 1).reshape(4, n_alike))
    assert np.abs(errors[1].mean(axis=1)).max() < 0.02
    assert (np.sqrt((errors[1] ** 2).mean(axis=1)) < 0.5 * np.sqrt((errors[0] ** 2).mean(axis=1))).all()


def test_stochastic_approximation_takes_exactly_the_steps_of_its_recursion() -> None:
    random = np.random.default_rng(4)
    pages, changed = random.integers(0, 3, 500), random.random(500) < 0.4
    frequency, rates, n_visits = [0.5, 1.0, 3.0], [0.2, 0.2, 0.2], [0, 0, 0]
    for page, is_changed in zip(pages, changed, strict=True):
        eta = (n_visits[page] + 1) ** -0.6
        rates[page] += eta * (is_changed * (rates[page] + frequency[page]) - rates[page])
        n_visits[page] += 1
    estimator = StochasticApproximation(3, frequency, decay=0.6, first_rates_per_day=0.2)
    estimator.observe(pages[:200], changed[:200])
    estimator.observe(pages[200:], changed[200:])
    assert estimator.rates_per_day == pytest.approx(rates, rel=1e-12)


@given(histories)
def test_incremental_estimators_can_be_chosen_by_name(history: list[tuple[float, bool]]) -> None:
    visits_per_day = len(history) / sum(days for days, _ in history)
    for name, kind in (
        ("law-of-large-numbers", LawOfLargeNumbers),
        ("stochastic-approximation", StochasticApproximation),
    ):
        estimator = kind(1, visits_per_day)
        for _, changed in history:
            estimator.observe([0], [changed])
        assert ESTIMATORS[name](one_page(*history)) == pytest.approx(estimator.rates_per_day, rel=1e-12)


def test_law_of_large_numbers_is_its_formula() -> None:
    estimator = LawOfLargeNumbers(2, [2.0, 1.0], guard=0.5)
    estimator.observe([0, 0, 0, 1], [1, 1, 1, 0])
    guard = 0.5 * (1 + math.log(4))
    assert estimator.rates_per_day == pytest.approx([2 * 3 / (3 + guard - 3), 0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LawOfLargeNumbers(1, 1.0, guard=0), "guard is 0"),
        (lambda: StochasticApproximation(1, 1.0, decay=0.5), r"decay is 0\.5"),
        (lambda: StochasticApproximation(2, [1.0, 0.0]), "visits_per_day"),
        (lambda: LawOfLargeNumbers(2, math.inf), "visits_per_day"),
        (lambda: LawOfLargeNumbers(1, 1.0).observe([0], [-1]), "nothing to compare"),
        (lambda: LawOfLargeNumbers(1, 1.0).observe([0], [1, 0]), "one for each"),
    ],
)
def test_wrong_settings_are_refused_with_a_sentence(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]
