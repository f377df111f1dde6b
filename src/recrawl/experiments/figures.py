"""The empirical analysis as plotly figures, one function each; each takes the rows and looks at nothing else.

References: LBLA (2022) Figs. 2 to 6, its preprint's Figs. 6 and 20; HACS (2020) Fig. 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from recrawl.experiments.empirical import Empirical
from recrawl.experiments.findings import mean, number, percent
from recrawl.experiments.newlinks import SIDES, GroupFlow, Links

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from recrawl.experiments.tails import Part

COLOURS: dict[Links, str] = {"all": "#6e7781", "internal": "#2f6fb5", "external": "#e07b28"}
#: Told apart also by readers who do not see red and green.
PALETTE = ("#2f6fb5", "#e07b28", "#3a9a7c", "#b5508f", "#8a6d3b", "#6c5fc7", "#c9a50c", "#4aa3c7")
LAW_COLOURS = ("#2f6fb5", "#3a9a7c", "#c9a50c", "#c8443c", "#8a5cc2")
#: From no new links to many.
GROUP_COLOURS = ("#a9b4c0", "#8fbce6", "#2f6fb5", "#1b3f73", "#e07b28", "#b5508f")
MAX_FLOW_ROUNDS = 12  # columns of a Sankey diagram that can still be read
MAX_NAMED_CURVES = 12  # names in a legend
GRID = "rgba(128,128,128,0.22)"
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif'


def mean_figure(empirical: Empirical) -> Figure:
    """Mean number of new links per page, round by round."""
    overall = mean([row.mean for row in empirical.round_counts if row.links == "all"])
    figure = blank_figure(
        f"A page gains {number(overall)} links per round on average", "round", "new links per page (mean)"
    )
    for links in COLOURS:
        rows = [row for row in empirical.round_counts if row.links == links]
        figure.add_scatter(
            **_line(links, [row.round for row in rows], [row.mean for row in rows]),
            customdata=[[empirical.rounds[row.round], row.deviation, row.n_pages] for row in rows],
            hovertemplate="round %{x}, until %{customdata[0]}<br>mean %{y:.2f}, standard deviation %{customdata[1]:.1f}"
            "<br>%{customdata[2]:,} pages<extra>%{fullData.name}</extra>",
        )
    return figure.update_yaxes(rangemode="tozero").update_xaxes(dtick=_step(empirical))


def none_figure(empirical: Empirical) -> Figure:
    """Share of pages without new links, round by round."""
    overall = mean([row.none_rate for row in empirical.round_counts if row.links == "all"])
    figure = blank_figure(f"{percent(overall)} of pages gain no link in a round", "round", "pages without new links")
    for links in COLOURS:
        rows = [row for row in empirical.round_counts if row.links == links]
        figure.add_scatter(
            **_line(links, [row.round for row in rows], [row.none_rate for row in rows]),
            hovertemplate="round %{x}: %{y:.1%} of pages gain none<extra>%{fullData.name}</extra>",
        )
    return figure.update_yaxes(tickformat=".0%", range=[0, 1.03]).update_xaxes(dtick=_step(empirical))


def rate_figure(empirical: Empirical) -> Figure:
    """Histogram of the share of rounds in which a page gains links (LBLA Fig. 4)."""
    never = {row.links: percent(row.share) for row in empirical.change_rates if row.rate == 0}
    title = "Pages that never gain links: " + ", ".join(f"{share} ({links})" for links, share in never.items())
    figure = blank_figure(title, "share of rounds in which the page gained links", "share of pages")
    for links in SIDES:
        rows = [row for row in empirical.change_rates if row.links == links]
        figure.add_bar(
            x=[row.rate for row in rows],
            y=[row.share for row in rows],
            customdata=[row.n_pages for row in rows],
            name=links,
            marker_color=COLOURS[links],
            hovertemplate="in %{x:.0%} of rounds: %{y:.1%} of pages (%{customdata:,})<extra>%{fullData.name}</extra>",
        )
    return figure.update_xaxes(tickformat=".0%").update_yaxes(tickformat=".0%").update_layout(bargap=0.15)


def flow_figure(empirical: Empirical, links: Links) -> Figure:
    """Sankey diagram of the pages' groups from round to round, of the last rounds if there are many (LBLA Fig. 3)."""
    flows = [flow for flow in empirical.group_flows if flow.links == links]
    known = sorted({round for flow in flows for round in (flow.from_round, flow.to_round)})
    shown = known[-MAX_FLOW_ROUNDS:]
    flows = [flow for flow in flows if flow.from_round in shown]
    stay = mean([row.stay_rate for row in empirical.group_stays if row.links == links])
    title = f"{percent(stay)} of pages keep their group by new {links} links from round to round"
    figure = blank_figure(title if shown == known else f"{title} (the last {len(shown)} rounds are drawn)", "", "")
    figure.add_trace(_sankey(flows, links))
    for i, round in enumerate(shown):
        figure.add_annotation(text=f"round {round}", x=i / (len(shown) - 1), y=-0.06, showarrow=False, font_size=11)
    figure.update_annotations(xref="paper", yref="paper", yanchor="top")
    return figure.update_layout(margin={"l": 24, "r": 24, "b": 40}, xaxis_visible=False, yaxis_visible=False)


