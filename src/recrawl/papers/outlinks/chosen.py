"""The settings with which models were trained, as tables: LBLA Table 3, and the same for the other parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from recrawl.papers.outlinks.evaluation import OutlinkEvaluation
from recrawl.papers.outlinks.ladders import Row
from recrawl.report.tables import Cell, Table, cell_text

#: Setting of a learner → what people call it.
LABELS = {
    "n_estimators": "trees",
    "max_iter": "trees",
    "min_samples_leaf": "minimum rows per leaf",
    "min_child_samples": "minimum rows per leaf",
    "learning_rate": "learning rate",
}
#: Part of the evaluation → the columns that tell its models apart.
_WHICH = {
    "features": ("links", "features", "learner"),
    "rankings": ("links", "ranking"),
    "counts": ("links", "learner"),
}


def history_settings_table(evaluation: OutlinkEvaluation) -> Table:
    """The settings for every length of history, as LBLA Table 3 prints them."""
    rows = [row for row in evaluation.rows.get("history", []) if row.get("settings")]
    histories = sorted({row["history"] for row in rows})
    cells: list[list[Cell]] = [
        [links, LABELS.get(name, name), *(_joined(rows, links, history, name) for history in histories)]
        for links in dict.fromkeys(row["links"] for row in rows)
        for name in dict.fromkeys(name for row in rows for name in row["settings"])
    ]
    header = ("links", "rounds of history:", *map(str, histories))
    return Table(header, cells, title=_title(rows), note=_note(rows, "as in LBLA Table 3"))


def _joined(rows: Sequence[Row], links: str, history: int, name: str) -> str:
    return _distinct(row["settings"].get(name) for row in rows if (row["links"], row["history"]) == (links, history))


def settings_table(evaluation: OutlinkEvaluation, part: str) -> Table:
    """The settings of every model of a part that has any to choose."""
    rows = [row for row in evaluation.rows.get(part, []) if row.get("settings")]
    models: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        models.setdefault(tuple(row[name] for name in _WHICH[part]), []).append(row["settings"])
    labels = list(dict.fromkeys(LABELS.get(name, name) for row in rows for name in row["settings"]))
    cells: list[list[Cell]] = [
        [*which, *(_distinct(_by_label(settings).get(label) for settings in used) for label in labels)]
        for which, used in models.items()
    ]
    return Table((*_WHICH[part], *labels), cells, title=_title(rows), note=_note(rows))


def _by_label(settings: Row) -> Row:
    return {LABELS.get(name, name): value for name, value in settings.items()}


def _distinct(values: Iterable[Any]) -> str:
    """The values of all repetitions; one where all are the same."""
    texts = dict.fromkeys(cell_text(value) for value in values if value is not None)
    return ", ".join(texts) or "–"


def _title(rows: Sequence[Row]) -> str:
    return "Settings that cross-validation chose" if any(row["tuned"] for row in rows) else "Settings of the models"


def _note(rows: Sequence[Row], like: str = "") -> str:
    if not rows:
        return ""
    if not any(row["tuned"] for row in rows):
        return "Not tuned: the papers' tuned settings where they print any, else the learner's own."
    n_seeds = len({row.get("seed") for row in rows})
    several = "several values: one for each repetition that chose differently" if n_seeds > 1 else ""
    untuned = "too few rows to tune some of them" if not all(row["tuned"] for row in rows) else ""
    said = "; ".join(filter(None, (like, several, untuned)))
    return f"{said[0].upper()}{said[1:]}." if said else ""
