"""Curves that differ in colour, mark and dash, and axes with the right unit."""

from __future__ import annotations

from itertools import combinations

import pytest

from recrawl.report.figures import curve_style, time_unit
from recrawl.report.stats import figures
from recrawl.report.stats.analysis import LinkStatistics


def test_any_six_curves_differ_in_colour_mark_and_dash() -> None:
    styles = [curve_style(i) for i in range(6)]
    for one, other in combinations(styles, 2):
        assert one["line"]["color"] != other["line"]["color"]
        assert one["line"]["dash"] != other["line"]["dash"]
        assert one["marker"]["symbol"] != other["marker"]["symbol"]


def test_no_two_of_forty_curves_look_the_same() -> None:
    looks = {
        (style["line"]["color"], style["line"]["dash"], style["marker"]["symbol"])
        for style in map(curve_style, range(40))
    }
    assert len(looks) == 40


@pytest.mark.parametrize(
    ("days", "unit"),
    [([0.04] * 3, "minutes"), ([0.05, 0.2, 9.0], "hours"), ([7.0, 7.1], "days"), ([400.0], "weeks"), ([], "hours")],
)
def test_lengths_of_time_have_the_unit_that_suits_them(days: list[float], unit: str) -> None:
    assert time_unit(days)[0] == unit


def test_rounds_are_drawn_at_their_dates(skewed_statistics: LinkStatistics) -> None:
    for draw in (figures.mean_figure, figures.none_figure):
        figure = draw(skewed_statistics)
        assert figure.layout.xaxis.type == "date"
        assert list(figure.data[0].x) == list(skewed_statistics.rounds[1:])
        assert "UTC" in figure.layout.xaxis.title.text
    extremes = figures.extreme_figure(skewed_statistics, "internal")
    assert extremes.layout.xaxis.type == "date"
    assert len({(trace.line.color, trace.line.dash, trace.marker.symbol) for trace in extremes.data}) == 8


def test_few_of_many_distributions_are_drawn(
    skewed_statistics: LinkStatistics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "MAX_CURVES", 3)
    names = [trace.name for trace in figures.ccdf_figure(skewed_statistics, "internal").data]
    assert names == ["07-20", "08-03", "08-17"]
