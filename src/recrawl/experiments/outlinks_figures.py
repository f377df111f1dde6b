"""The evaluation of new-outlink prediction as plotly figures, one function each; each takes the rows and looks at nothing else.

References: LBLA (2022) Figs. 8 to 15, its preprint's Fig. 13.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recrawl.experiments.figures import COLOURS, PALETTE, blank_figure, plotly_text
from recrawl.experiments.ladders import Row
from recrawl.experiments.outlinks import Evaluation
from recrawl.experiments.outlinks_tables import (
    BASELINES,
    PREVIOUS,
    SCORE_OF,
    TARGETS,
    best,
    correlated_pairs,
    count_rows,
    feature_rows,
    history_rows,
    is_known,
    ranking_rows,
)
from recrawl.experiments.page import cell_text
from recrawl.targets import ALL as ALL_TARGETS

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

PAPERS = {target.name: target.paper for target in ALL_TARGETS}  #: "link-change-rate" → "LCR"
#: From against to with; blue and orange are told apart also by readers who do not see red and green.
DIVERGING = ((0.0, "#c2610f"), (0.25, "#efb27d"), (0.5, "#f3f4f6"), (0.75, "#8fbce6"), (1.0, "#1f5a99"))
SEQUENTIAL = ((0.0, "#eef4fa"), (0.5, "#8fbce6"), (1.0, "#1b4f8a"))
RATES = "Cividis"  # a scale of the link change rate that can be read on a light and on a dark page
SCORE_LINES = (
    ("recall", "recall", PALETTE[0], "solid"),
    ("precision", "precision", COLOURS["all"], "dash"),
    ("f1", "F1", PALETTE[1], "solid"),
    ("balanced_accuracy", "balanced accuracy", PALETTE[2], "solid"),
)
ERRORS = (("r2", "R²", PALETTE[2]), ("mae", "MAE", PALETTE[0]), ("medae", "MedAE", PALETTE[1]))
N_BINS = 10  # of a calibration curve


def feature_figure(found: Evaluation, links: str) -> Figure:
    """R², mean and median absolute error for each learner and feature set (LBLA Figs. 9 and 10)."""
    rows = [row for row in feature_rows(found) if row["links"] == links]
    top = best(rows, "r2")
    title = f"{_kind(links)}: the link change rate from what the first round shows"
    if top:
        title = f"{_kind(links)}: the link change rate is told best from {top['features']} (R² {top['r2']:.2f})"
    figure = blank_figure(title, "", "score", height=420)
    groups = [
        [plotly_text(row["learner"]) for row in rows],
        [plotly_text(row["features"] if row["features"] != "none" else "nothing") for row in rows],
    ]
    for score, name, colour in ERRORS:
        figure.add_bar(
            x=groups,
            y=[row[score] for row in rows],
            text=[cell_text(row[score], ".2f") for row in rows],
            textposition="outside",
            textangle=0,
            cliponaxis=False,
            textfont_size=10,
            name=name,
            marker_color=colour,
            hovertemplate="%{x}: %{y:.3f}<extra>%{fullData.name}</extra>",
        )
    return (
        figure.update_layout(barmode="group", bargap=0.12)
        .update_xaxes(dividercolor=COLOURS["all"], showgrid=False)
        .update_yaxes(zeroline=True, zerolinecolor=COLOURS["all"])
    )


def history_figure(found: Evaluation, links: str) -> Figure:
    """Scores of presence against the rounds of history, beside the previous count's F1 (LBLA Fig. 12)."""
    rows = [row for row in history_rows(found) if row["links"] == links]
    steps = sorted((row for row in rows if row["learner"] != PREVIOUS), key=lambda row: row["history"])
    figure = blank_figure(_history_title(links, steps), "rounds of history", "score")
    for score, name, colour, dash in SCORE_LINES:
        figure.add_scatter(
            x=[row["history"] for row in steps],
            y=[row[score] for row in steps],
            customdata=[row["n_columns"] for row in steps],
            name=name,
            mode="lines+markers",
            line={"color": colour, "dash": dash, "width": 2},
            hovertemplate="history %{x}, %{customdata} columns: %{y:.3f}<extra>%{fullData.name}</extra>",
        )
    previous = next((row["f1"] for row in rows if row["learner"] == PREVIOUS), None)
    longest = steps[-1]["history"] if steps else 0
    if is_known(previous):
        figure.add_scatter(
            x=[min(1, longest), longest],
            y=[previous, previous],
            name=f"{PREVIOUS}, F1",
            mode="lines",
            line={"color": COLOURS["all"], "dash": "dot", "width": 2},
            hovertemplate="%{y:.3f}<extra>%{fullData.name}</extra>",
        )
    return figure.update_xaxes(dtick=1)


