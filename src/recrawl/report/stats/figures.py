"""The statistics of new links as plotly figures, one function each, drawn from the rows of `LinkStatistics` alone.

References: LBLA (2022) Figs. 2 to 6, its preprint's Figs. 6 and 20; HACS (2020) Fig. 3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.core.words import number, percent
from recrawl.report.figures import (
    BLUE,
    DATE_HOVER,
    GREY,
    ORANGE,
    blank_figure,
    curve_style,
    plotly_text,
    time_unit,
)
from recrawl.report.stats.analysis import LinkStatistics
from recrawl.report.stats.newlinks import SIDES, GroupFlow, Links
from recrawl.report.words import mean

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from recrawl.report.stats.tails import DataPart

COLOURS: dict[Links, str] = {"all": GREY, "internal": BLUE, "external": ORANGE}
#: From no new links to many.
GROUP_COLOURS = ("#a9b4c0", "#8fbce6", "#2f6fb5", "#1b3f73", "#e07b28", "#b5508f")
MAX_FLOW_ROUNDS = 12  #: columns of a Sankey diagram that can still be read
MAX_FLOW_NAMES = 4  #: rounds that are named below it; on a phone more would overlap
MAX_CURVES = 8  #: rounds whose distributions are drawn in one figure
MAX_DRAWN_ROUNDS = 120  #: of a curve with peaks; more are drawn by day
ROUND_END = "end of the round (UTC)"


def mean_figure(statistics: LinkStatistics) -> Figure:
    """Mean number of new links per page over time."""
    overall = mean([row.mean for row in statistics.round_counts if row.links == "all"])
    title = f"A page gains {number(overall)} links per round on average"
    figure = blank_figure(title, ROUND_END, "new links per page (mean)")
    for i, links in enumerate(COLOURS):
        rows = [row for row in statistics.round_counts if row.links == links]
        figure.add_scatter(
            x=_ends(statistics, [row.round for row in rows]),
            y=[row.mean for row in rows],
            customdata=[[row.round, row.deviation, row.n_pages] for row in rows],
            name=links,
            hovertemplate=f"round %{{customdata[0]}}, until {DATE_HOVER}<br>mean %{{y:.2f}}, standard deviation "
            "%{customdata[1]:.1f}<br>%{customdata[2]:,} pages<extra>%{fullData.name}</extra>",
            **curve_style(i, colour=COLOURS[links]),
        )
    return figure.update_yaxes(rangemode="tozero").update_xaxes(type="date")


def none_figure(statistics: LinkStatistics) -> Figure:
    """Share of pages without new links over time."""
    overall = mean([row.none_rate for row in statistics.round_counts if row.links == "all"])
    title = f"{percent(overall)} of pages gain no link in a round"
    figure = blank_figure(title, ROUND_END, "pages without new links (%)")
    for i, links in enumerate(COLOURS):
        rows = [row for row in statistics.round_counts if row.links == links]
        figure.add_scatter(
            x=_ends(statistics, [row.round for row in rows]),
            y=[row.none_rate for row in rows],
            customdata=[row.round for row in rows],
            name=links,
            hovertemplate=f"round %{{customdata}}, until {DATE_HOVER}<br>%{{y:.1%}} of pages gain none"
            "<extra>%{fullData.name}</extra>",
            **curve_style(i, colour=COLOURS[links]),
        )
    return figure.update_yaxes(tickformat=".0%", range=[0, 1.03]).update_xaxes(type="date")


def _ends(statistics: LinkStatistics, rounds: Sequence[int]) -> list[str]:
    return [statistics.rounds[number] for number in rounds]


def rate_figure(statistics: LinkStatistics) -> Figure:
    """Histogram of the share of rounds in which a page gains links (LBLA Fig. 4)."""
    never = {row.links: percent(row.share) for row in statistics.change_rates if row.rate == 0}
    title = "Pages that never gain links: " + ", ".join(f"{share} ({links})" for links, share in never.items())
    figure = blank_figure(title, "share of rounds with new links", "share of pages")
    for links in SIDES:
        rows = [row for row in statistics.change_rates if row.links == links]
        figure.add_bar(
            x=[row.rate for row in rows],
            y=[row.share for row in rows],
            customdata=[row.n_pages for row in rows],
            name=links,
            marker={"color": COLOURS[links], "pattern": {"shape": "" if links == SIDES[0] else "/"}},
            hovertemplate="in %{x:.0%} of rounds: %{y:.1%} of pages (%{customdata:,})<extra>%{fullData.name}</extra>",
        )
    return figure.update_xaxes(tickformat=".0%").update_yaxes(tickformat=".0%").update_layout(bargap=0.15)


def flow_figure(statistics: LinkStatistics, links: Links) -> Figure:
    """Sankey diagram of the pages' groups from round to round, of the last rounds if there are many (LBLA Fig. 3)."""
    flows = [flow for flow in statistics.group_flows if flow.links == links]
    known = sorted({round for flow in flows for round in (flow.from_round, flow.to_round)})
    shown = known[-MAX_FLOW_ROUNDS:]
    flows = [flow for flow in flows if flow.from_round in shown]
    stay = mean([row.stay_rate for row in statistics.group_stays if row.links == links])
    title = f"{percent(stay)} of pages stay in their group by new {links} links from round to round"
    figure = blank_figure(title if shown == known else f"{title} (the last {len(shown)} rounds are drawn)", "", "")
    figure.add_trace(_sankey(statistics, flows, links))
    for i in _spread(len(shown), MAX_FLOW_NAMES):
        place = i / (len(shown) - 1)
        side = "left" if place == 0 else "right" if place == 1 else "center"
        figure.add_annotation(text=_short_end(statistics, shown[i]), x=place, y=-0.06, xanchor=side, showarrow=False)
    figure.update_annotations(xref="paper", yref="paper", yanchor="top", font_size=11)
    return figure.update_layout(margin={"l": 24, "r": 24, "b": 40}, xaxis_visible=False, yaxis_visible=False)


