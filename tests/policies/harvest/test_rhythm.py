import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from recrawl.policies.harvest.rhythm import HOURS, Rhythm, _spread

MONDAY = 2_600 * HOURS  # hours since 1970; the week of the clock begins where the hours of 1970 do


def uneven(seed: int = 0) -> Rhythm:
    rhythm = Rhythm(pseudo_links=5.0)
    chance = np.random.default_rng(seed)
    rhythm.arrivals, rhythm.due = chance.gamma(0.5, 50.0, HOURS), chance.gamma(5.0, 5.0, HOURS)
    rhythm.refit()
    return rhythm


@given(st.floats(0, 1e6), st.floats(0, 1e3))
def test_the_clock_never_goes_back(start: float, more: float) -> None:
    at = uneven().at(np.array([start, start + more]))
    assert at[1] >= at[0] - 1e-6


@given(st.floats(0, 1e6))
def test_a_week_by_the_clock_is_a_week(start: float) -> None:
    rhythm = uneven()
    assert rhythm.speed.std() > 0.3
    assert np.isclose(rhythm.at(start + HOURS) - rhythm.at(start), HOURS)


def test_the_clock_is_the_integral_of_its_speed() -> None:
    rhythm = uneven()
    for start, end in ((0.3, 0.9), (5.0, 9.25), (160.5, 175.25), (MONDAY + 0.5, MONDAY + 30.75)):
        whole = range(int(start) + 1, int(end) + 1)
        speed, _ = quad(lambda t: rhythm.speed[int(t) % HOURS], start, end, points=list(whole), limit=200)
        assert np.isclose(rhythm.at(end) - rhythm.at(start), speed)


def test_an_unknown_time_has_no_place_on_the_clock() -> None:
    assert np.isnan(uneven().at(np.array([np.nan, 3.0]))).tolist() == [True, False]


def test_hours_in_which_links_arrive_run_faster_and_all_others_slower() -> None:
    rhythm = Rhythm(pseudo_links=10.0)
    for hour in range(MONDAY, MONDAY + 4 * HOURS):
        is_busy = 9 <= hour % 24 < 12
        links = np.array([40.0 if is_busy else 0.0])
        rhythm.learn(rhythm.by_hour(np.array([float(hour)]), np.array([hour + 1.0]), links, np.array([5.0])).values())
    rhythm.refit()
    is_busy = np.isin(np.arange(HOURS) % 24, (9, 10, 11))
    assert rhythm.speed[is_busy].min() > 1.5
    assert rhythm.speed[~is_busy].max() < 0.5 * rhythm.speed[is_busy].min()


def test_an_hour_of_the_week_is_as_busy_as_that_hour_and_that_day_until_it_shows() -> None:
    rhythm = Rhythm(pseudo_links=20.0)
    chance = np.random.default_rng(0)
    rhythm.due = np.full(HOURS, 30.0)
    rhythm.arrivals = chance.poisson(30.0, HOURS).astype(float)
    rhythm.arrivals[24:48] *= 2.0  # a busy day
    rhythm.arrivals[9::24] *= 3.0  # a busy hour of all days
    rhythm.arrivals[5 * 24 + 9] = 0.0  # but of one
    rhythm.refit()
    due = 30.0 * rhythm.arrivals.sum() / rhythm.due.sum()
    hour = [(sum(rhythm.arrivals[h::24]) + 20) / (7 * due + 20) for h in range(24)]
    day = [(sum(rhythm.arrivals[24 * d : 24 * d + 24]) + 20) / (sum(hour) * due + 20) for d in range(7)]
    speed = [(rhythm.arrivals[i] + 20) / (due + 20 / (day[i // 24] * hour[i % 24])) for i in range(HOURS)]
    assert np.allclose(rhythm.speed, np.array(speed) / np.mean(speed))
    assert rhythm.speed[24 + 9] == rhythm.speed.max()
    assert rhythm.speed[5 * 24 + 9] < 0.5 * rhythm.speed[4 * 24 + 9]


def test_links_of_a_long_time_say_nothing_about_the_hour() -> None:
    rhythm = Rhythm()
    rhythm.learn(
        rhythm.by_hour(np.array([0.0, 20.0, 25.0]), np.full(3, 20.0), np.array([9.0, 9.0, 9.0]), np.ones(3)).values()
    )
    assert rhythm.arrivals.sum() == 0


@given(st.floats(0, 1e5), st.lists(st.tuples(st.floats(0.01, 12), st.integers(0, 50), st.floats(0, 9)), min_size=1))
def test_every_link_is_divided_among_the_hours_in_which_it_may_have_arrived(
    now: float, visits: list[tuple[float, int, float]]
) -> None:
    gap, n_links, rate = (np.array(column, np.float64) for column in zip(*visits, strict=True))
    speed = uneven(1).speed
    place, *parts = _spread(now - gap, np.full(len(gap), now), n_links, rate, speed, 14)
    arrivals, due = (np.bincount(place, part, HOURS) for part in parts)
    assert np.isclose(arrivals.sum(), n_links.sum())
    assert np.isclose(due.sum(), rate @ gap, atol=1e-6)
    touched = {int(h) % HOURS for h in range(int(np.floor(now - gap.max())), int(np.ceil(now + 1e-6)))}
    assert set(np.flatnonzero(arrivals)) <= touched


def test_links_are_divided_by_speed_and_time() -> None:
    speed = np.ones(HOURS)
    speed[3] = 3.0
    place, *parts = _spread(np.array([2.5]), np.array([4.0]), np.array([7.0]), np.array([2.0]), speed, 14)
    arrivals, due = (np.bincount(place, part, HOURS) for part in parts)
    assert np.allclose(arrivals[[2, 3]], [1.0, 6.0])  # half an hour at speed 1, an hour at speed 3
    assert np.allclose(due[[2, 3]], [1.0, 2.0])