def _history_title(links: str, steps: Sequence[Row]) -> str:
    ends = [steps[0]["f1"], steps[-1]["f1"]] if len(steps) > 1 else []
    if not ends or not all(map(is_known, ends)):
        return f"{_kind(links)}: whether there will be new ones, by rounds of history"
    rounds = f"{steps[-1]['history']} round{'s' * (steps[-1]['history'] != 1)}"
    return f"{_kind(links)}: F1 goes from {ends[0]:.2f} without history to {ends[1]:.2f} with {rounds}"


def importance_figure(target: str, links: str, rows: Sequence[Row], *, grouped: bool) -> Figure:
    """How much a score drops when features are shuffled, one box for each, the most important on top (LBLA Figs. 11, 13)."""
    what = "features that go together, shuffled together" if grouped else "single features"
    title = f"{TARGETS.get(target, target).capitalize()}, {links} links: {what}"
    height = 120 + 38 * len(rows)
    figure = blank_figure(title, f"drop of {SCORE_OF.get(target, 'the score')} when shuffled", "", height)
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
            marker={"color": PALETTE[0], "size": 4},
            line={"color": PALETTE[0], "width": 1.5},
            fillcolor="rgba(47,111,181,0.18)",
            hovertemplate="%{x:.4f}<extra>%{fullData.name}</extra>",
            showlegend=False,
        )
    names = [_folded(row["name"]) for row in rows]
    figure.update_yaxes(tickvals=list(range(len(rows))), ticktext=names, range=[len(rows) - 0.4, -0.6], showgrid=False)
    return figure.add_vline(x=0, line={"color": COLOURS["all"], "width": 1, "dash": "dot"})


def correlation_figure(found: Evaluation, row: Row) -> Figure:
    """Spearman's ρ between every two static features, the lower triangle (LBLA Fig. 8)."""
    names, rho = row["names"], row["spearman"]
    strongest = correlated_pairs(found)[:1]
    title = "".join(f"“{first}” and “{second}” go together most (ρ {value:.2f})" for first, second, value in strongest)
    figure = blank_figure(title or "Which features go together", "", "", height=140 + 34 * len(names))
    figure.add_heatmap(
        **_cells(rho, [[f"{plotly_text(first)}<br>{plotly_text(second)}" for second in names] for first in names]),
        z=rho,
        zmin=-1,
        zmax=1,
        colorscale=DIVERGING,
        textfont_size=10,
        hoverongaps=False,
        showscale=False,  # the numbers are in the cells
    )
    numbers = [str(i + 1) for i in range(len(names))]
    numbered = [f"{_folded(name)}  {i}" for name, i in zip(names, numbers, strict=True)]
    return _named_cells(figure, numbers, numbered).update_xaxes(tickfont_size=11).update_yaxes(tickfont_size=11)


