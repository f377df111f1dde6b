"""The evaluation as heat maps: correlations of features, the rate over two features, rankings and truths.

References: LBLA (2022) Figs. 8 and 14, its preprint's Fig. 13.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.core.arrays import Floats
from recrawl.insight.targets import ALL as ALL_TARGETS
from recrawl.papers.outlinks.evaluation import OutlinkEvaluation
from recrawl.papers.outlinks.ladders import Row
from recrawl.papers.outlinks.tables import BASELINES, MARK, TARGETS, apart, best, correlated_pairs, ranking_rows
from recrawl.report.figures import GREY, ORANGE, blank_figure, plotly_text
from recrawl.report.tables import cell_text, is_known

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

PAPERS = {target.name: target.paper for target in ALL_TARGETS}  #: "link-change-rate" → "LCR"
#: From negative to positive, in blue and orange, which readers with any kind of colour vision can distinguish.
DIVERGING = ((0.0, "#c2610f"), (0.25, "#efb27d"), (0.5, "#f3f4f6"), (0.75, "#8fbce6"), (1.0, "#1f5a99"))
SEQUENTIAL = ((0.0, "#eef4fa"), (0.5, "#8fbce6"), (1.0, "#1b4f8a"))
RATES = "Cividis"  # for the link change rate: can be read on a light and on a dark page


def correlation_figure(evaluation: OutlinkEvaluation, row: Row) -> Figure:
    """Spearman's ρ in hundredths between every two static features, the lower triangle (LBLA Fig. 8).

    Names are above their rows, not beside them: on a phone they would leave the cells no room.
    """
    names, rho = row["names"], row["spearman"]
    strongest = correlated_pairs(evaluation)[:1]
    title = "".join(f"“{first}” and “{second}” correlate most (ρ {value:.2f})" for first, second, value in strongest)
    figure = blank_figure(title or "Which features correlate", "", "", height=140 + 38 * len(names))
    cells = _cells(rho, [[f"{plotly_text(first)}<br>{plotly_text(second)}" for second in names] for first in names])
    hundredths = [
        [f"{100 * value:z.0f}" if is_known(value) and i != j else "" for j, value in enumerate(line)]
        for i, line in enumerate(rho)
    ]
    figure.add_heatmap(
        **cells | {"text": hundredths, "ygap": 20, "hovertemplate": "%{customdata}<br>ρ = %{z:.2f}<extra></extra>"},
        z=rho,
        zmin=-1,
        zmax=1,
        colorscale=DIVERGING,
        textfont_size=10,
        hoverongaps=False,
        showscale=False,  # the numbers are in the cells
    )
    numbers = [str(i + 1) for i in range(len(names))]
    numbered = [f"{i}  {plotly_text(name)}" for name, i in zip(names, numbers, strict=True)]
    above = {"ticklabelposition": "inside", "ticklabelshift": 18, "ticklabeloverflow": "allow", "ticks": ""}
    figure = _named_cells(figure, numbers, numbered).update_xaxes(tickfont_size=11, tickangle=0)
    figure.update_xaxes(range=[-0.5, len(names) - 0.5])  # else the names are given room of their own
    return figure.update_yaxes(tickfont_size=11, **above).update_layout(margin={"l": 12, "r": 12})


def _cells(rho: Sequence[Sequence[float | None]], names: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Cells with their numbers in them; `names` are shown under the pointer."""
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
    """Pages by two features and their true link change rate, and what a model of the two predicts (LBLA preprint Fig. 13)."""
    first, second = row["features"]
    title = f"{kind(row['links'])}: the link change rate by {first} and {second}"
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
            "line": {"width": 0.7, "color": GREY},
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
        xaxis2_title=None,
        coloraxis={"colorscale": RATES, "cmin": 0, "cmax": 1, "colorbar": {"title": "rate", "thickness": 12}},
        margin={"t": 72},
    )
    for at, text in ((0.23, "true rate"), (0.77, "predicted")):
        figure.add_annotation(text=text, x=at, y=1.02, showarrow=False)
    figure.update_annotations(xref="paper", yref="paper", xanchor="center", yanchor="bottom")
    return figure.update_xaxes(**x.ticks()).update_yaxes(**y.ticks())


class Axis:
    """Where values are drawn: in equal steps of log(1 + x) if the given values have such steps, which keeps zeros in sight."""

    def __init__(self, values: Sequence[float]) -> None:
        given = np.asarray(values, np.float64)
        self.values = np.where(np.isfinite(given), given, np.nan)
        steps = np.diff(self.values)
        self.is_log = bool(len(steps) and self.values[0] >= 0 and steps[-1] > 1.5 * steps[0])

    def placed(self, values: Floats) -> Floats:
        """The positions of values on the axis."""
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


def ranking_figure(evaluation: OutlinkEvaluation, links: str) -> Figure:
    """Spearman's ρ of every ranking with every truth; each row has its own scale of colours (LBLA Fig. 14)."""
    rows = [row for row in ranking_rows(evaluation) if row["links"] == links]
    rankings = list(dict.fromkeys((row["ranking"], row["paper"]) for row in rows))
    truths = list(dict.fromkeys(row["truth"] for row in rows))
    known = {(row["truth"], row["ranking"]): row["spearman"] for row in rows}
    rho = [[known.get((truth, name)) for name, _ in rankings] for truth in truths]
    compared = [row for row in rows if row["ranking"] not in apart(evaluation)]
    figure = blank_figure(_ranking_title(links, compared), "", "", height=180 + 56 * len(truths))
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
        figure.add_vline(x=n_models - 0.5, line={"color": ORANGE, "width": 3})
    columns = [plotly_text(paper or name) + (MARK if name in apart(evaluation) else "") for name, paper in rankings]
    names = [folded(f"{TARGETS.get(truth, truth)} ({PAPERS.get(truth, '–')})", 14, 3) for truth in truths]
    figure = _named_cells(figure, columns, names)
    return figure.update_xaxes(tickangle=-90, tickfont_size=11).update_yaxes(tickfont_size=11)


def _ranking_title(links: str, rows: Sequence[Row]) -> str:
    top = best((row for row in rows if row["truth"] == "new-link-count"), "spearman")
    if not top:
        return f"{kind(links)}: how close each ranking is to the truth"
    return f"{kind(links)}: {label(top)} orders pages best by their number of new links (ρ {top['spearman']:.2f})"


def _scaled(values: Sequence[float | None]) -> list[float | None]:
    """From 0 for the smallest to 1 for the largest."""
    known = [value for value in values if value is not None and is_known(value)]
    low, span = (min(known), max(known) - min(known)) if known else (0.0, 0.0)
    return [None if value is None or not is_known(value) else (value - low) / span if span else 0.5 for value in values]


def label(row: Row) -> str:
    """The paper's name of a ranking, or ours where it has none."""
    name: str = row["paper"] or row["ranking"]
    return name


def kind(links: str) -> str:
    """The kind of links, at the beginning of a figure's title."""
    return f"{links.capitalize()} links"


def folded(text: str, width: int = 30, lines: int = 2) -> str:
    """A name in lines that leave the figure room beside them."""
    return "<br>".join(map(plotly_text, textwrap.wrap(text, width, max_lines=lines, placeholder=" …")))


def _short(value: float) -> str:
    """A round number as a label: 10k, 3M."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
