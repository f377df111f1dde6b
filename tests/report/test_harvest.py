"""The experiment on expected-harvest, on a collection whose pages are known to differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recrawl.policies.harvest.learning import credited
from recrawl.report.harvest.experiment import ABLATIONS, LEVELS, _later_links, calibrate, harvest, hide
from recrawl.report.harvest.page import (
    ablation_table,
    calibration_table,
    findings,
    harvest_tables,
    write_harvest_page,
)
from recrawl.testing import tiny_world
from recrawl.world.crawler import Crawler
from recrawl.world.recorded import World


@pytest.fixture(scope="module")
def world() -> World:
    return made_up(60)


def made_up(n_cycles: int) -> World:
    """Two sites, one of them ten times as busy; links stay for three cycles."""
    chance = np.random.default_rng(0)
    n_pages = 24
    shows: list[list[set[int]]] = [[{p, 100 + p} for p in range(n_pages)] for _ in range(n_cycles)]
    link = 1000
    for cycle in range(1, n_cycles):
        for p, n in enumerate(chance.poisson([2.0 if p < 12 else 0.2 for p in range(n_pages)])):
            for _ in range(n):
                for later in range(cycle, min(cycle + 3, n_cycles)):
                    shows[later][p].add(link)
                link += 1
    return tiny_world(shows, site=[0] * 12 + [1] * 12)


def test_all_parts_are_shown_in_tables_and_a_page(tmp_path: Path) -> None:
    found = harvest(made_up(20), [2, 4], orders=2, workers=1)
    assert [one.left_out for one in found.ablations] == [name for name in ABLATIONS if name != "related pages"]
    assert all(0 < share <= 1 for one in found.ablations for share in one.coverage)
    assert len(ablation_table(found).rows) == len(found.ablations)
    assert found.ablations[0].chance == (0.0, 0.0)
    assert all(error is not None and error >= 0 for one in found.ablations for error in one.chance)
    assert " ± " in str(ablation_table(found).rows[1][1])
    assert [row[0] for row in calibration_table(found).rows] == [2, 4]
    assert "What each part contributes" in write_harvest_page(tmp_path / "page.html", found).read_text("utf-8")
    assert [len(table.rows) for table in harvest_tables(found)] == [len(found.ablations), 2, 4]
    assert "With 2 pages per cycle, expected-harvest finds" in findings(found)[0]


def test_one_order_gives_no_standard_error() -> None:
    found = harvest(made_up(20), [2], ("ablation",), orders=1, workers=1)
    assert {error for one in found.ablations for error in one.chance} == {None}
    assert not any("±" in str(cell) for row in ablation_table(found).rows for cell in row)


def test_expectations_and_intervals_hold_on_links_that_appear_at_random(world: World) -> None:
    found = calibrate(world, 6)
    assert found.expected == pytest.approx(found.found, rel=0.15)
    for level in LEVELS:
        stated, held = found.levels[level]
        assert stated >= level
        assert held == pytest.approx(stated, abs=0.12)
    assert sum(n for *_, n in found.bins) == 6 * world.n_cycles


def test_a_page_without_a_past_is_predicted_by_its_site(world: World) -> None:
    found = hide(world, share=0.5)
    assert found.n_pages == 12
    assert found.skill["their own past"] > 0.6
    assert found.skill["one visit, and pages of its size and site"] > 0.3
    assert found.skill["one visit alone"] is None  # nothing distinguishes them
    assert "and related pages" not in found.skill  # the world has none


def test_later_links_are_counted_once_per_page() -> None:
    world = tiny_world([[{1}, {2}], [{1, 5}, {2}], [{1, 5, 6}, {6}], [{1, 6}, {2, 7}]])
    assert _later_links(world, 1).tolist() == [1, 2]


def test_a_link_counts_for_the_first_page_in_the_order_that_shows_it() -> None:
    crawler = Crawler(tiny_world([[{1}, {2}, {3}], [{1, 8, 9}, {2, 9}, {3, 7, 8}]]))
    visits = crawler.visit(np.arange(3)).visits
    assert credited(np.array([2, 0, 1]), np.zeros(3), visits).tolist() == [2, 1, 0]
    assert credited(np.array([1, 0, 2]), np.zeros(3), visits).tolist() == [1, 1, 1]