def _short_end(statistics: LinkStatistics, number: int) -> str:
    """The end of a round without its year."""
    return statistics.round_end(number)[5:]


def _sankey(statistics: LinkStatistics, flows: Sequence[GroupFlow], links: Links) -> Any:
    from plotly.graph_objects import Sankey

    ends = {(f.from_round, f.from_group) for f in flows} | {(f.to_round, f.to_group) for f in flows}
    nodes = sorted(ends, key=lambda node: (node[0], _group_order(node[1])))
    index = {node: i for i, node in enumerate(nodes)}
    groups = sorted({group for _, group in nodes}, key=_group_order)
    colour = {group: GROUP_COLOURS[i % len(GROUP_COLOURS)] for i, group in enumerate(groups)}
    node = {
        "label": [group if round in (nodes[0][0], nodes[-1][0]) else "" for round, group in nodes],
        "color": [colour[group] for _, group in nodes],
        "customdata": [f"{statistics.round_end(round)}: {group} new {links} links" for round, group in nodes],
        "hovertemplate": "%{customdata}<br>%{value:,} pages<extra></extra>",
        "pad": 14,
        "thickness": 12,
        "line": {"width": 0},
    }
    link = {
        "source": [index[flow.from_round, flow.from_group] for flow in flows],
        "target": [index[flow.to_round, flow.to_group] for flow in flows],
        "value": [flow.n_pages for flow in flows],
        "color": [_faint(colour[flow.from_group]) for flow in flows],
        "hovertemplate": "%{source.customdata}<br>→ %{target.customdata}<br>%{value:,} pages<extra></extra>",
    }
    return Sankey(arrangement="snap", node=node, link=link)


