"""The evaluation of new-outlink prediction as plotly figures, one function each, drawn from the rows alone.

References: LBLA (2022) Figs. 9 to 13 and 15; the heat maps are in `map_figures`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.core.arrays import Floats
from recrawl.core.words import count
from recrawl.papers.outlinks.evaluation import OutlinkEvaluation
from recrawl.papers.outlinks.ladders import Row
from recrawl.papers.outlinks.map_figures import folded, kind, label
from recrawl.papers.outlinks.tables import (
    BASELINES,
    MARK,
    PREVIOUS,
    SCORE_OF,
    TARGETS,
    apart,
    best,
    count_rows,
    feature_rows,
    history_rows,
    ranking_rows,
)
from recrawl.report.figures import BLUE, GREEN, GREY, ORANGE, PALETTE, blank_figure, curve_style, plotly_text
from recrawl.report.tables import cell_text, is_known

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SCORE_LINES = (
    ("recall", "recall", BLUE),
    ("precision", "precision", PALETTE[3]),
    ("f1", "F1", ORANGE),
    ("balanced_accuracy", "balanced accuracy", GREEN),
)
ERRORS = (("r2", "R²", GREEN, ""), ("mae", "MAE", BLUE, "/"), ("medae", "MedAE", ORANGE, "."))
N_BINS = 10  # of a calibration curve


def feature_figure(evaluation: OutlinkEvaluation, links: str) -> Figure:
    """R², mean and median absolute error for each learner and feature set (LBLA Figs. 9 and 10)."""
    rows = [row for row in feature_rows(evaluation) if row["links"] == links]
    top = best(rows, "r2")
    title = f"{kind(links)}: the link change rate from what the first round shows"
    if top:
        title = f"{kind(links)}: {top['features']} predicts the link change rate best (R² {top['r2']:.2f})"
    figure = blank_figure(title, "", "score", height=420)
    groups = [
        [plotly_text(row["learner"]) for row in rows],
        [plotly_text(row["features"] if row["features"] != "none" else "nothing") for row in rows],
    ]
    for score, name, colour, pattern in ERRORS:
        figure.add_bar(
            x=groups,
            y=[row[score] for row in rows],
            text=[cell_text(row[score], ".2f") for row in rows],
            textposition="outside",
            textangle=0,
            cliponaxis=False,
            textfont_size=10,
            name=name,
            marker={"color": colour, "pattern": {"shape": pattern}},
            hovertemplate="%{x}: %{y:.3f}<extra>%{fullData.name}</extra>",
        )
    return (
        figure.update_layout(barmode="group", bargap=0.12)
        .update_xaxes(dividercolor=GREY, showgrid=False, tickangle=-90, tickfont_size=11)
        .update_yaxes(zeroline=True, zerolinecolor=GREY)
    )


def history_figure(evaluation: OutlinkEvaluation, links: str) -> Figure:
    """Scores of presence against the rounds of history, beside the previous count's F1 (LBLA Fig. 12)."""
    rows = [row for row in history_rows(evaluation) if row["links"] == links]
    steps = sorted((row for row in rows if row["learner"] != PREVIOUS), key=lambda row: row["history"])
    figure = blank_figure(_history_title(links, steps), "rounds of history", "score")
    for i, (score, name, colour) in enumerate(SCORE_LINES):
        figure.add_scatter(
            x=[row["history"] for row in steps],
            y=[row[score] for row in steps],
            customdata=[row["n_columns"] for row in steps],
            name=name,
            **curve_style(i, colour=colour),
            hovertemplate="history %{x}, %{customdata} columns: %{y:.3f}<extra>%{fullData.name}</extra>",
        )
    previous = next((row["f1"] for row in rows if row["learner"] == PREVIOUS), None)
    longest = steps[-1]["history"] if steps else 0
    if is_known(previous):
        figure.add_scatter(
            x=[min(1, longest), longest],
            y=[previous, previous],
            name=f"{PREVIOUS}, F1",
            **curve_style(len(SCORE_LINES), colour=GREY),
            hovertemplate="%{y:.3f}<extra>%{fullData.name}</extra>",
        )
    return figure.update_xaxes(dtick=1)


def _history_title(links: str, steps: Sequence[Row]) -> str:
    ends = [steps[0]["f1"], steps[-1]["f1"]] if len(steps) > 1 else []
    if not ends or not all(map(is_known, ends)):
        return f"{kind(links)}: whether there will be new ones, by rounds of history"
    rounds = count(steps[-1]["history"], "round")
    return f"{kind(links)}: F1 goes from {ends[0]:.2f} without history to {ends[1]:.2f} with {rounds}"


def importance_figure(target: str, links: str, features: str, rows: Sequence[Row], *, grouped: bool) -> Figure:
    """How much a score drops when features are shuffled, one box for each, the most important on top (LBLA Figs. 11, 13)."""
    what = "correlated features, shuffled together" if grouped else "single features"
    score = SCORE_OF.get(target, "the score")
    title = f"{TARGETS.get(target, target).capitalize()}, {links} links, {features}: {what}, by the drop of {score}"
    height = 120 + 38 * len(rows)
    figure = blank_figure(title, "drop", "", height)
    for i, row in enumerate(rows):
        figure.add_box(
            x=row["drops"],
            y=[i] * len(row["drops"]),
            orientation="h",
            name=plotly_text(row["name"]),
            boxpoints="all",
            pointpos=0,
            jitter=0,
            width=0.55,
            marker={"color": BLUE, "size": 4},
            line={"color": BLUE, "width": 1.5},
            fillcolor="rgba(47,111,181,0.18)",
            hovertemplate="%{x:.4f}<extra>%{fullData.name}</extra>",
            showlegend=False,
        )
    names = [folded(row["name"]) for row in rows]
    figure.update_yaxes(tickvals=list(range(len(rows))), ticktext=names, range=[len(rows) - 0.4, -0.6], showgrid=False)
    return figure.add_vline(x=0, line={"color": GREY, "width": 1, "dash": "dot"})