def _cells(rho: Sequence[Sequence[float | None]], names: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Cells with their numbers in them; `names` are what the reader points at."""
    return {
        "text": [[cell_text(value, "z.2f") if is_known(value) else "" for value in line] for line in rho],
        "texttemplate": "%{text}",
        "customdata": names,
        "hovertemplate": "%{customdata}<br>ρ = %{text}<extra></extra>",
        "xgap": 2,
        "ygap": 2,
    }


def _named_cells(figure: Figure, columns: Sequence[str], rows: Sequence[str]) -> Figure:
    """Names at the columns and rows of cells, the first row on top."""
    figure.update_xaxes(tickvals=list(range(len(columns))), ticktext=columns, showgrid=False)
    return figure.update_yaxes(
        tickvals=list(range(len(rows))), ticktext=rows, range=[len(rows) - 0.5, -0.5], showgrid=False
    )


def map_figure(row: Row) -> Figure:
    """Pages by two features and their true link change rate, and what a model of the two makes of it (LBLA preprint Fig. 13)."""
    first, second = row["features"]
    title = f"{_kind(row['links'])}: the link change rate by {first} and {second}"
    title += f" (MAE {row['mae']:.2f})" if is_known(row["mae"]) else ""
    figure = blank_figure(title, plotly_text(first), plotly_text(second), height=400)
    pages = np.asarray(row["pages"], np.float64).reshape(-1, 3)
    x, y = Axis(row["x"]), Axis(row["y"])
    figure.add_scatter(
        x=x.placed(pages[:, 0]),
        y=y.placed(pages[:, 1]),
        mode="markers",
        marker={
            "size": 6,
            "color": pages[:, 2],
            "coloraxis": "coloraxis",
            "line": {"width": 0.7, "color": COLOURS["all"]},
        },
        customdata=pages[:, :2],
        hovertemplate="%{customdata[0]:,.4~g}; %{customdata[1]:,.4~g}: true rate %{marker.color:.2f}<extra></extra>",
        showlegend=False,
    )
    # No contour: the trees' plateaus, cut at their very heights, keep a browser busy for minutes.
    figure.add_heatmap(
        x=x.placed(x.values),
        y=y.placed(y.values),
        z=np.asarray(row["rate"], np.float64).T,
        coloraxis="coloraxis",
        xaxis="x2",
        yaxis="y2",
        hovertemplate="predicted rate %{z:.2f}<extra></extra>",
    )
    figure.layout.xaxis2, figure.layout.yaxis2 = figure.layout.xaxis, figure.layout.yaxis
    figure.update_layout(
        xaxis={"domain": [0, 0.46]},
        xaxis2={"domain": [0.54, 1], "anchor": "y2", "matches": "x"},
        yaxis2={"anchor": "x2", "matches": "y", "title": None, "showticklabels": False},
        coloraxis={"colorscale": RATES, "cmin": 0, "cmax": 1, "colorbar": {"title": "rate", "thickness": 12}},
        margin={"t": 72},
    )
    for at, text in ((0.23, "true rate of unseen pages"), (0.77, "predicted from the two")):
        figure.add_annotation(text=text, x=at, y=1.02, showarrow=False)
    figure.update_annotations(xref="paper", yref="paper", xanchor="center", yanchor="bottom")
    return figure.update_xaxes(**x.ticks()).update_yaxes(**y.ticks())


class Axis:
    """Where values are drawn: in equal steps of log(1 + x) if the axis was made so, which keeps zeros in sight."""

    def __init__(self, values: Sequence[float]) -> None:
        given = np.asarray(values, np.float64)
        self.values = np.where(np.isfinite(given), given, np.nan)
        steps = np.diff(self.values)
        self.is_log = bool(len(steps) and self.values[0] >= 0 and steps[-1] > 1.5 * steps[0])

    def placed(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The places of values on the axis."""
        return np.log1p(np.maximum(values, 0)) if self.is_log else values

    def ticks(self) -> dict[str, Any]:
        """The axis' settings: its range, and labels for round values where it is logarithmic."""
        low, high = self.placed(self.values[[0, -1]]) if len(self.values) else (0.0, 1.0)
        span = {"range": [low, high]}
        if not self.is_log:
            return span
        powers = 10.0 ** np.arange(0, 13)
        for factors in ((1,), (1, 3), (1, 2, 5)):
            round_ones = np.sort(np.concatenate([[0.0], *(factor * powers for factor in factors)]))
            shown = round_ones[(np.log1p(round_ones) >= low) & (np.log1p(round_ones) <= high)]
            if len(shown) >= 3:
                break
        return span | {"tickvals": np.log1p(shown).tolist(), "ticktext": [_short(value) for value in shown]}


def ranking_figure(found: Evaluation, links: str) -> Figure:
    """Spearman's ρ of every ranking with every truth; each row has its own scale of colours (LBLA Fig. 14)."""
    rows = [row for row in ranking_rows(found) if row["links"] == links]
    rankings = list(dict.fromkeys((row["ranking"], row["paper"]) for row in rows))
    truths = list(dict.fromkeys(row["truth"] for row in rows))
    known = {(row["truth"], row["ranking"]): row["spearman"] for row in rows}
    rho = [[known.get((truth, name)) for name, _ in rankings] for truth in truths]
    figure = blank_figure(_ranking_title(links, rows), "", "", height=180 + 56 * len(truths))
    figure.add_heatmap(
        **_cells(rho, [[plotly_text(name) for name, _ in rankings] for _ in truths]),
        z=[_scaled(line) for line in rho],
        zmin=0,
        zmax=1,
        colorscale=SEQUENTIAL,
        showscale=False,
    )
    n_models = sum(name not in BASELINES for name, _ in rankings)
    if 0 < n_models < len(rankings):
        figure.add_vline(x=n_models - 0.5, line={"color": PALETTE[1], "width": 3})
    columns = [plotly_text(paper or name) for name, paper in rankings]
    names = [f"{plotly_text(TARGETS.get(truth, truth))}<br>({PAPERS.get(truth, '–')})" for truth in truths]
    return _named_cells(figure, columns, names).update_xaxes(tickangle=-40)


def _ranking_title(links: str, rows: Sequence[Row]) -> str:
    top = best((row for row in rows if row["truth"] == "new-link-count"), "spearman")
    if not top:
        return f"{_kind(links)}: how close each ranking comes to the truth"
    return f"{_kind(links)}: {label(top)} orders pages best by their number of new links (ρ {top['spearman']:.2f})"


def _scaled(values: Sequence[float | None]) -> list[float | None]:
    """From 0 for the smallest to 1 for the largest."""
    known = [value for value in values if value is not None and is_known(value)]
    low, span = (min(known), max(known) - min(known)) if known else (0.0, 0.0)
    return [None if value is None or not is_known(value) else (value - low) / span if span else 0.5 for value in values]


def precision_figure(found: Evaluation, links: str, truth: str) -> Figure:
    """Precision@k% of every ranking, the largest area first (LBLA Fig. 15; its preprint's Figs. 17 to 19)."""
    rows = [row for row in ranking_rows(found) if (row["links"], row["truth"]) == (links, truth)]
    styles = {row["ranking"]: style for row, style in zip(rows, _styles(rows), strict=True)}
    rows = sorted((row for row in rows if is_known(row["area"])), key=lambda row: -row["area"])
    title = f"{_kind(links)}, {TARGETS.get(truth, truth)}"
    title += f": {label(rows[0])} finds the top pages best (area {rows[0]['area']:.3f})" if rows else ""
    figure = blank_figure(title, "top share of the pages, k", "of it found by the ranking's top k", height=560)
    for row in rows:
        curve = _mean_curve(found, row)
        figure.add_scatter(
            x=np.linspace(0, 1, len(curve)),
            y=curve,
            name=f"{plotly_text(label(row))}: {row['area']:.3f}",
            mode="lines",
            line=styles[row["ranking"]],
            hovertemplate="top %{x:.0%}: %{y:.1%} found<extra>%{fullData.name}</extra>",
        )
    return _shares(figure, "random: 0.500", 1.0)


def _mean_curve(found: Evaluation, row: Row) -> NDArray[np.float64]:
    keys = ("links", "truth", "ranking")
    curves = [
        other["curve"] for other in found.rows["rankings"] if other["curve"] and all(other[k] == row[k] for k in keys)
    ]
    values = np.array([curve for curve in curves if len(curve) == len(curves[0])], np.float64)
    known = ~np.isnan(values)
    mean: NDArray[np.float64] = np.where(known, values, 0).sum(axis=0) / np.where(
        known.any(axis=0), known.sum(axis=0), np.nan
    )
    return mean


def _styles(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """A colour for every way to learn, kept in all figures; dashed for LBLA, dotted for baselines."""
    colours: dict[str, str] = {}
    free = iter((*PALETTE, COLOURS["all"]) * 9)
    styles = []
    for row in rows:
        family = label(row).removesuffix("_LBLA")
        if family not in colours:
            colours[family] = next(free)
        is_lbla = label(row) != family
        dash = "dot" if row["ranking"] in BASELINES else "dash" if is_lbla else "solid"
        styles.append({"color": colours[family], "dash": dash, "width": 2})
    return styles


def calibration_figure(found: Evaluation, links: str) -> Figure:
    """Of the pages with about the same predicted probability of new links, the share that had some."""
    top = min(
        (row for row in count_rows(found) if row["links"] == links and is_known(row["calibration_error"])),
        key=lambda row: float(row["calibration_error"]),
        default=None,
    )
    title = f"{_kind(links)}: predicted and observed probability of new links"
    if top:
        title = (
            f"{_kind(links)}: the probabilities of {top['learner']} are {top['calibration_error']:.3f} off on average"
        )
    figure = blank_figure(title, "predicted probability of new links", "share of pages with new links", height=480)
    bins: dict[str, list[Any]] = {}
    for row in found.rows["counts"]:
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
            mode="lines+markers",
            line={"color": PALETTE[i % len(PALETTE)], "width": 2},
            hovertemplate="predicted %{x:.1%}, observed %{y:.1%} of %{customdata:,} pages<extra>%{fullData.name}</extra>",
        )
    return _shares(figure, "perfect", min(1.0, 1.05 * highest))


def _pooled(bins: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Bins of several repetitions as ten: mean prediction, observed share, number of pages."""
    known = np.asarray(bins, np.float64).reshape(-1, 3)
    known = known[np.isfinite(known).all(axis=1) & (known[:, 2] > 0)]
    known = known[np.argsort(known[:, 0], kind="stable")]
    parts = [part for part in np.array_split(known, N_BINS) if len(part)]
    return np.array(
        [[*np.average(part[:, :2], axis=0, weights=part[:, 2]), part[:, 2].sum()] for part in parts]
    ).reshape(-1, 3)


def label(row: Row) -> str:
    """The paper's name of a ranking, or ours where it has none."""
    name: str = row["paper"] or row["ranking"]
    return name


def _shares(figure: Figure, diagonal: str, highest: float) -> Figure:
    """Both axes as shares from 0 to the highest, with the diagonal."""
    line = {"color": COLOURS["all"], "width": 1, "dash": "dash"}
    figure.add_scatter(x=[0, highest], y=[0, highest], name=diagonal, mode="lines", line=line, hoverinfo="skip")
    axis = {"tickformat": ".0%", "range": [-0.01 * highest, 1.01 * highest]}
    return figure.update_xaxes(**axis).update_yaxes(**axis)


def _kind(links: str) -> str:
    return f"{links.capitalize()} links"


def _folded(text: str) -> str:
    """In lines that leave the figure room beside them."""
    return "<br>".join(map(plotly_text, textwrap.wrap(text, 36, max_lines=2, placeholder=" …")))


def _short(value: float) -> str:
    """A round number as a label: 10k, 3M."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