def ccdf_figure(statistics: LinkStatistics, links: Links) -> Figure:
    """The share of pages with at least x new links, one curve per round, of some rounds if there are many (LBLA Fig. 5)."""
    curves = [curve for curve in statistics.ccdfs if curve.links == links]
    last = curves[-1]
    title = (
        f"{percent(last.share[0])} of pages gain {links} links in the round until {statistics.round_end(last.round)}, "
        f"one of them {last.at_least[-1]:,}"
    )
    figure = blank_figure(title, f"new {links} links, at least", "share of pages", height=460)
    shown = _spread(len(curves), MAX_CURVES)
    for i, which in enumerate(shown):
        curve = curves[which]
        figure.add_scatter(
            x=curve.at_least,
            y=curve.share,
            name=_short_end(statistics, curve.round),
            hovertemplate="at least %{x:,}: %{y:.3%} of pages<extra>%{fullData.name}</extra>",
            **curve_style(i, colour=_shade(i, len(shown)), width=1.5),
        )
    return _log_log(figure)


def law_figure(links: Links, part: DataPart) -> Figure:
    """One part of the data and the laws fitted to it (LBLA preprint Figs. 6 and 20)."""
    best = part.best
    title = f"{links.capitalize()} links, {part.name}"
    title += f": the {best.law} is closest" if best else ""
    figure = blank_figure(title, f"new {links} links, at least", f"share of pages in the {part.name}", height=460)
    figure.add_scatter(
        x=part.x,
        y=part.share,
        name="data",
        mode="markers",
        marker={"size": 6, "color": GREY, "opacity": 0.75},
        hovertemplate="at least %{x:,}: %{y:.3%}<extra>data</extra>",
    )
    fitted = [fit for fit in part.fits if fit.distance is not None]
    for i, fit in enumerate(fitted):
        figure.add_scatter(
            x=fit.x,
            y=fit.share,
            name=f"{fit.law}, D = {fit.distance:.3f}",
            hovertemplate="at least %{x:,}: %{y:.3%}<extra>%{fullData.name}</extra>",
            **curve_style(i + 1, width=3 if fit is best else 1.5),
        )
    floor = math.log10(min(part.share)) - 0.3  # light tails fall for ever: show them as far as there is data
    return _log_log(figure).update_yaxes(range=[floor, 0.1])


def domain_figure(statistics: LinkStatistics) -> Figure:
    """Pages per top-level domain (LBLA Fig. 2)."""
    first = statistics.domains[0]
    title = f"{percent(first.share)} of pages are in {first.domain}"
    figure = blank_figure(title, "top-level domain", "pages")
    return figure.add_bar(
        x=[plotly_text(row.domain) for row in statistics.domains],
        y=[row.n_pages for row in statistics.domains],
        customdata=[row.share for row in statistics.domains],
        marker_color=BLUE,
        hovertemplate="%{x}: %{y:,} pages (%{customdata:.1%})<extra></extra>",
    ).update_xaxes(type="category")


def extreme_figure(statistics: LinkStatistics, links: Links) -> Figure:
    """The most extreme pages over time (LBLA Fig. 6)."""
    known = sorted({row.round for row in statistics.round_counts})
    by_day = len(known) > MAX_DRAWN_ROUNDS
    unit = "daily maximum" if by_day else "per round"
    figure = blank_figure(
        f"New {links} links of these pages over time", ROUND_END, f"new {links} links, {unit}", height=460
    )
    for i, row in enumerate(statistics.extreme_pages):
        series = row.internal if links == "internal" else row.external
        drawn = {statistics.rounds[number]: series[number] for number in known}
        drawn = _most_by_day(drawn) if by_day else drawn
        figure.add_scatter(
            x=list(drawn),
            y=list(drawn.values()),
            name=f"page {i + 1}",
            hovertemplate=f"{plotly_text(row.url)}<br>{DATE_HOVER}: %{{y:,}} new {links} links<extra></extra>",
            **curve_style(i),
        )
    return figure.update_yaxes(rangemode="tozero").update_xaxes(type="date")


def _most_by_day(values: Mapping[str, int | None]) -> dict[str, int | None]:
    """The highest known value of each day.

    >>> _most_by_day({"2025-03-01T05:00": 2, "2025-03-01T06:00": 7, "2025-03-02T05:00": None})
    {'2025-03-01': 7, '2025-03-02': None}
    """
    most: dict[str, int | None] = {}
    for moment, value in values.items():
        day = moment[:10]
        known = [number for number in (value, most.get(day)) if number is not None]
        most[day] = max(known, default=None)
    return most