def precision_figure(evaluation: OutlinkEvaluation, links: str, truth: str) -> Figure:
    """Precision@k% of every ranking, the largest area first (LBLA Fig. 15; its preprint's Figs. 17 to 19)."""
    rows = [row for row in ranking_rows(evaluation) if (row["links"], row["truth"]) == (links, truth)]
    styles = {row["ranking"]: style for row, style in zip(rows, _styles(rows), strict=True)}
    rows = sorted((row for row in rows if is_known(row["area"])), key=lambda row: -row["area"])
    marked = apart(evaluation)
    title = f"{kind(links)}, {TARGETS.get(truth, truth)}"
    if top := best((row for row in rows if row["ranking"] not in marked), "area"):
        title += f": {label(top)} finds the top pages best (area {top['area']:.3f})"
    figure = blank_figure(title, "top share k of the pages", "share found in the ranking's top k", height=560)
    for row in rows:
        curve = _mean_curve(evaluation, row)
        figure.add_scatter(
            x=np.linspace(0, 1, len(curve)),
            y=curve,
            name=f"{plotly_text(label(row))}{MARK if row['ranking'] in marked else ''}: {row['area']:.3f}",
            **styles[row["ranking"]],
            hovertemplate="top %{x:.0%}: %{y:.1%} found<extra>%{fullData.name}</extra>",
        )
    return _shares(figure, "random: 0.500", 1.0)


def _mean_curve(evaluation: OutlinkEvaluation, row: Row) -> Floats:
    keys = ("links", "truth", "ranking")
    curves = [
        other["curve"]
        for other in evaluation.rows["rankings"]
        if other["curve"] and all(other[k] == row[k] for k in keys)
    ]
    values = np.array([curve for curve in curves if len(curve) == len(curves[0])], np.float64)
    known = ~np.isnan(values)
    mean: Floats = np.where(known, values, 0).sum(axis=0) / np.where(known.any(axis=0), known.sum(axis=0), np.nan)
    return mean


def _styles(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """A colour for every way to learn, kept in all figures; a mark for every ranking; dashed for LBLA, dotted for baselines."""
    colours: dict[str, str] = {}
    free = iter((*PALETTE, GREY) * 9)
    styles = []
    for i, row in enumerate(rows):
        family = label(row).removesuffix("_LBLA")
        if family not in colours:
            colours[family] = next(free)
        is_lbla = label(row) != family
        dash = "dot" if row["ranking"] in BASELINES else "dash" if is_lbla else "solid"
        styles.append(curve_style(i, colour=colours[family], dash=dash))
    return styles


def calibration_figure(evaluation: OutlinkEvaluation, links: str) -> Figure:
    """Of the pages with about the same predicted probability of new links, the share that had some."""
    top = min(
        (row for row in count_rows(evaluation) if row["links"] == links and is_known(row["calibration_error"])),
        key=lambda row: float(row["calibration_error"]),
        default=None,
    )
    title = f"{kind(links)}: predicted and observed probability of new links"
    if top:
        title = (
            f"{kind(links)}: the probabilities of {top['learner']} are {top['calibration_error']:.3f} off on average"
        )
    figure = blank_figure(title, "predicted probability of new links", "share of pages with new links", height=480)
    bins: dict[str, list[Any]] = {}
    for row in evaluation.rows["counts"]:
        if row["links"] == links:
            bins.setdefault(row["learner"], []).extend(row.get("calibration") or [])
    highest = 0.05
    for i, (learner, known) in enumerate(bins.items()):
        pooled = _pooled(known)
        highest = max(highest, pooled[:, :2].max(initial=0.0))
        figure.add_scatter(
            x=pooled[:, 0],
            y=pooled[:, 1],
            customdata=pooled[:, 2],
            name=plotly_text(learner),
            **curve_style(i),
            hovertemplate="predicted %{x:.1%}, observed %{y:.1%} of %{customdata:,} pages<extra>%{fullData.name}</extra>",
        )
    return _shares(figure, "perfect", min(1.0, 1.05 * highest))


def _pooled(bins: Sequence[Sequence[float]]) -> Floats:
    """Bins of several repetitions as ten: mean prediction, observed share, number of pages."""
    known = np.asarray(bins, np.float64).reshape(-1, 3)
    known = known[np.isfinite(known).all(axis=1) & (known[:, 2] > 0)]
    known = known[np.argsort(known[:, 0], kind="stable")]
    parts = [part for part in np.array_split(known, N_BINS) if len(part)]
    return np.array(
        [[*np.average(part[:, :2], axis=0, weights=part[:, 2]), part[:, 2].sum()] for part in parts]
    ).reshape(-1, 3)


def _shares(figure: Figure, diagonal: str, highest: float) -> Figure:
    """Both axes as shares from 0 to the highest, with the diagonal."""
    line = {"color": GREY, "width": 1, "dash": "dash"}
    figure.add_scatter(x=[0, highest], y=[0, highest], name=diagonal, mode="lines", line=line, hoverinfo="skip")
    axis = {"tickformat": ".0%", "range": [-0.01 * highest, 1.01 * highest]}
    return figure.update_xaxes(**axis).update_yaxes(**axis)
