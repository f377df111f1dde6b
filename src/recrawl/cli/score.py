"""``recrawl score``: how right the plans were."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from recrawl.cli.common import (
    HISTORY,
    AsOfOption,
    HistoryOption,
    JsonOption,
    checked_period,
    console,
    open_history,
    print_json,
    working,
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("score")(score)


def score(
    plan: Annotated[str | None, typer.Argument(help="One plan, by its id; default: all that are kept.")] = None,
    horizon: Annotated[
        str | None,
        typer.Option(
            "--horizon",
            metavar="PERIOD",
            help="Only visits that came so soon after the plan; default: up to the next plan.",
            callback=lambda text: text and checked_period(text),
        ),
    ] = None,
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    json: JsonOption = False,
) -> None:
    """How right each plan was, once the visits have come back: expected against found, calibration, and against round-robin."""
    from recrawl.core.times import parse_period
    from recrawl.errors import NotEnoughData
    from recrawl.plan.score import scores

    opened = open_history(history, as_of)
    with working("looking up what came of the plans"):
        found = list(scores(opened, plan, parse_period(horizon) if horizon else None))
    if not found:
        raise NotEnoughData(
            f"no plan {plan!r} is kept in {history}"
            if plan
            else f"no plan is kept in {history}; recrawl plan makes one"
        )
    if json:
        for one in found:
            print_json(one.record())
        return
    _table(found)
    _calibration(found)


def _table(found: list[Any]) -> None:
    from rich.table import Table

    from recrawl.models.reasons import number

    header = (
        "plan",
        "policy",
        "planned",
        "visited",
        "failed",
        "expected",
        "found",
        "a visit",
        "round-robin",
        "any: expected",
        "any: found",
        "changed: expected",
        "changed: found",
    )
    table = Table(*header, pad_edge=False)
    for column in range(2, len(header)):
        table.columns[column].justify = "right"
    for column in (0, 1):
        table.columns[column].no_wrap, table.columns[column].overflow = False, "fold"  # an id that is cut names nothing
    for one in found:
        table.add_row(
            one.plan,
            one.policy,
            f"{one.planned:,}",
            f"{one.visited:,}",
            f"{one.failed:,}",
            number(one.expected) if one.visited else "–",
            f"{one.found:,}" if one.visited else "–",
            "–" if one.found_per_visit is None else number(one.found_per_visit),
            "–" if one.round_robin_found_per_visit is None else number(one.round_robin_found_per_visit),
            number(one.expected_hits) if one.visited else "–",
            f"{one.hits:,}" if one.visited else "–",
            "–" if one.expected_changed is None else number(one.expected_changed),
            "–" if one.changed is None else f"{one.changed:,}",
        )
    table.title, table.title_justify = "what came of the plans", "left"
    screen = console()
    screen.print(table)
    screen.print(
        "New links never seen before on any page, at the first answer of each planned page after the plan; none on those that "
        "failed. Round-robin: new links a visit on the pages that it would have chosen, where at least half of them were visited. "
        "Changed: another text or other links than before.",
        markup=False,
    )


def _calibration(found: list[Any]) -> None:
    """All plans together: of the pages said to be so likely to have new links, how many had."""
    classes: dict[tuple[float, float], list[tuple[int, float, float]]] = {}
    for one in found:
        for row in one.calibration:
            classes.setdefault((row["from"], row["to"]), []).append((row["n"], row["predicted"], row["seen"]))
    for (low, high), rows in sorted(classes.items()):
        n = sum(row[0] for row in rows)
        predicted, seen = (sum(row[0] * row[i] for row in rows) / n for i in (1, 2))
        console().print(
            f"{low:.0%} to {high:.0%} likely: {n:,} visits, {predicted:.0%} expected to have new links, {seen:.0%} had",
            markup=False,
        )
