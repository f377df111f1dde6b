"""How fast a model ages, as tables, a figure and a sentence, from the rows of `drift` alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from recrawl.core.words import count
from recrawl.papers.outlinks.drift import AVERAGE, SCORES
from recrawl.papers.outlinks.evaluation import OutlinkEvaluation
from recrawl.papers.outlinks.ladders import Row
from recrawl.papers.outlinks.map_figures import kind
from recrawl.report.figures import BLUE, GREY, ORANGE, blank_figure, curve_style
from recrawl.report.tables import Cell, Table
from recrawl.report.words import joined

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

TEXT = (
    "Scores of a model against the rounds since it was trained. Every model learns from equally many rounds, then predicts later "
    "ones with features that are up to date, but without learning anything new. The references, in the same rounds: a model that "
    "was just trained, and average-count, which needs no training.\n\n"
    "The loss is the mean difference to the model that was just trained, with its standard error. Below: what each way to retrain "
    "would have scored, and how many trainings it would have taken. “When due” is the rule of `recrawl train --check`."
)

WAYS_NOTE = "Rounds are the tested ones: in a long history every second, third, … round is tested."


def age_rows(evaluation: OutlinkEvaluation, links: str) -> list[Row]:
    """For every age: mean scores of the model, of the one just trained and of average-count in the same rounds, and the loss."""
    rows = [row for row in evaluation.rows.get("drift", []) if row["links"] == links]
    models = {(row["seed"], row["origin"], row["round"]): row for row in rows if row.get("age")}
    average = {(row["seed"], row["round"]): row for row in rows if row.get("model") == AVERAGE}
    by_age: dict[int, list[tuple[Row, Row, Row]]] = {}
    for (seed, _, of_round), row in models.items():
        fresh, simple = models.get((seed, of_round, of_round)), average.get((seed, of_round))
        if fresh and simple:
            by_age.setdefault(row["age"], []).append((row, fresh, simple))
    return [{"age": age, "n": len(trios), **_compared(trios)} for age, trios in sorted(by_age.items())]


def _compared(trios: list[tuple[Row, Row, Row]]) -> Row:
    found: Row = {}
    for score in SCORES:
        values = np.array([[row[score] for row in trio] for trio in trios], np.float64)
        values = values[np.isfinite(values).all(axis=1)]
        if not len(values):
            continue
        loss = values[:, 1] - values[:, 0]
        error = float(loss.std(ddof=1) / np.sqrt(len(loss))) if len(loss) > 1 else None
        means = dict(zip((score, f"{score}_fresh", f"{score}_average"), map(float, values.mean(axis=0)), strict=True))
        found |= means | {f"{score}_loss": float(loss.mean()), f"{score}_error": error}
    return found


def drift_tables(evaluation: OutlinkEvaluation) -> list[Table]:
    """For each kind of links one table of ages and one of ways to retrain."""
    kinds = dict.fromkeys(row["links"] for row in evaluation.rows.get("drift", []))
    return [table for links in kinds for table in (_age_table(evaluation, links), _way_table(evaluation, links))]


def _age_table(evaluation: OutlinkEvaluation, links: str) -> Table:
    header = (
        "age",
        "Spearman",
        "just trained",
        AVERAGE,
        "loss",
        "± error",
        "area",
        "area, just trained",
        "log loss more",
        "pairs",
    )
    keys = (
        "age", "spearman", "spearman_fresh", "spearman_average", "spearman_loss", "spearman_error", "area", "area_fresh",
        "log_loss_loss", "n",
    )  # fmt: skip
    rows: list[list[Cell]] = []
    for row in age_rows(evaluation, links):
        more = row.get("log_loss_loss")
        rows.append([(-more if more is not None else None) if key == "log_loss_loss" else row.get(key) for key in keys])
    formats = dict.fromkeys(header[1:9], ".3f") | dict.fromkeys(("loss", "± error", "log loss more"), ".4f")
    note = "Age: rounds since the model was trained, 1 for the round that follows. Pairs: models and rounds compared."
    return Table(header, rows, formats, title=f"How a model ages ({links} links)", note=note)


def _way_table(evaluation: OutlinkEvaluation, links: str) -> Table:
    ways: dict[str, list[Row]] = {}
    for row in evaluation.rows.get("drift", []):
        if row["links"] == links and "way" in row:
            ways.setdefault(row["way"], []).append(row)
    rows: list[list[Cell]] = [
        [way, float(np.mean([row["trainings"] for row in of_way])), *(_mean(of_way, score) for score in SCORES)]
        for way, of_way in ways.items()
    ]
    header = ("retrained", "trainings", "Spearman", "area", "log loss")
    formats = {"trainings": ".1f"} | dict.fromkeys(header[2:], ".4f")
    return Table(header, rows, formats, title=f"When to retrain ({links} links)", note=WAYS_NOTE)


def _mean(rows: list[Row], score: str) -> float | None:
    values = [row[score] for row in rows if row[score] is not None]
    return float(np.mean(values)) if values else None


def drift_figure(evaluation: OutlinkEvaluation, links: str) -> Figure:
    """Spearman's ρ against the age of the model, beside the references in the same rounds."""
    rows = [row for row in age_rows(evaluation, links) if "spearman" in row]
    title = f"{kind(links)}: scores of a model by its age"
    if len(rows) > 1:
        rounds = count(rows[-1]["age"] - 1, "round")
        title = (
            f"{kind(links)}: {rounds} after training a model has lost {rows[-1]['spearman_loss']:.3f} of Spearman's ρ"
        )
    figure = blank_figure(title, "rounds since the model was trained", "Spearman's ρ")
    lines = (
        ("spearman", "trained once", BLUE),
        ("spearman_fresh", "just trained", ORANGE),
        ("spearman_average", AVERAGE, GREY),
    )
    for i, (key, name, colour) in enumerate(lines):
        figure.add_scatter(
            x=[row["age"] for row in rows],
            y=[row[key] for row in rows],
            name=name,
            **curve_style(i, colour=colour),
            hovertemplate="age %{x}: %{y:.3f}<extra>%{fullData.name}</extra>",
        )
    return figure


def drift_findings(evaluation: OutlinkEvaluation) -> Iterator[str]:
    """What a model loses per round, by the ages that were measured in at least three pairs."""
    parts = []
    for links in dict.fromkeys(row["links"] for row in evaluation.rows.get("drift", [])):
        rows = [row for row in age_rows(evaluation, links) if row["n"] >= 3 and "spearman_loss" in row]
        if len(rows) > 1:
            last = rows[-1]
            loss = f"{last['spearman_loss']:.4f} of Spearman's ρ (± {last['spearman_error']:.4f})"
            parts.append(f"{loss} after {count(last['age'] - 1, 'round')} for {links} links")
    if parts:
        yield f"After it was trained, a model loses {joined(parts)}."