def gap_figure(statistics: LinkStatistics) -> Figure:
    """How the time between visits is distributed, as bars by span."""
    spans = statistics.gaps.spans if statistics.gaps else ()
    most = max(spans, key=lambda span: span.n_gaps)
    title = f"{percent(most.share)} of visits come {most.span} after the page's previous one"
    figure = blank_figure(title, "time between two visits of a page", "share of gaps")
    return figure.add_bar(
        x=[span.span for span in spans],
        y=[span.share for span in spans],
        customdata=[span.n_gaps for span in spans],
        marker_color=BLUE,
        hovertemplate="%{x}: %{y:.1%} of gaps (%{customdata:,})<extra></extra>",
    ).update_yaxes(tickformat=".0%")


def gap_cdf_figure(statistics: LinkStatistics) -> Figure:
    """The share of gaps up to each length."""
    days, share = (statistics.gaps.cdf_days, statistics.gaps.cdf_share) if statistics.gaps else ((), ())
    unit, per_day = time_unit(days)
    figure = blank_figure("Share of gaps up to a length", f"{unit} between two visits of a page", "share of gaps")
    figure.add_scatter(
        x=[per_day * value for value in days],
        y=share,
        mode="lines",
        line={"color": BLUE, "width": 2},
        hovertemplate=f"at most %{{x:.3g}} {unit}: %{{y:.1%}} of gaps<extra></extra>",
    )
    wide = bool(days) and days[0] > 0 and days[-1] / days[0] > 20
    figure.update_xaxes(type="log", dtick=1, tickformat=",~r") if wide else figure.update_xaxes(type="linear")
    return figure.update_yaxes(tickformat=".0%", range=[0, 1.03])


def capture_figure(statistics: LinkStatistics) -> Figure:
    """When each page of a sample was visited, by first visit (HACS Fig. 3)."""
    pages = statistics.captured_pages
    figure = blank_figure(
        f"Visits to {len(pages):,} pages picked at random, by first visit",
        "time of the visit (UTC)",
        "page",
        height=480,
    )
    for name, dots, colour, symbol in (
        ("visit", [(at, row.order) for row in pages for at in row.at[1:]], BLUE, "circle"),
        ("first visit", [(row.at[0], row.order) for row in pages], ORANGE, "diamond"),
    ):
        figure.add_scatter(
            x=[at for at, _ in dots],
            y=[order for _, order in dots],
            name=name,
            mode="markers",
            marker={"size": 3.5 if symbol == "circle" else 6, "color": colour, "symbol": symbol},
            hovertemplate=f"page %{{y}}<br>{DATE_HOVER}<extra>%{{fullData.name}}</extra>",
        )
    return figure.update_yaxes(showgrid=False)


def _log_log(figure: Figure) -> Figure:
    # One label per power of ten, written out: 1, 10, 100 on the count axis, 1%, 0.1% on the share axis.
    figure.update_xaxes(type="log", dtick=1, tickformat=",d")
    return figure.update_yaxes(type="log", dtick=1, tickformat=".3~%")


def _spread(n: int, most: int) -> list[int]:
    """At most `most` of the numbers below `n`, evenly spread, with the first and the last.

    >>> _spread(716, 4), _spread(3, 4)
    ([0, 238, 477, 715], [0, 1, 2])
    """
    return sorted(set(np.linspace(0, n - 1, min(n, most)).round().astype(int).tolist()))


def _group_order(name: str) -> int:
    """The first number of a group's name: it begins there, or just above for the last."""
    return int(name[1:]) + 1 if name.startswith(">") else int(name.split("–")[0])


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.35)"


def _shade(i: int, n: int) -> str:
    """From light blue for the first round to a dark one for the last."""
    light, dark = (126, 184, 226), (20, 80, 150)
    mixed = (round(a + (b - a) * i / max(n - 1, 1)) for a, b in zip(light, dark, strict=True))
    return f"rgb({','.join(map(str, mixed))})"
