"""The evaluation of experts as tables: neutral ones that a page can hold, and the same for the terminal, with what they come to.

References: Radinsky and Bennett (2013), Tables 1 to 3, Figs. 6 and 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from scipy import stats

from recrawl.experiments.experts_settings import (
    BAGGING,
    BOOSTING,
    COIN,
    MAJORITY,
    RELATED,
    SINGLE,
    THRESHOLD,
    UNION,
    ExpertEvaluation,
    Row,
)
from recrawl.experiments.findings import percent
from recrawl.experiments.page import Cell, Table
from recrawl.experiments.tables import rich_table

if TYPE_CHECKING:
    from rich.table import Table as RichTable

RANDOM = "random"
#: Accuracies in the paper's Tables 1 and 2, and in its Table 3 by how experts are chosen.
IN_PAPER = {COIN: 0.5484, SINGLE: 0.6293, UNION: 0.6291, BOOSTING: 0.6344, BAGGING: 0.6358}
IN_PAPER_BY_CHOICE = {"graph": 0.6440, "content": 0.6727, "cross-correlation": 0.7272, "dtw": 0.7033}
SCORES = ("accuracy", "± 95%", "balanced accuracy")
FORMATS = {"accuracy": ".1%", "± 95%": ".1%", "balanced accuracy": ".1%", "p-value": ".2g", "in the paper": ".1%"}
#: The methods of a training size, with names that fit a narrow column.
IN_A_ROW = {MAJORITY: "majority", COIN: "coin", THRESHOLD: "threshold", SINGLE: "single", RELATED: "related"}


def scope(found: ExpertEvaluation) -> str:
    """What was evaluated."""
    settings = found.settings
    sample = ", at random" if found.n_predicted == settings.most_pages else ""
    return (
        f"{found.n_pages:,} pages whose words are known in {found.n_rounds:,} rounds ({settings.every}) from {found.first} to "
        f"{found.last}; {found.n_predicted:,} of them{sample}, all of which go from change to rest or back in {settings.alpha:.0%} "
        f"of the rounds or more, are predicted {_rounds(settings.sigma)} ahead from {_rounds(settings.n_train)} of training. What "
        f"counts as a change: {settings.notion}; {percent(found.change_rate)} of the known rounds of all pages have one, and "
        f"{percent(found.predicted_change_rate)} of those of the predicted pages."
    )


def label(row: Row) -> str:
    """A method as people read it.

    >>> label({"method": "related-experts", "experts": "random"}), label({"method": "bagging", "experts": "dtw"})
    ('experts that are random pages', 'bagging, by dtw')
    """
    if row["method"] == RELATED and row["experts"] == RANDOM:
        return "experts that are random pages"
    return f"{row['method']}, by {row['experts']}" if row["experts"] else str(row["method"])


def half_interval(row: Row) -> float | None:
    """Half of the 95% interval of a mean over pages, by Student's t; None for a single page."""
    if row["deviation"] is None or row["n_pages"] < 2:
        return None
    return float(stats.t.ppf(0.975, row["n_pages"] - 1) * row["deviation"] / math.sqrt(row["n_pages"]))


def in_paper(row: Row) -> float | None:
    """The paper's accuracy of a method; None where it has none."""
    if row["method"] == RELATED:
        return IN_PAPER_BY_CHOICE.get(row["experts"])
    return IN_PAPER.get(row["method"])


def settings_table(found: ExpertEvaluation) -> Table:
    """What helps: the past alone, the page's own words, related pages; or any pages (Table 1)."""
    return _by_method(found.rows["settings"], ("method",), lambda row: [label(row)])


def combining_table(found: ExpertEvaluation) -> Table:
    """Ways to combine the experts' knowledge (Table 2)."""
    return _by_method(found.rows["combining"], ("method",), lambda row: [row["method"]])


def selection_table(found: ExpertEvaluation) -> Table:
    """Ways to choose experts (Table 3)."""
    return _by_method(found.rows["selection"], ("experts",), lambda row: [row["experts"] or row["method"]])


def number_table(found: ExpertEvaluation) -> Table:
    """Accuracy by the number of experts (Fig. 7)."""
    rows = found.rows["number"]
    table = _by_method(rows, ("method", "experts"), lambda row: [row["method"], row["k"] or None])
    return _without_last(table)  # the paper has a plot and no numbers


def history_table(found: ExpertEvaluation) -> Table:
    """Accuracy by the rounds of training, all on the same predictions (Fig. 6)."""
    rows: list[list[Cell]] = []
    for n in dict.fromkeys(row["n_train"] for row in found.rows["history"]):
        known = {row["method"]: row for row in found.rows["history"] if row["n_train"] == n}
        single, related = known[SINGLE], known[RELATED]
        row: list[Cell] = [n, *(known[method]["accuracy"] for method in IN_A_ROW)]
        row += [single["balanced_accuracy"], related["balanced_accuracy"], single["p_value"]]
        rows.append([*row, related["n_pages"], related["n_predictions"]])
    scores = (*IN_A_ROW.values(), "single, balanced", "related, balanced")
    return Table(("rounds", *scores, "p-value", "pages", "predictions"), rows, dict.fromkeys(scores, ".1%") | FORMATS)


def _by_method(rows: Sequence[Row], names: tuple[str, ...], name: Callable[[Row], list[Cell]]) -> Table:
    """One method a row, the highest accuracy in bold."""
    cells: list[list[Cell]] = []
    for row in rows:
        scores = [row["accuracy"], half_interval(row), row["balanced_accuracy"]]
        cells.append([*name(row), *scores, row["n_pages"], row["n_predictions"], row["p_value"], in_paper(row)])
    top = max((row["accuracy"] for row in rows), default=0.0)
    bold = {(i, len(names)) for i, row in enumerate(rows) if row["accuracy"] == top}
    return Table((*names, *SCORES, "pages", "predictions", "p-value", "in the paper"), cells, FORMATS, bold)


def _without_last(table: Table) -> Table:
    return Table(table.header[:-1], [row[:-1] for row in table.rows], table.formats, table.bold)


def _rounds(n: int) -> str:
    return f"{n:,} round{'s' * (n != 1)}"


RELATED_TESTED = "p-value: paired t-test over pages against related experts as asked for"
#: Title, part of the evaluation, its table and what is to be known of it, in the order they are shown.
ALL: tuple[tuple[str, str, Callable[[ExpertEvaluation], Table], str], ...] = (
    ("What helps to predict a change (the paper's Table 1)", "settings", settings_table, RELATED_TESTED),
    ("Ways to combine experts (Table 2)", "combining", combining_table, RELATED_TESTED),
    ("Ways to choose experts (Table 3)", "selection", selection_table, RELATED_TESTED),
    (
        "Accuracy by rounds of training (Fig. 6)",
        "history",
        history_table,
        f"the same predictions for all; p-value: {SINGLE} against {RELATED}",
    ),
    (
        "Accuracy by number of experts (Fig. 7)",
        "number",
        number_table,
        f"p-value: paired t-test over pages against {SINGLE}",
    ),
)


def tables(found: ExpertEvaluation) -> list[RichTable]:
    """All tables of the parts that were asked for, for the terminal."""
    return [
        rich_table(title, make(found), note if found.rows[part] else "nothing to show")
        for title, part, make, note in ALL
        if part in found.rows
    ]
