"""Focused replays: relevant links beside all links, as a table and in one figure.

References: Pham, Santos and Freire (2018), Table 2 and Fig. 2; beside it what the same fetches find of all links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recrawl.core.words import percent
from recrawl.replay.summary import all_links, column, coverage_over_time, share
from recrawl.report.figures import blank_figure, plotly_text
from recrawl.report.replays.comparison import Replays
from recrawl.report.replays.figures import CYCLE_END, add_coverage, drawn, height
from recrawl.report.replays.tables import budget_text, name_of
from recrawl.report.tables import Cell, Table, with_best

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MAX_DRAWN = 4  #: policies; each has two curves


def focus_figure(replays: Replays, budget: int) -> Figure:
    """The share found so far of the relevant links (solid) and of all links (dotted), of the policies that found most."""
    best = replays.best(budget)
    title = "Relevant and all new links"
    if best is not None:
        of_all = percent(share(*all_links(best)) or 0.0)
        title = (
            f"{best.policy} has found {percent(replays.coverage(best))} of the relevant and {of_all} of all new links"
        )
    figure = blank_figure(
        f"{title}, with {budget_text(replays, budget)}", CYCLE_END, "found, of the links so far", height(replays)
    )
    shown = 0
    for run, style in drawn(replays, budget):
        shown += style["visible"] is True
        visible = style["visible"] if shown <= MAX_DRAWN else "legendonly"
        everything = [{"found": row["found_all"], "published": row["published_all"]} for row in run.rows]
        for what, rows, dash in (("relevant", run.rows, "solid"), ("all", everything, "dot")):
            name = f"{plotly_text(name_of(run))}, {what}: {coverage_over_time(rows)[-1]:.3f}"
            dashed = style | {"visible": visible, "line": style["line"] | {"dash": dash}}
            add_coverage(figure, run, rows, name, dashed)
    return figure.update_yaxes(tickformat=".0%", rangemode="tozero")


def focus_table(replays: Replays) -> Table:
    """Links found by each policy: the relevant ones, and all."""
    several = len(replays.budgets) > 1
    rows: list[list[Cell]] = []
    for run in replays.runs:
        relevant, (found, published) = float(column(run.rows, "found").sum()), all_links(run)
        cells: list[Cell] = [relevant, replays.coverage(run), float(found), share(found, published)]
        rows.append([*([run.budget] if several else []), name_of(run), *cells, share(relevant, found)])
    names = ("relevant found", "of the relevant", "all found", "of all", "relevant per link found")
    formats = dict(zip(names, (",.0f", ".3f", ",.0f", ".3f", ".1%"), strict=True))
    table = Table((*(["budget"] if several else []), "policy", *names), rows, formats)
    for budget in replays.budgets:
        competing = [i for i, run in enumerate(replays.runs) if run.budget == budget and not run.sees_future]
        table = with_best(table, {"of the relevant": max, "of all": max}, competing)
    return table
