"""The evaluation of history-aware choices as plotly figures, one function each, drawn from the rows alone.

References: HACS (2020) Figs. 4 to 6 and 8 to 11.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from recrawl.core.words import duration
from recrawl.papers.updates.evaluation import Row, UpdateEvaluation, weeks_text
from recrawl.papers.updates.scores import AVERAGES, RANKINGS
from recrawl.papers.updates.tables import POLICIES, bin_name, rows_where, subject
from recrawl.report.figures import BLUE, DASHES, GREEN, GREY, ORANGE, SYMBOLS, blank_figure, curve_style, time_unit

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

COLOUR = {"history-aware": BLUE, "random": GREY, "brute-force": ORANGE, "last-observed": GREEN}
STYLE = {name: i for i, name in enumerate(COLOUR)}  # numbers of marks and dashes
NAMES = {"f1": "F1", "precision": "Precision", "recall": "Recall"}


def theta_figure(evaluation: UpdateEvaluation, score: str, weeks: float) -> Figure:
    """A score against the threshold, micro and macro, beside the opponents (HACS Figs. 8 to 10)."""
    title = f"{NAMES[score]} by threshold, {weeks_text(weeks)} of history"
    figure = blank_figure(title, "threshold θ on the probability of an update", NAMES[score])
    for policy in POLICIES:
        for average in AVERAGES:
            rows = rows_where(evaluation, "scores", weeks=weeks, policy=policy, average=average)
            figure.add_scatter(
                x=[row["theta"] for row in rows],
                y=[row[score] for row in rows],
                customdata=[row["chosen_rate"] for row in rows],
                name=f"{policy}, {average}",
                hovertemplate="θ %{x}: %{y:.3f}, %{customdata:.1%} chosen<extra>%{fullData.name}</extra>",
                **_style(policy, average),
            )
    return figure.update_yaxes(rangemode="tozero")


def window_figure(evaluation: UpdateEvaluation) -> Figure:
    """F1 at the best threshold, by weeks of history (HACS Table I)."""
    ours = rows_where(evaluation, "best", average="micro", policy="history-aware")
    top = max(ours, key=lambda row: float(row["f1"]))
    title = f"The best F1 is with {weeks_text(top['weeks'])} of history and θ {top['theta']:g}: {top['f1']:.3f}"
    figure = blank_figure(title, "weeks of history", "F1 at the best threshold")
    for policy in POLICIES:
        for average in AVERAGES:
            rows = rows_where(evaluation, "best", average=average, policy=policy)
            figure.add_scatter(
                x=[row["weeks"] for row in rows],
                y=[row["f1"] for row in rows],
                customdata=[row["theta"] for row in rows],
                name=f"{policy}, {average}",
                hovertemplate="%{x} weeks, θ %{customdata}: %{y:.3f}<extra>%{fullData.name}</extra>",
                **_style(policy, average),
            )
    return figure.update_yaxes(rangemode="tozero")


def ranking_figure(evaluation: UpdateEvaluation) -> Figure:
    """Mean weighted P@K by weeks of history (HACS Fig. 11)."""
    figure = blank_figure("Which pages are updated first: weighted P@K", "weeks of history", "mean weighted P@K")
    for name in RANKINGS:
        rows = rows_where(evaluation, "rankings", ranking=name)
        figure.add_scatter(
            x=[row["weeks"] for row in rows],
            y=[row["weighted_precision"] for row in rows],
            name=name,
            hovertemplate="%{x} weeks: %{y:.3f}<extra>%{fullData.name}</extra>",
            **_style(name, "micro"),
        )
    return figure


def rate_figure(evaluation: UpdateEvaluation, row: Row) -> Figure:
    """How 1/λ is distributed, with the log-normal law (HACS Fig. 4)."""
    unit, per_day = time_unit([row["median_days"]])
    title = f"Half of the {subject(evaluation)} with updates have one every {duration(24 * row['median_days'])} or more often"
    figure = blank_figure(title, f"1/λ: {unit} between updates", f"share of {subject(evaluation)} with updates")
    edges = [per_day * edge for edge in row["edges"]]
    middles = [(low * high) ** 0.5 for low, high in pairwise(edges)]
    figure.add_bar(
        x=middles,
        y=row["share"],
        width=[0.92 * (high - low) for low, high in pairwise(edges)],
        name=subject(evaluation),
        marker_color=BLUE,
        hovertemplate=f"about %{{x:.3g}} {unit}: %{{y:.1%}}<extra></extra>",
    )
    figure.add_scatter(
        x=middles,
        y=row["law_share"],
        name="log-normal law",
        mode="lines",
        line={"color": ORANGE, "width": 2, "shape": "spline"},
        hovertemplate="law: %{y:.1%}<extra></extra>",
    )
    return figure.update_xaxes(type="log", dtick=1, tickformat=",~r").update_yaxes(tickformat=".0%")


def interval_figure(evaluation: UpdateEvaluation, row: Row) -> Figure:
    """1/λ̃ of every page, in ascending order, and the median time between its updates (HACS Fig. 5)."""
    title = f"The median time between updates is {row['median_ratio']:.2f} times 1/λ̃ (0.69 for a Poisson process)"
    unit, per_day = time_unit(row["mean_days"])
    figure = blank_figure(title, f"{unit} between updates", f"{subject(evaluation)}, by 1/λ̃", height=480)
    order = list(range(1, row["n_pages"] + 1))
    figure.add_scatter(
        x=[per_day * days for days in row["median_interval_days"]],
        y=order,
        customdata=row["n_intervals"],
        name="median time between updates",
        mode="markers",
        marker={"color": BLUE, "size": 4, "opacity": 0.6},
        hovertemplate=f"%{{x:.3g}} {unit}, of %{{customdata}} times<extra>%{{fullData.name}}</extra>",
    )
    figure.add_scatter(
        x=[per_day * days for days in row["mean_days"]],
        y=order,
        name="1/λ̃",
        mode="lines",
        line={"color": ORANGE, "width": 2.5},
        hovertemplate=f"%{{x:.3g}} {unit}<extra>1/λ̃</extra>",
    )
    return figure.update_xaxes(type="log", dtick=1, tickformat=",~r")


def poisson_figure(row: Row) -> Figure:
    """The times between updates of pages with about the same 1/λ̃, beside the exponential law (HACS Fig. 6)."""
    title = f"1/λ̃ of {bin_name(row)} days: at most {row['distance']:.2f} from the law, variation {row['variation']:.2f}"
    figure = blank_figure(title, "days between two updates", "share of times between updates")
    seen = [i for i, share in enumerate(row["share"]) if share > 0]
    figure.add_scatter(
        x=[row["days"][i] for i in seen],
        y=[row["share"][i] for i in seen],
        name=f"{row['n_intervals']:,} times between updates",
        mode="markers",
        marker={"color": BLUE, "size": 7},
        hovertemplate="about %{x:.3g} days: %{y:.2%}<extra></extra>",
    )
    figure.add_scatter(
        x=row["days"],
        y=row["law_share"],
        name="exponential law",
        mode="lines",
        line={"color": ORANGE, "width": 2},
        hovertemplate="law: %{y:.2%}<extra></extra>",
    )
    figure.add_vline(x=row["mean_days"], line={"color": GREY, "width": 1, "dash": "dot"})
    figure.update_xaxes(type="log", dtick="D2", tickformat=",~r")
    floor = math.log10(min((row["share"][i] for i in seen), default=0.01)) - 0.4  # the law falls for ever
    return figure.update_yaxes(type="log", dtick=1, tickformat=".3~%", range=[floor, 0.1])


def _style(name: str, average: str) -> dict[str, Any]:
    """A colour for each method; its macro average is thinner, with another mark and dash."""
    i = STYLE[name]
    if average == "micro":
        return curve_style(i, colour=COLOUR[name], width=2.5)
    dash, symbol = DASHES[(i + 3) % len(DASHES)], f"{SYMBOLS[i + len(STYLE)]}-open"
    return curve_style(i, colour=COLOUR[name], dash=dash, symbol=symbol, width=1.2)
