"""The report of `recrawl experiments harvest`: one list of parts, from which its page and its tables are made."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from recrawl.core.words import count, percent
from recrawl.report.figures import GREY, blank_figure, curve_style
from recrawl.report.harvest.experiment import CalibrationResult, HarvestResult
from recrawl.report.page import write_page
from recrawl.report.parts import ReportPart, page_sections, terminal_tables
from recrawl.report.tables import Cell, Table

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def ablation_table(result: HarvestResult) -> Table:
    """Coverage of the whole policy, and how it changes without each part."""
    heads = tuple(f"k = {budget}" for budget in result.budgets)
    soon = tuple(f"k = {budget}, within 4 cycles" for budget in result.budgets)
    whole = result.ablations[0]
    rows: list[list[Cell]] = [["nothing", *_signed(whole.coverage, None), *_signed(whole.within_4_cycles, None)]]
    for ablation in result.ablations[1:]:
        changes = _signed(ablation.coverage, whole.coverage)
        errors = ["" if error is None else f" ± {error:.3f}" for error in ablation.chance]
        early = _signed(ablation.within_4_cycles, whole.within_4_cycles)
        rows.append([ablation.left_out, *(a + b for a, b in zip(changes, errors, strict=True)), *early])
    return Table(("left out", *heads, *soon), rows, note=CONTRIBUTIONS, rules={0})


def _signed(values: tuple[float, ...], base: tuple[float, ...] | None) -> list[str]:
    if base is None:
        return [f"{value:.3f}" for value in values]
    return [f"{value - whole:+.3f}" for value, whole in zip(values, base, strict=True)]


def calibration_table(result: HarvestResult) -> Table:
    """What plans expected and found, and how many counts were in their intervals."""
    levels = list(result.calibrated[0].levels) if result.calibrated else []
    header: tuple[str, ...] = ("pages per cycle", "expected", "found", "expected / found")
    header += tuple(f"{level:.0%} interval: stated, held" for level in levels)
    rows: list[list[Cell]] = []
    for calibration in result.calibrated:
        ratio = calibration.expected / calibration.found if calibration.found else None
        held = [f"{stated:.1%}, {inside:.1%}" for stated, inside in calibration.levels.values()]
        rows.append([calibration.budget, round(calibration.expected), calibration.found, ratio, *held])
    return Table(header, rows, {"expected / found": ".2f"}, note=INTERVALS)


def hidden_table(result: HarvestResult) -> Table:
    """What is known of pages whose past is hidden."""
    hidden = result.hidden
    rows: list[list[Cell]] = [] if hidden is None else [[name, skill] for name, skill in hidden.skill.items()]
    header = ("the model knows", "rank correlation")
    title = f"{count(hidden.n_pages, 'page')} whose past is hidden" if hidden else ""
    return Table(header, rows, {header[1]: ".3f"}, title=title, note=SKILL)


def calibration_figure(calibration: CalibrationResult) -> Figure:
    """Visits by the number of links expected of them, and what they found."""
    title = f"Expected and found, {count(calibration.budget, 'page')} per cycle"
    figure = blank_figure(title, "new links expected per visit", "new links found per visit", 420)
    expected, counts, sizes = zip(*calibration.bins, strict=True) if calibration.bins else ((), (), ())
    ends = [min((*expected, 0.01)), max((*expected, 1.0))]
    figure.add_scatter(x=ends, y=ends, mode="lines", name="as expected", line={"dash": "dot", "color": GREY})
    figure.add_scatter(
        x=expected,
        y=counts,
        name="mean of visits with about this expectation",
        customdata=sizes,
        hovertemplate="%{x:.2f} expected, %{y:.2f} found, %{customdata:,} visits<extra></extra>",
        **curve_style(0),
    )
    axis = {"type": "log", "dtick": 1, "tickformat": ",~r"}
    return figure.update_xaxes(**axis).update_yaxes(**axis)


CONTRIBUTIONS = (
    "k: pages visited per cycle. Coverage: share of all links that were found in the end; within 4 cycles: share that was found "
    "within 4 cycles of its appearance. Below the first row: the change without a part, ± its standard error over the orders of "
    "the pages."
)
INTERVALS = (
    "New links that all plans together expected and found. Stated: the probability that a count is in its interval, which is at "
    "least the level since counts are whole numbers; held: the share of counts that did."
)
SKILL = (
    "Rank correlation of the expected and the actual number of new links on these pages in the last quarter of the cycles: 1 is "
    "perfect, 0 is chance, and – means that the model expects the same of all."
)


def findings(result: HarvestResult) -> list[str]:
    """What the experiment shows, in a few sentences."""
    sentences = []
    if len(result.ablations) > 1:
        whole, budget = result.ablations[0], result.budgets[0]
        losses = {part.left_out: whole.coverage[0] - part.coverage[0] for part in result.ablations[1:]}
        top = max(losses, key=lambda name: losses[name])
        sentences.append(
            f"With {count(budget, 'page')} per cycle, expected-harvest finds {percent(whole.coverage[0])} of the links; the "
            f"part that it would miss most is “{top}” ({-losses[top]:+.3f} of coverage without it)."
        )
    for calibration in result.calibrated[:1]:
        sentences.append(
            f"With {count(calibration.budget, 'page')} per cycle, its plans expected {calibration.expected:,.0f} new links and "
            f"found {calibration.found:,}."
        )
    return sentences


def scope(result: HarvestResult) -> str:
    """What was replayed."""
    return (
        f"{count(result.n_pages, 'page')} in {count(result.n_cycles, 'cycle')}, with {count(result.discoverable, 'link')} to "
        "discover; expected-harvest chooses, and sees only what it visits."
    )


PARTS: tuple[ReportPart[HarvestResult], ...] = (
    ReportPart(
        title="What each part contributes: coverage, and the change without it",
        name="ablations",
        tables=lambda result: [ablation_table(result)],
    ),
    ReportPart(
        title="Whether expectations and intervals hold",
        name="calibrated",
        figures=lambda result: [calibration_figure(calibration) for calibration in result.calibrated],
        tables=lambda result: [calibration_table(result)],
    ),
    ReportPart(
        title="Pages without a past",
        name="hidden",
        tables=lambda result: [hidden_table(result)],
    ),
)


def _run_parts(result: HarvestResult) -> list[ReportPart[HarvestResult]]:
    return [part for part in PARTS if getattr(result, part.name, True)]


def harvest_tables(result: HarvestResult) -> list[Table]:
    """The tables of the parts that were run, for the terminal."""
    return terminal_tables(_run_parts(result), result)


def write_harvest_page(
    path: str | os.PathLike[str],
    result: HarvestResult,
    title: str = "What each part of expected-harvest contributes",
    *,
    self_contained: bool = False,
) -> Path:
    """Write everything as an HTML page."""
    sections = page_sections(_run_parts(result), result)
    return write_page(path, title, [*findings(result), scope(result)], sections, self_contained=self_contained)
