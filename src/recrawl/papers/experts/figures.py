"""The evaluation of experts as plotly figures, one function each, drawn from the rows alone.

References: Radinsky and Bennett (2013), Figs. 6 and 7, and its tables as bars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from recrawl.papers.experts.settings import (
    BY_ACCURACY,
    COIN,
    FRESHNESS,
    MAJORITY,
    RELATED,
    SINGLE,
    THRESHOLD,
    ExpertEvaluation,
    Row,
)
from recrawl.papers.experts.tables import IN_A_ROW, RANDOM, half_interval
from recrawl.report.figures import (
    BLUE,
    GREEN,
    GREY,
    LIGHT_GREY,
    ORANGE,
    PALETTE,
    blank_figure,
    curve_style,
    plotly_text,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

COLOUR = {
    MAJORITY: GREY,
    COIN: PALETTE[4],
    THRESHOLD: PALETTE[2],
    SINGLE: ORANGE,
    RELATED: BLUE,
    BY_ACCURACY: PALETTE[5],
}
STYLE = {
    method: i for i, method in enumerate((RELATED, SINGLE, MAJORITY, COIN, THRESHOLD, BY_ACCURACY))
}  # numbers of marks and dashes
ROW_HEIGHT, FRAME_HEIGHT = 40, 90  # of figures with a bar for each method, in pixels


def method_figure(title: str, rows: Sequence[Row], name: Callable[[Row], str]) -> Figure:
    """The accuracy of each method as a bar, with its 95% interval over pages and a line at the majority class."""
    figure = blank_figure(title, "accuracy (mean over pages, 95% interval)", "")
    figure.add_bar(
        x=[row["accuracy"] for row in rows],
        y=[plotly_text(name(row)) for row in rows],
        error_x={"type": "data", "array": [half_interval(row) or 0.0 for row in rows], "color": GREY, "thickness": 1.5},
        customdata=[[row["n_pages"], row["n_predictions"]] for row in rows],
        orientation="h",
        marker_color=[_bar_colour(row) for row in rows],
        hovertemplate="%{y}: %{x:.1%}<br>%{customdata[1]:,} predictions of %{customdata[0]:,} pages<extra></extra>",
    )
    for row in rows:
        if row["method"] == MAJORITY:
            figure.add_vline(x=row["accuracy"], line={"color": GREY, "width": 1, "dash": "dash"})
    figure.update_layout(height=FRAME_HEIGHT + ROW_HEIGHT * len(rows), bargap=0.35, margin_r=32)
    return figure.update_xaxes(range=[0, 1], tickformat=".0%").update_yaxes(autorange="reversed", type="category")


def _bar_colour(row: Row) -> str:
    if row["method"] in (MAJORITY, COIN, THRESHOLD):
        return LIGHT_GREY
    if row["experts"] == RANDOM:
        return GREY
    return COLOUR.get(row["method"], PALETTE[3])


def history_figure(evaluation: ExpertEvaluation, title: str) -> Figure:
    """Accuracy against the rounds of training (Fig. 6)."""
    figure = blank_figure(title, "rounds of training, n", "accuracy")
    for method in IN_A_ROW:
        rows = [row for row in evaluation.rows["history"] if row["method"] == method]
        _add_line(figure, method, [row["n_train"] for row in rows], rows)
    lengths = sorted({row["n_train"] for row in evaluation.rows["history"]})
    return figure.update_yaxes(tickformat=".1~%").update_xaxes(tickvals=lengths)


def number_figure(evaluation: ExpertEvaluation, title: str) -> Figure:
    """Accuracy against the number of experts, with methods that use no other page as lines across (Fig. 7)."""
    figure = blank_figure(title, "experts beside the page itself, k", "accuracy")
    rows = evaluation.rows["number"]
    ks = sorted({int(row["k"]) for row in rows if row["k"]})
    for row in rows:
        if not row["k"]:
            _add_line(figure, row["method"], [min(ks), max(ks)], [row, row])
    for method in (BY_ACCURACY, RELATED):
        experts = sorted((row for row in rows if row["method"] == method), key=lambda row: int(row["k"]))
        _add_line(figure, method, ks, experts)
    return figure.update_yaxes(tickformat=".1~%").update_xaxes(tickvals=ks)


def freshness_figure(evaluation: ExpertEvaluation, title: str) -> Figure:
    """Freshness against the rounds that were observed before crawling began (Fig. 8)."""
    figure = blank_figure(title, "rounds observed before", "freshness")
    rows = evaluation.rows[FRESHNESS]
    for i, method in enumerate(dict.fromkeys(row["method"] for row in rows)):
        own = [row for row in rows if row["method"] == method]
        figure.add_scatter(
            x=[row["observed"] for row in own],
            y=[row["freshness"] for row in own],
            name=method,
            hovertemplate="%{x}: %{y:.3f}<extra>%{fullData.name}</extra>",
            **curve_style(i, colour=COLOUR.get(method, GREEN), width=2.5),
        )
    return figure.update_xaxes(tickvals=sorted({int(row["observed"]) for row in rows}))


def _add_line(figure: Figure, method: str, x: Sequence[int], rows: Sequence[Row]) -> None:
    figure.add_scatter(
        x=x,
        y=[row["accuracy"] for row in rows],
        customdata=[half_interval(row) or 0.0 for row in rows],
        name=method,
        hovertemplate="%{x}: %{y:.1%} ± %{customdata:.1%}<extra>%{fullData.name}</extra>",
        **curve_style(STYLE[method], colour=COLOUR[method], width=2.5 if method in (SINGLE, RELATED) else 1.5),
    )
