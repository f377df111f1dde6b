from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from recrawl.report.stats.newlinks import (
    ccdfs,
    change_rates,
    concentrations,
    extreme_pages,
    group_flows,
    group_labels,
    group_stays,
    new_links,
    round_counts,
    spread,
)
from recrawl.world.panel import Panel

NAN = math.nan
PanelOf = Callable[..., Panel]


@pytest.fixture
def small(panel_of: PanelOf) -> Panel:
    internal = [[NAN, 0, 12, 0], [NAN, 2, 1, 3], [NAN, NAN, 0, 0], [NAN, 0, 0, 0]]
    external = [[NAN, 0, 0, 0], [NAN, 1, 0, 5], [NAN, NAN, 0, 1], [NAN, 0, 0, 0]]
    return panel_of(internal, external)


def test_mean_deviation_and_none_share_leave_unknown_cells_out(small: Panel) -> None:
    rows = {(row.links, row.round): row for row in round_counts(small)}
    assert {number for _, number in rows} == {1, 2, 3}
    first = rows["internal", 1]
    assert (first.n_pages, first.mean, first.none_rate) == (3, pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert first.deviation == pytest.approx(math.sqrt(((2 - 2 / 3) ** 2 + 2 * (2 / 3) ** 2) / 3))
    assert rows["all", 3].mean == pytest.approx((0 + 8 + 1 + 0) / 4)


def test_round_rows_agree_with_plain_python(skewed: Panel) -> None:
    for row in round_counts(skewed):
        known = [float(x) for x in new_links(skewed, row.links)[:, row.round] if not math.isnan(x)]
        mean = sum(known) / len(known)
        assert row.mean == pytest.approx(mean)
        assert row.deviation == pytest.approx(math.sqrt(sum((x - mean) ** 2 for x in known) / len(known)))
        assert row.none_rate == pytest.approx(known.count(0) / len(known))


def test_a_page_counts_by_the_share_of_its_known_rounds_with_new_links(small: Panel) -> None:
    internal = [(row.rate, row.n_pages) for row in change_rates(small) if row.links == "internal"]
    assert internal == [(0, 2), (pytest.approx(1 / 3), 1), (pytest.approx(2 / 3), 0), (1, 1)]


def test_rounding_of_change_rates_adds_no_page_to_never_or_always(panel_of: PanelOf) -> None:
    counts = np.zeros((3, 101))
    counts[:, 0] = NAN
    counts[1, 1] = 1  # once in 100 rounds
    counts[2, 1:100] = 1  # all but once
    rows = [row for row in change_rates(panel_of(counts, counts)) if row.links == "internal" and row.n_pages]
    assert [(row.rate, row.n_pages) for row in rows] == [(0, 1), (0.05, 1), (0.95, 1)]


def test_change_rates_of_one_round_are_never_or_always(panel_of: PanelOf) -> None:
    panel = panel_of([[NAN, 0], [NAN, 3], [NAN, 0]], [[NAN, 0]] * 3)
    assert [(row.rate, row.n_pages) for row in change_rates(panel) if row.links == "internal"] == [(0, 2), (1, 1)]


def test_groups_are_named_by_their_ends() -> None:
    assert group_labels((0, 1)) == ["0", "1", ">1"]
    assert group_labels((4, 9)) == ["0–4", "5–9", ">9"]


def test_flows_count_every_page_known_in_both_rounds_once(skewed: Panel) -> None:
    def group(x: float) -> str:
        return "0" if x == 0 else "1–2" if x <= 2 else "3–10" if x <= 10 else ">10"

    expected: Counter[tuple[int, int, str, str]] = Counter()
    for series in skewed.n_new_internal.tolist():
        for first in range(1, len(series) - 1):
            if not math.isnan(series[first]) and not math.isnan(series[first + 1]):
                expected[first, first + 1, group(series[first]), group(series[first + 1])] += 1
    flows = [flow for flow in group_flows(skewed) if flow.links == "internal"]
    assert {(f.from_round, f.to_round, f.from_group, f.to_group): f.n_pages for f in flows} == expected


def test_the_stay_rate_is_the_share_of_pages_on_the_diagonal(small: Panel) -> None:
    stays = {(row.links, row.from_round): row for row in group_stays(group_flows(small))}
    assert stays["internal", 1].n_pages == 3
    assert stays["internal", 1].stay_rate == pytest.approx(2 / 3)  # 0 → 12 moves, 2 → 1 and 0 → 0 stay
    assert stays["external", 2].stay_rate == pytest.approx(2 / 4)


def test_groups_can_be_chosen(small: Panel) -> None:
    groups = {flow.to_group for flow in group_flows(small, internal=(0,)) if flow.links == "internal"}
    assert groups == {"0", ">0"}


def test_ccdf_is_the_share_of_all_known_pages_with_at_least_so_many(skewed: Panel) -> None:
    for curve in ccdfs(skewed):
        counts = new_links(skewed, curve.links)[:, curve.round]
        known = counts[~np.isnan(counts)].tolist()
        for x, share in zip(curve.at_least, curve.share, strict=True):
            assert share == pytest.approx(sum(count >= x for count in known) / len(known))


def test_a_thinned_curve_keeps_both_ends() -> None:
    kept = spread(np.arange(1.0, 100_001.0), 50)
    assert kept.size <= 50
    assert (kept[0], kept[-1]) == (1, 100_000)


def test_the_richest_page_of_ten_holds_its_share_of_links(panel_of: PanelOf) -> None:
    counts = np.zeros((10, 3))
    counts[:, 0] = NAN
    counts[4, 1:] = 40
    counts[7, 1] = 20
    rows = concentrations(panel_of(counts, np.zeros((10, 3))), page_rates=(0.1, 0.2))
    assert [(row.links, row.page_rate, row.link_rate) for row in rows] == [
        ("internal", 0.1, pytest.approx(0.8)),
        ("internal", 0.2, 1.0),
    ]


def test_extreme_pages_are_those_with_most_new_links_in_one_round(small: Panel) -> None:
    first, second, third = extreme_pages(small)
    assert (first.n_most, first.round, first.internal) == (12, 2, (None, 0, 12, 0))
    assert (second.n_most, second.round, second.external) == (8, 3, (None, 1, 0, 5))
    assert third.n_most == 1
    assert len(extreme_pages(small, n_pages=1)) == 1
