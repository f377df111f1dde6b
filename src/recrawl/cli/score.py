"""``recrawl score``: how right the plans were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.common import (
    HISTORY,
    AsOfOption,
    HistoryOption,
    JsonOption,
    open_history,
    optional_period,
    print_json,
    working,
)
from recrawl.cli.option_groups import with_options
from recrawl.plan.focus_options import FocusOptions

if TYPE_CHECKING:
    from recrawl.cli.screen import Screen
    from recrawl.plan.score import Score, Scores

_LEGEND = (
    "New links never seen before on any page, at the first answer of each planned page after the plan; pages that failed count "
    "with none. Round-robin: new links per visit on the pages that it would have chosen, where at least half of them were "
    "visited."
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("score")(with_options(score))


def score(
    *,
    plan: Annotated[str | None, typer.Argument(help="Id of one plan. Default: all stored plans.")] = None,
    horizon: Annotated[
        str | None,
        typer.Option(
            "--horizon",
            metavar="PERIOD",
            help="Only count visits within this time after the plan. Default: up to the next plan.",
            callback=optional_period,
        ),
    ] = None,
    which: FocusOptions,
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    json: JsonOption = False,
) -> None:
    """Show how right each plan was once its pages were visited: expected and found, calibration, and beside round-robin.

    A plan that counted relevant links is compared with the relevant links found, by its own classifier; with --relevance by this
    one.
    """
    from recrawl.errors import NotEnoughData
    from recrawl.plan.score import score as run

    opened = open_history(history, as_of)
    with working("comparing plans with visits"):
        scores = run(opened, plan, horizon, relevance=which.relevance)
    if not scores:
        raise NotEnoughData(
            f"no plan {plan!r} is stored in {history}; recrawl score lists those that are"
            if plan
            else f"no plan is stored in {history}; recrawl plan makes one"
        )
    if json:
        for each in scores:
            print_json(each.record())
        return
    _show(scores)


def _show(scores: Scores) -> None:
    from recrawl.cli.screen import Screen

    screen = Screen()
    screen.heading("plans and what their visits found")
    for each in scores:
        screen.item(f"{each.plan} by {each.policy}", *_facts(each))
    screen.gap()
    screen.line(_LEGEND)
    _calibration(screen, scores)


def _facts(score: Score) -> list[str]:
    """Visits, new links, and pages that had any or changed."""
    from recrawl.core.words import count, number

    visits = f"{count(score.planned, 'page')} planned, {score.visited:,} visited, {score.failed:,} failed"
    if score.found_per_visit is None:
        return [visits]
    rival = score.round_robin_found_per_visit
    beside = "" if rival is None else f"; round-robin {number(rival)}"
    per_visit = f"{number(score.found_per_visit)} per visit{beside}"
    links = f"{number(score.expected)} {score.new_links} expected, {score.found:,} found ({per_visit})"
    if score.found_all is not None and score.found_relevant is not None:
        links += f"; {score.found_relevant:,} of all {score.found_all:,} new links are relevant"
    pages = f"pages with {score.new_links}: {number(score.expected_hits)} expected, {score.hits:,} found"
    if score.expected_changed is not None and score.changed is not None:
        pages += f"; changed pages: {number(score.expected_changed)} expected, {score.changed:,} found"
    return [visits, links, pages]


def _calibration(screen: Screen, scores: Scores) -> None:
    """All plans together: of the pages with such a probability of new links, how many had any."""
    from recrawl.core.words import count

    classes: dict[tuple[float, float], list[tuple[int, float, float]]] = {}
    for each in scores:
        for row in each.calibration:
            classes.setdefault((row["from"], row["to"]), []).append((int(row["n"]), row["predicted"], row["seen"]))
    for (low, high), rows in sorted(classes.items()):
        n = sum(row[0] for row in rows)
        predicted, seen = (sum(row[0] * row[i] for row in rows) / n for i in (1, 2))
        screen.line(
            f"{low:.0%} to {high:.0%} likely: {count(n, 'visit')}, {predicted:.0%} expected to have new links, {seen:.0%} had"
        )
