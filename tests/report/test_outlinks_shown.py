"""The share of external outlinks, and the imbalance ratio, with the papers' numbers and against plain loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from recrawl.report.stats.analysis import LinkStatistics
from recrawl.report.stats.newlinks import new_links, round_counts
from recrawl.report.stats.outlinks import outlink_shares
from recrawl.report.stats.tables import none_table, outlink_table
from recrawl.world.panel import Panel

NAN = math.nan


def test_external_links_are_counted_among_all_links_of_a_round(panel_of: Callable[..., Panel]) -> None:
    """By hand; and 853 internal to 147 external links are the papers' 14.7%."""
    internal = np.array([[800, 10, NAN], [53, 0, NAN], [NAN, 2, NAN]], np.float32)
    external = np.array([[100, 5, NAN], [47, 0, NAN], [NAN, 3, NAN]], np.float32)
    panel = replace(panel_of(0 * internal, 0 * external), base={"n_internal": internal, "n_external": external})
    first, second = outlink_shares(panel)
    assert (first.round, first.n_pages, first.n_internal, first.n_external) == (0, 2, 853, 147)
    assert first.external_rate == pytest.approx(0.147)
    assert (second.n_pages, second.external_rate) == (3, pytest.approx(8 / 20))
    assert outlink_shares(replace(panel, base={})) == []
    none = np.zeros((3, 3), np.float32)
    assert outlink_shares(replace(panel, base={"n_internal": none, "n_external": none}))[0].external_rate is None


def test_the_imbalance_is_pages_without_for_every_page_with(skewed: Panel, panel_of: Callable[..., Panel]) -> None:
    for row in round_counts(skewed):
        known = [x for x in new_links(skewed, row.links)[:, row.round].tolist() if not math.isnan(x)]
        assert row.imbalance == pytest.approx(known.count(0) / sum(x > 0 for x in known))
        assert row.imbalance == pytest.approx(row.none_rate / (1 - row.none_rate))
    quiet = panel_of([[NAN, 0], [NAN, 0]], [[NAN, 0], [NAN, 2]])
    assert [row.imbalance for row in round_counts(quiet)] == [None, 1, 1]


def test_both_are_in_the_tables_and_in_json(skewed_statistics: LinkStatistics) -> None:
    shares = outlink_table(skewed_statistics)
    assert shares.header[-1] == "external share"
    assert [row[-1] for row in shares.texts()] == ["14.7%"] * len(skewed_statistics.rounds)
    header = none_table(skewed_statistics).header
    assert header[3:] == ("all", "all : 1", "internal", "int. : 1", "external", "ext. : 1")
    plain = skewed_statistics.as_dict()
    assert plain["outlink_shares"][-1]["external_rate"] == pytest.approx(5 / 34)
    assert plain["round_counts"][0]["imbalance"] > 0