def _sankey(flows: Sequence[GroupFlow], links: Links) -> Any:
    from plotly.graph_objects import Sankey

    ends = {(f.from_round, f.from_group) for f in flows} | {(f.to_round, f.to_group) for f in flows}
    nodes = sorted(ends, key=lambda node: (node[0], _group_order(node[1])))
    index = {node: i for i, node in enumerate(nodes)}
    groups = sorted({group for _, group in nodes}, key=_group_order)
    colour = {group: GROUP_COLOURS[i % len(GROUP_COLOURS)] for i, group in enumerate(groups)}
    node = {
        "label": [group if round in (nodes[0][0], nodes[-1][0]) else "" for round, group in nodes],
        "color": [colour[group] for _, group in nodes],
        "customdata": [f"round {round}: {group} new {links} links" for round, group in nodes],
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


def ccdf_figure(empirical: Empirical, links: Links) -> Figure:
    """The share of pages with at least x new links, one curve per round (LBLA Fig. 5)."""
    curves = [curve for curve in empirical.ccdfs if curve.links == links]
    last = curves[-1]
    gaining, most = percent(last.share[0]), f"{last.at_least[-1]:,}"
    title = f"{gaining} of pages gain {links} links in round {last.round}, the richest {most}"
    figure = blank_figure(title, f"new {links} links, at least", "share of pages", height=440)
    for i, curve in enumerate(curves):
        figure.add_scatter(
            x=curve.at_least,
            y=curve.share,
            name=f"round {curve.round}",
            showlegend=len(curves) <= MAX_NAMED_CURVES or i in (0, len(curves) - 1),
            mode="lines",
            line={"width": 1.5, "color": _shade(i, len(curves))},
            hovertemplate="at least %{x:,}: %{y:.3%} of pages<extra>%{fullData.name}</extra>",
        )
    return _log_log(figure)


def law_figure(links: Links, part: Part) -> Figure:
    """One part of the data and the laws fitted to it (LBLA preprint Figs. 6 and 20)."""
    best = part.best
    title = f"{links.capitalize()} links, {part.name}"
    title += f": the {best.law} is closest" if best else ""
    figure = blank_figure(title, f"new {links} links, at least", f"share of pages in the {part.name}", height=440)
    figure.add_scatter(
        x=part.x,
        y=part.share,
        name="data",
        mode="markers",
        marker={"size": 6, "color": COLOURS["all"], "opacity": 0.75},
        hovertemplate="at least %{x:,}: %{y:.3%}<extra>data</extra>",
    )
    fitted = [fit for fit in part.fits if fit.distance is not None]
    for fit, colour in zip(fitted, LAW_COLOURS, strict=False):
        figure.add_scatter(
            x=fit.x,
            y=fit.share,
            name=f"{fit.law}, D = {fit.distance:.3f}",
            mode="lines",
            line={"color": colour, "width": 3 if fit is best else 1.5, "dash": "solid" if fit is best else "dash"},
            hovertemplate="at least %{x:,}: %{y:.3%}<extra>%{fullData.name}</extra>",
        )
    floor = math.log10(min(part.share)) - 0.3  # light tails fall for ever: show them as far as there is data
    return _log_log(figure).update_yaxes(range=[floor, 0.1])


def domain_figure(empirical: Empirical) -> Figure:
    """Pages per top-level domain (LBLA Fig. 2)."""
    first = empirical.domains[0]
    title = f"{percent(first.share)} of pages are in {first.domain}"
    figure = blank_figure(title, "top-level domain", "pages")
    return figure.add_bar(
        x=[plotly_text(row.domain) for row in empirical.domains],
        y=[row.n_pages for row in empirical.domains],
        customdata=[row.share for row in empirical.domains],
        marker_color=COLOURS["internal"],
        hovertemplate="%{x}: %{y:,} pages (%{customdata:.1%})<extra></extra>",
    ).update_xaxes(type="category")


def extreme_figure(empirical: Empirical, links: Links) -> Figure:
    """The most extreme pages over time (LBLA Fig. 6)."""
    title = f"New {links} links of the most extreme pages over time"
    figure = blank_figure(title, "round", f"new {links} links", height=440)
    known = sorted({row.round for row in empirical.round_counts})
    for rank, row in enumerate(empirical.extreme_pages, 1):
        series = row.internal if links == "internal" else row.external
        figure.add_scatter(
            x=known,
            y=[series[round] for round in known],
            name=f"page {rank}",
            mode="lines+markers",
            line_color=PALETTE[(rank - 1) % len(PALETTE)],
            hovertemplate=f"{plotly_text(row.url)}<br>round %{{x}}: %{{y:,}} new {links} links<extra></extra>",
        )
    return figure.update_xaxes(dtick=_step(empirical))


def gap_figure(empirical: Empirical) -> Figure:
    """How the days between visits are distributed: bars by span, and the share up to so many days."""
    spans = empirical.gaps.spans if empirical.gaps else ()
    most = max(spans, key=lambda span: span.n_gaps)
    title = f"{percent(most.share)} of visits come {most.span} after the page's previous one"
    figure = blank_figure(title, "time between two visits of a page", "share of gaps")
    return figure.add_bar(
        x=[span.span for span in spans],
        y=[span.share for span in spans],
        customdata=[span.n_gaps for span in spans],
        marker_color=COLOURS["internal"],
        hovertemplate="%{x}: %{y:.1%} of gaps (%{customdata:,})<extra></extra>",
    ).update_yaxes(tickformat=".0%")


def gap_cdf_figure(empirical: Empirical) -> Figure:
    """The share of gaps of at most so many days."""
    days, share = (empirical.gaps.cdf_days, empirical.gaps.cdf_share) if empirical.gaps else ((), ())
    figure = blank_figure("Share of gaps up to a length", "days between two visits of a page", "share of gaps")
    figure.add_scatter(
        x=days,
        y=share,
        mode="lines",
        line={"color": COLOURS["internal"], "width": 2},
        hovertemplate="at most %{x:.3g} days: %{y:.1%} of gaps<extra></extra>",
    )
    wide = bool(days) and days[0] > 0 and days[-1] / days[0] > 20
    return figure.update_yaxes(tickformat=".0%", range=[0, 1.03]).update_xaxes(type="log" if wide else "linear")


def capture_figure(empirical: Empirical) -> Figure:
    """When each page of a sample was visited, first come first (HACS Fig. 3)."""
    pages = empirical.captured_pages
    figure = blank_figure(
        f"Visits to {len(pages):,} pages picked at random, by first visit", "time of the visit", "page", height=480
    )
    for name, dots, colour in (
        ("visit", [(at, row.order) for row in pages for at in row.at[1:]], COLOURS["internal"]),
        ("first visit", [(row.at[0], row.order) for row in pages], "#c8443c"),
    ):
        figure.add_scatter(
            x=[at for at, _ in dots],
            y=[order for _, order in dots],
            name=name,
            mode="markers",
            marker={"size": 3.5, "color": colour},
            hovertemplate="page %{y}<br>%{x|%Y-%m-%d %H:%M}<extra>%{fullData.name}</extra>",
        )
    return figure.update_yaxes(showgrid=False)


def blank_figure(title: str, x: str, y: str, height: int = 400) -> Figure:
    """A figure in the style of all pages, with named axes and nothing drawn yet."""
    from plotly.graph_objects import Figure

    axis = {"gridcolor": GRID, "zeroline": False, "linecolor": GRID, "ticks": "outside", "tickcolor": GRID}
    return Figure(
        layout={
            "title": {"text": title, "x": 0, "xref": "paper", "font": {"size": 16}},
            "template": "none",
            "height": height,
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": FONT, "size": 13, "color": "#1f2328"},
            "colorway": PALETTE,
            "margin": {"l": 64, "r": 16, "t": 48, "b": 56},
            "legend": {"orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0, "x": 0},
            "xaxis": {**axis, "title": {"text": x}, "automargin": True},
            "yaxis": {**axis, "title": {"text": y}, "automargin": True},
            "hoverlabel": {"align": "left"},
        }
    )


def _line(links: Links, x: Sequence[int], y: Sequence[float | None]) -> dict[str, Any]:
    return {"x": x, "y": y, "name": links, "mode": "lines+markers", "line_color": COLOURS[links]}


def _log_log(figure: Figure) -> Figure:
    # One label per power of ten, written out: 1, 10, 100 on the count axis, 1%, 0.1% on the share axis.
    figure.update_xaxes(type="log", dtick=1, tickformat=",d")
    return figure.update_yaxes(type="log", dtick=1, tickformat=".3~%")


def _step(empirical: Empirical) -> int:
    return max(1, round(len(empirical.rounds) / 20))


def _group_order(name: str) -> int:
    """The first number of a group's name: it begins there, or just above for the last."""
    return int(name[1:]) + 1 if name.startswith(">") else int(name.split("–")[0])


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.35)"


def _shade(i: int, n: int) -> str:
    """From light blue for the first round to dark for the last."""
    light, dark = (158, 202, 235), (20, 60, 120)
    mixed = (round(a + (b - a) * i / max(n - 1, 1)) for a, b in zip(light, dark, strict=True))
    return f"rgb({','.join(map(str, mixed))})"


def plotly_text(text: str) -> str:
    """Plotly reads some HTML in its texts and fills in %{…}: neither may come from a URL."""
    short = text if len(text) <= 90 else text[:60] + "…" + text[-29:]
    return escape(short).replace("%{", "%&#123;")
