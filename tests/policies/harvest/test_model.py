"""What the model learns from a few pages whose links arrive and leave by a rule."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from recrawl.core.times import US_PER_HOUR
from recrawl.policies.harvest.learning import _half_life
from recrawl.policies.harvest.model import StockModel
from recrawl.policies.harvest.parts import Parts
from recrawl.testing import Shown, tiny_world
from recrawl.world.crawler import Crawler
from recrawl.world.recorded import FAILED, NOTHING

N_CYCLES = 240


def watched(shows: list[list[Shown]], visits: list[list[int]], **parts: bool) -> tuple[StockModel, float]:
    """A model that saw these pages in turn, and the time of the last cycle."""
    world = tiny_world(shows, site=[0] * len(shows[0]))
    crawler = Crawler(world)
    model = StockModel(crawler.pages, Parts(**parts))
    model.observe(crawler.first.visits)
    for cycle in range(1, world.n_cycles + 1):
        model.observe(crawler.visit(np.array(visits[cycle % len(visits)], np.int64)).visits)
    return model, float(world.time[-1]) / US_PER_HOUR


def steady(per_cycle: int, stay: int, n_cycles: int = N_CYCLES) -> list[list[Shown]]:
    """Two pages gain links that stay for `stay` cycles; every second link is on both."""

    def shown(page: int, cycle: int) -> set[int]:
        fresh = range(per_cycle * max(0, cycle - stay + 1), per_cycle * (cycle + 1))
        return {x if x % 2 else x + 1_000_000 * page for x in fresh}

    return [[shown(0, t), shown(1, t)] for t in range(n_cycles)]


@pytest.mark.parametrize("visits", [[[0, 1]], [[0], [1]], [[0, 1], [0], [1]], [[0], [], [0], [0, 1]]])
def test_the_share_of_links_that_a_sibling_shows_does_not_depend_on_when_it_is_visited(visits: list[list[int]]) -> None:
    model, _ = watched(steady(per_cycle=6, stay=40), visits)
    for page in (0, 1):
        sibling, share = model.pairs().closest(page)
        assert sibling == 1 - page
        assert 0.38 < share < 0.62


@pytest.mark.parametrize("visits", [[[0, 1]], [[0, 1], [], []]])
def test_the_rate_is_that_at_which_links_arrive_however_seldom_a_page_is_visited(visits: list[list[int]]) -> None:
    model, _ = watched(steady(per_cycle=4, stay=60), visits)
    assert np.allclose(model.rate(), 4.0, rtol=0.1)


def test_a_page_that_fails_is_expected_to_bring_less_unless_failures_are_left_out() -> None:
    shows = [[FAILED if t > N_CYCLES - 9 else row[0], row[1]] for t, row in enumerate(steady(4, 60))]
    for failures in (True, False):
        model, now = watched(shows, [[0, 1]], failures=failures)
        predicted = model.predict(now + 1, 2.0, 100.0)
        assert (predicted.answers[0] < 0.5) == failures
        assert np.array_equal(predicted.raw, predicted.worth.stock * predicted.answers)


def test_parts_that_are_left_out_have_no_effect() -> None:
    shows, visits = steady(4, 2), [[0], [1]]
    without, now = watched(shows, visits, rhythm=False, overlap=False, lifetimes=False)
    assert without.clock(now)[0] == now
    assert without.pairs().closest(0) == (-1, 0.0)
    assert not without.streams.followed.any()
    whole, _ = watched(shows, visits)
    assert (whole.unshared.share() > 0).all()
    assert not watched(shows, visits, alone=False)[0].unshared.share().any()
    assert whole.pairs().closest(0)[0] == 1
    assert whole.streams.followed.any()


def test_a_page_seen_once_is_expected_to_change_like_those_of_its_folder() -> None:
    busy, quiet = range(1, 11), range(11, 21)  # pages of a site; pages 0 and 21 are seen for the first time at the end
    shows: list[list[Shown]] = [
        [
            {p} | ({100 * t + p} if p in busy else set()) if p in (*busy, *quiet) or t == 39 else NOTHING
            for p in range(22)
        ]
        for t in range(40)
    ]
    world = replace(
        tiny_world(shows, site=[0] * 22),
        url=pa.array(
            [f"http://e.org/{'busy' if p < 11 else 'quiet'}/{'abcdefghijklmnopqrstuv'[p]}" for p in range(22)]
        ),
    )
    rates = {}
    for folders in (True, False):
        crawler = Crawler(world)
        model = StockModel(crawler.pages, Parts(folders=folders))
        model.observe(crawler.first.visits)
        for _ in range(1, world.n_cycles + 1):
            model.observe(crawler.visit(np.arange(22)).visits)
        model.refit()
        rates[folders] = model.rate()[[0, 21]]
    assert rates[True][0] > 20 * rates[True][1]
    assert rates[False][0] == rates[False][1]


def test_the_past_of_a_page_that_is_hardly_ever_visited_counts_no_longer_than_thirty_sweeps() -> None:
    model, _ = watched(steady(4, 60), [[0, 1]])  # two pages, cycles of an hour
    often, seldom = 100.0, 10_000.0
    assert np.allclose(_half_life(model, np.array([often, seldom])), 24 * 60)  # sixty days are longer
    model.n_of_whole, model._n_visits = (
        1_000,
        [1, 1, 1, 5],
    )  # a cycle in which more are visited does not change it much
    assert np.allclose(_half_life(model, np.array([often, seldom])), [30 * often, 30 * 500.0])
