"""The evaluation of experts as tables.

References: Radinsky and Bennett (2013), Tables 1 to 3, Figs. 6 and 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from scipy import stats

from recrawl.core.words import count, percent
from recrawl.papers.experts.settings import (
    BAGGING,
    BOOSTING,
    COIN,
    EXPERTS,
    FRESHNESS,
    MAJORITY,
    RELATED,
    SINGLE,
    THRESHOLD,
    UNION,
    ExpertEvaluation,
    Row,
)
from recrawl.report.tables import Cell, Table, with_best

RANDOM = "random"
NEAREST, MOST_ROWS = 3, 60  #: experts of a page, and rows, that the table of experts shows
AGAINST_RELATED = "p-value: paired t-test over pages against related experts with the chosen settings"
#: Accuracies in the paper's Tables 1 and 2, and in its Table 3 by how experts are chosen.
IN_PAPER = {COIN: 0.5484, SINGLE: 0.6293, UNION: 0.6291, BOOSTING: 0.6344, BAGGING: 0.6358}
IN_PAPER_BY_CHOICE = {"graph": 0.6440, "content": 0.6727, "cross-correlation": 0.7272, "dtw": 0.7033}
SCORES = ("accuracy", "± 95%", "balanced accuracy")
FORMATS = {"accuracy": ".1%", "± 95%": ".1%", "balanced accuracy": ".1%", "p-value": ".2g", "in the paper": ".1%"}
#: The methods of a training size, with names that fit a narrow column.
IN_A_ROW = {MAJORITY: "majority", COIN: "coin", THRESHOLD: "threshold", SINGLE: "single", RELATED: "related"}


def scope(evaluation: ExpertEvaluation) -> str:
    """What was evaluated."""
    settings = evaluation.settings
    what = f"a change ({settings.notion})" if settings.target == "change" else settings.target
    sample = ", at random" if evaluation.n_predicted == settings.most_pages else ""
    return (
        f"{count(evaluation.n_pages, 'page')} with known words in {count(evaluation.n_rounds, 'round')} ({settings.every}) from "
        f"{evaluation.first} to {evaluation.last}. Predicted are {evaluation.n_predicted:,} of them{sample}: those that switch "
        f"between change and no change in {settings.alpha:.0%} of the rounds or more. Predictions are made "
        f"{count(settings.sigma, 'round')} ahead, from {count(settings.n_train, 'round')} of training. What is predicted: "
        f"{what}; {percent(evaluation.change_rate)} of the known rounds of all pages have one, and "
        f"{percent(evaluation.predicted_change_rate)} of those of the predicted pages."
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


def settings_table(evaluation: ExpertEvaluation) -> Table:
    """What helps: the past alone, the page's own words, related pages; or any pages (Table 1)."""
    return _by_method(evaluation.rows["settings"], ("method",), lambda row: [label(row)], AGAINST_RELATED)


def combining_table(evaluation: ExpertEvaluation) -> Table:
    """Ways to combine the experts' knowledge (Table 2)."""
    return _by_method(evaluation.rows["combining"], ("method",), lambda row: [row["method"]], AGAINST_RELATED)


def selection_table(evaluation: ExpertEvaluation) -> Table:
    """Ways to choose experts (Table 3)."""
    rows = evaluation.rows["selection"]
    return _by_method(rows, ("experts",), lambda row: [row["experts"] or row["method"]], AGAINST_RELATED)


def number_table(evaluation: ExpertEvaluation) -> Table:
    """Accuracy by the number of experts (Fig. 7)."""
    rows = evaluation.rows["number"]
    note = f"p-value: paired t-test over pages against {SINGLE}"
    table = _by_method(rows, ("method", "experts"), lambda row: [row["method"], row["k"] or None], note)
    # Without the last column: the paper has a plot and no numbers.
    return replace(table, header=table.header[:-1], rows=[row[:-1] for row in table.rows])


def history_table(evaluation: ExpertEvaluation) -> Table:
    """Accuracy by the rounds of training, all on the same predictions (Fig. 6)."""
    rows: list[list[Cell]] = []
    for n in dict.fromkeys(row["n_train"] for row in evaluation.rows["history"]):
        known = {row["method"]: row for row in evaluation.rows["history"] if row["n_train"] == n}
        single, related = known[SINGLE], known[RELATED]
        row: list[Cell] = [n, *(known[method]["accuracy"] for method in IN_A_ROW)]
        row += [single["balanced_accuracy"], related["balanced_accuracy"], single["p_value"]]
        rows.append([*row, related["n_pages"], related["n_predictions"]])
    scores = (*IN_A_ROW.values(), "single, balanced", "related, balanced")
    header = ("rounds", *scores, "p-value", "pages", "predictions")
    note = f"the same predictions for all; p-value: {SINGLE} against {RELATED}"
    return Table(header, rows, dict.fromkeys(scores, ".1%") | FORMATS, note=note)


def freshness_table(evaluation: ExpertEvaluation) -> Table:
    """Freshness by the rounds that were observed before (Fig. 8)."""
    rows = evaluation.rows[FRESHNESS]
    observed = sorted({int(row["observed"]) for row in rows})
    names = list(dict.fromkeys(row["method"] for row in rows))
    found = {(row["method"], row["observed"]): row["freshness"] for row in rows}
    cells: list[list[Cell]] = [[n, *(found.get((name, n)) for name in names)] for n in observed]
    note = f"share of pages whose copy is current; {rows[0]['fetches_per_round']:,} of {rows[0]['n_pages']:,} pages per round"
    return Table(("rounds observed", *names), cells, dict.fromkeys(names, ".3f"), note=note)


def experts_table(evaluation: ExpertEvaluation) -> Table:
    """The nearest experts of some pages; the rows (--json) have all of them."""
    rows = [row for row in evaluation.rows[EXPERTS] if row["rank"] <= NEAREST]
    cells: list[list[Cell]] = [[row[name] for name in ("url", "expert", "weight", "right")] for row in rows[:MOST_ROWS]]
    left = f"; {len(evaluation.rows[EXPERTS]) - len(cells):,} more with --json" if len(rows) > len(cells) else ""
    note = f"the {NEAREST} nearest of each page; right: how often the expert alone was{left}"
    return Table(("page", "expert", "weight", "right"), cells, {"weight": ".2f", "right": ".1%"}, note=note)


def _by_method(rows: Sequence[Row], names: tuple[str, ...], name: Callable[[Row], list[Cell]], note: str) -> Table:
    """One method per row, the highest accuracy in bold."""
    cells: list[list[Cell]] = []
    for row in rows:
        scores = [row["accuracy"], half_interval(row), row["balanced_accuracy"]]
        cells.append([*name(row), *scores, row["n_pages"], row["n_predictions"], row["p_value"], in_paper(row)])
    header = (*names, *SCORES, "pages", "predictions", "p-value", "in the paper")
    return with_best(Table(header, cells, FORMATS, note=note), {"accuracy": max})
