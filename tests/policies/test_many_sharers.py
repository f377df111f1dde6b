"""Links that hundreds of pages show at once make these pages twins, and are no cliff."""

from __future__ import annotations

import pytest

from recrawl.policies import WindowedClique
from recrawl.policies.budget import Budget
from recrawl.policies.overlap import MAX_SHARERS, Overlap
from recrawl.testing import Case, choices, tiny_world
from recrawl.world.crawler import Crawler


@pytest.mark.parametrize("n", [MAX_SHARERS, MAX_SHARERS + 1, 3 * MAX_SHARERS])
def test_of_pages_that_show_the_same_links_one_is_picked_however_many_there_are(n: int) -> None:
    shows = [[{10 * cycle, 10 * cycle + 1} for _ in range(n)] for cycle in range(6)]
    world = tiny_world(shows, site=[0] * n)
    *_, last = choices(WindowedClique(fill=False), Case(world, (Budget(n), Budget(n), Budget(5))))
    assert len(last) == 1


def test_pages_with_links_of_their_own_beside_those_of_all_are_no_twins() -> None:
    n = MAX_SHARERS + 50
    crawler = Crawler(tiny_world([[set[int]()] * n, [{1, 2, 100 + p, 1000 + p} for p in range(n)]], site=[0] * n))
    overlap = Overlap(crawler.pages.site)
    overlap.observe(crawler.visit_recorded().visits)
    assert not overlap.twin.any()
