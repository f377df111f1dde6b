"""The experiment on expected-harvest as tables, figures and one HTML page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.experiments.figures import COLOURS, blank_figure
from recrawl.experiments.harvest import Calibrated, Harvested
from recrawl.experiments.page import Cell, Section, Table, write_page

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def ablation_table(found: Harvested) -> Table:
    """Coverage of the whole, and what it loses without each part."""
    heads = tuple(f"k = {budget}" for budget in found.budgets)
    soon = tuple(f"k = {budget}, within 4 cycles" for budget in found.budgets)
    whole = found.ablations[0]
    rows: list[list[Cell]] = [["nothing", *_signed(whole.coverage, None), *_signed(whole.within_4_cycles, None)]]
    for one in found.ablations[1:]:
        lost = _signed(one.coverage, whole.coverage), _signed(one.within_4_cycles, whole.within_4_cycles)
        by_chance = ["" if error is None else f" ± {error:.3f}" for error in one.chance]
        rows.append([one.left_out, *(a + b for a, b in zip(lost[0], by_chance, strict=True)), *lost[1]])
    return Table(("left out", *heads, *soon), rows)


def _signed(values: tuple[float, ...], base: tuple[float, ...] | None) -> list[str]:
    if base is None:
        return [f"{value:.3f}" for value in values]
    return [f"{value - whole:+.3f}" for value, whole in zip(values, base, strict=True)]


def calibration_table(found: Harvested) -> Table:
    """What plans expected and found, and how many counts fell into their intervals."""
    levels = list(found.calibrated[0].levels) if found.calibrated else []
    header: tuple[str, ...] = ("pages a cycle", "expected", "found", "expected / found")
    header += tuple(f"{level:.0%} interval: stated, held" for level in levels)
    rows: list[list[Cell]] = []
    for one in found.calibrated:
        ratio = one.expected / one.found if one.found else None
        held = [f"{stated:.1%}, {inside:.1%}" for stated, inside in one.levels.values()]
        rows.append([one.budget, round(one.expected), one.found, ratio, *held])
    return Table(header, rows, {"expected / found": ".2f"})


def hidden_table(found: Harvested) -> Table:
    """What is known of pages whose past is hidden."""
    hidden = found.hidden
    rows: list[list[Cell]] = [] if hidden is None else [[name, skill] for name, skill in hidden.skill.items()]
    return Table(
        ("the model knows", "rank correlation with what came"), rows, {"rank correlation with what came": ".3f"}
    )


def calibration_figure(one: Calibrated) -> Figure:
    """Pages by what was expected of them, and what came."""
    figure = blank_figure(
        f"Expected and found, {one.budget:,} pages a cycle", "new links expected", "new links found", 420
    )
    expected, came, sizes = zip(*one.bins, strict=True) if one.bins else ((), (), ())
    ends = [min((*expected, 0.01)), max((*expected, 1.0))]
    figure.add_scatter(x=ends, y=ends, mode="lines", name="as expected", line={"dash": "dot", "color": COLOURS["all"]})
    figure.add_scatter(
        x=expected,
        y=came,
        mode="markers+lines",
        name="mean of such pages",
        customdata=sizes,
        hovertemplate="%{x:.2f} expected, %{y:.2f} found, %{customdata:,} visits<extra></extra>",
    )
    return figure.update_xaxes(type="log").update_yaxes(type="log")


WORTH = (
    "k pages are visited a cycle. Coverage is the share of all links that were found in the end; within 4 cycles: the share that "
    "was found so soon after it came. Below the first row: the change without a part, ± its standard error over the orders of the "
    "pages."
)
HOLD = (
    "New links that all plans together expected and found. Intervals state how likely counts are to lie within, no less than their "
    "level since counts are whole numbers; held is the share that did."
)
SKILL = (
    "How well the model ranks pages by the links that come on them in the last quarter of the cycles: 1 is perfect, 0 is chance, "
    "and – where it expects the same of all."
)


def tables(found: Harvested) -> Iterator[tuple[str, str, Table]]:
    """All tables that there is something to fill with, with their titles and what they tell."""
    if found.ablations:
        yield "What each part is worth: coverage, and the change without it", WORTH, ablation_table(found)
    if found.calibrated:
        yield "Whether expectations and intervals hold", HOLD, calibration_table(found)
    if found.hidden is not None:
        yield f"{found.hidden.n_pages:,} pages whose past is hidden", SKILL, hidden_table(found)


def write_harvest_page(path: str | os.PathLike[str], found: Harvested) -> Path:
    """Write everything as one HTML file."""
    sections = [Section(title, note, [table]) for title, note, table in tables(found)]
    if found.calibrated:
        sections.append(Section("Expected and found", "", [calibration_figure(one) for one in found.calibrated]))
    scope = (
        f"{found.n_pages:,} pages in {found.n_cycles:,} cycles, with {found.discoverable:,} links to discover; "
        "expected-harvest chooses, and sees only what it visits."
    )
    return write_page(path, "The stock of unseen links: what each part is worth", [scope], sections)
