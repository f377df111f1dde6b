"""The evaluation of history-aware choices as tables."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from recrawl.core.words import duration
from recrawl.papers.updates.evaluation import Row, UpdateEvaluation
from recrawl.papers.updates.scores import RANKINGS
from recrawl.report.tables import Cell, Table
from recrawl.web.pdf import ONLY, WITH, WITHOUT

POLICIES = ("history-aware", "random", "brute-force")
SCORES = {"precision": "P", "recall": "R", "f1": "F1"}

#: The links that are updates.
TO_WHAT = {WITH: "", ONLY: " to PDF files", WITHOUT: " to anything but PDF files"}


def subject(evaluation: UpdateEvaluation) -> str:
    """What is evaluated, in the plural."""
    return f"{evaluation.settings.level}s"


def update(evaluation: UpdateEvaluation, verb: str = "gain") -> str:
    """What an update is, in words.

    The verb is that of links: gain or gained.
    """
    if evaluation.settings.goal == "content":
        return {"gain": "change", "gained": "changed"}[verb]
    return f"{verb} a link{TO_WHAT[evaluation.settings.pdf]}"


def rows_where(evaluation: UpdateEvaluation, part: str, **values: Any) -> list[Row]:
    """The rows of a part that have these values."""
    return [row for row in evaluation.rows.get(part, []) if all(row[key] == value for key, value in values.items())]


def best_table(evaluation: UpdateEvaluation, average: str) -> Table:
    """The best threshold for each window, with the opponents at that threshold (HACS Table I)."""
    rows: list[list[Cell]] = []
    for ours in rows_where(evaluation, "best", average=average, policy="history-aware"):
        row: list[Cell] = [ours["weeks"], ours["theta"], ours["chosen_rate"]]
        for policy in POLICIES:
            (scores,) = rows_where(evaluation, "best", average=average, policy=policy, weeks=ours["weeks"])
            row += [scores[score] for score in SCORES if (policy, score) != ("brute-force", "recall")]
        rows.append([*row, ours["n_times"]])
    names = [f"{short}{score}" for short in ("", "random ") for score in SCORES.values()] + ["brute P", "brute F1"]
    header = ("weeks", f"θ, {average}", "chosen", *names, "times")
    formats = {"weeks": "g", header[1]: "g", "chosen": ".1%"} | dict.fromkeys(names, ".3f")
    title = f"The best threshold by weeks of history, {subject(evaluation)}, {average_title(average)}"
    return Table(header, rows, formats, title=title)


def theta_table(evaluation: UpdateEvaluation, average: str) -> Table:
    """F1 for each window and threshold (HACS Fig. 8)."""
    thetas = [f"θ {theta:g}" for theta in evaluation.settings.thetas]
    rows: list[list[Cell]] = []
    for weeks in dict.fromkeys(row["weeks"] for row in evaluation.rows["scores"]):
        scores = rows_where(evaluation, "scores", average=average, policy="history-aware", weeks=weeks)
        rows.append([weeks, *(row["f1"] for row in scores)])
    title = f"F1 by weeks of history and threshold ({average})"
    return Table(("weeks", *thetas), rows, {"weeks": "g"} | dict.fromkeys(thetas, ".3f"), title=title)


def ranking_table(evaluation: UpdateEvaluation) -> Table:
    """Mean weighted P@K of each ranking (HACS Fig. 11)."""
    rows: list[list[Cell]] = []
    for weeks in dict.fromkeys(row["weeks"] for row in evaluation.rows["rankings"]):
        known = {row["ranking"]: row for row in rows_where(evaluation, "rankings", weeks=weeks)}
        precisions = [known[name]["weighted_precision"] for name in RANKINGS]
        rows.append([weeks, *precisions, known[RANKINGS[0]]["n_times"]])
    formats = {"weeks": "g"} | dict.fromkeys(RANKINGS, ".3f")
    return Table(
        ("weeks", *RANKINGS, "times"), rows, formats, title="Weighted P@K of rankings, mean over reference times"
    )


def rate_table(evaluation: UpdateEvaluation) -> Table:
    """How the rates are distributed, and how close 1/λ̃ is to the usual time between updates (HACS Figs. 4 and 5)."""
    rows: list[list[Cell]] = []
    for row in evaluation.rows.get("rates", []):
        rows += [
            [f"{subject(evaluation)} with an update", f"{row['n_pages']:,}"],
            [f"{subject(evaluation)} without any", f"{row['n_never']:,}"],
            ["mean of 1/λ", duration(24 * row["mean_days"])],
            ["median of 1/λ", duration(24 * row["median_days"])],
            ["quantiles of 1/λ: 5% and 95%", f"{_days(row, '5%')}, {_days(row, '95%')}"],
            ["quantiles of 1/λ: 10% and 90%", f"{_days(row, '10%')}, {_days(row, '90%')}"],
            ["quantiles of 1/λ: 25% and 75%", f"{_days(row, '25%')}, {_days(row, '75%')}"],
            ["log-normal law: mean and deviation of ln(1/λ)", f"{row['log_mean']:.2f}, {row['log_deviation']:.2f}"],
        ]
        if row["distance"] is not None:
            rows.append(["largest distance from that law (Kolmogorov–Smirnov)", f"{row['distance']:.3f}"])
    for row in evaluation.rows.get("intervals", []):
        rows += [
            [f"{subject(evaluation)} with two updates or more", f"{row['n_pages']:,}"],
            ["median time between updates ÷ 1/λ̃, median (Poisson: 0.69)", f"{row['median_ratio']:.2f}"],
        ]
        if row["spearman"] is not None:
            rows.append(["rank correlation of the two", f"{row['spearman']:.2f}"])
    return Table(("quantity", "value"), rows, note=_empty(rows))


def _days(row: Row, quantile: str) -> str:
    return duration(24 * row["quantiles"][quantile])


def rate_histogram_table(evaluation: UpdateEvaluation) -> Table:
    """The distribution of 1/λ in numbers, with the log-normal law beside it (HACS Fig. 4)."""
    whom = f"share of {subject(evaluation)}"
    rows: list[list[Cell]] = []
    for row in evaluation.rows.get("rates", []):
        up_to = 0.0
        for bounds, share, law in zip(pairwise(row["edges"]), row["share"], row["law_share"], strict=True):
            up_to += share
            rows.append([bin_name(dict(zip(("lower_days", "upper_days"), bounds, strict=True))), share, law, up_to])
    header = ("1/λ, days", whom, "log-normal law", "up to here")
    return Table(header, rows, dict.fromkeys(header[1:], ".1%"), title="How 1/λ is distributed", note=_empty(rows))


def poisson_table(evaluation: UpdateEvaluation) -> Table:
    """How far the times between updates are from the exponential law (HACS Fig. 6)."""
    header = (
        "1/λ̃, days",
        subject(evaluation),
        "times between updates",
        "variation (Poisson: 1)",
        "distance from the law",
    )
    rows: list[list[Cell]] = [
        [bin_name(row), row["n_pages"], row["n_intervals"], row["variation"], row["distance"]]
        for row in evaluation.rows.get("poisson", [])
    ]
    return Table(header, rows, {header[3]: ".2f", header[4]: ".3f"}, note=_empty(rows))


def _empty(rows: list[list[Cell]]) -> str:
    return "" if rows else "Too few updates."


def bin_name(row: Row) -> str:
    """The span of a bin.

    >>> bin_name({"lower_days": 28.0, "upper_days": 42.0})
    '28 to 42'
    """
    return " to ".join(
        f"{days:,.0f}" if days >= 100 else f"{days:.3g}" for days in (row["lower_days"], row["upper_days"])
    )


def average_title(average: str) -> str:
    """What an average is taken over, in words."""
    return "all reference times together (micro)" if average == "micro" else "mean over reference times (macro)"
