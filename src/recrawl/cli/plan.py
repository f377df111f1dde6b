"""``recrawl plan``: the next pages to fetch."""

from __future__ import annotations

from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.common import (
    JsonOption,
    console,
    note,
    print_json,
    written,
)
from recrawl.cli.grouped import with_options
from recrawl.cli.planning import Asked, BudgetOption

if TYPE_CHECKING:
    from rich.table import Table

    from recrawl.plan import Plan


class Format(StrEnum):
    """What a crawler takes."""

    urls = "urls"
    jsonl = "jsonl"
    csv = "csv"
    scrapy = "scrapy"
    urlfrontier = "urlfrontier"
    heritrix = "heritrix"
    nutch = "nutch"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan")(with_options(plan))


def plan(
    budget: BudgetOption,
    asked: Asked,
    format: Annotated[
        Format | None, typer.Option("--format", help="For which crawler; default jsonl with --out.")
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Write it; .gz and .zst compress, - is stdout.")
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="How many pages to show.")] = 20,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do not keep the plan in the history.")] = False,
    json: JsonOption = False,
) -> None:
    """The next pages to fetch, each with what to expect of it and why; for a person, a script or a crawler.

    The plan is kept in the history: when the visits have come back, recrawl score tells how right it was. With --as-of it is
    made as if it were that time.
    """
    from recrawl.plan.formats import FORMATS, records
    from recrawl.plan.make import chosen
    from recrawl.plan.score import store

    opened, situation, now, request = asked.situation(budget)
    made = chosen(situation, request, now)
    if not dry_run:
        store(opened, made)
    if out or format:
        with written(out or "-") as stream:
            for part in FORMATS[(format or Format.jsonl).value](made):
                stream.write(part)
        if out and out != "-":
            note(f"{len(made):,} pages: {out}")
        return
    if json:
        for row in records(made):
            print_json(row)
        return
    _show(made, top)


def _show(made: Plan, top: int) -> None:
    screen = console()
    if len(made):
        screen.print(_table(made, top))
    total = _gains(made, float(made.expected.sum()), float(made.probability_changed.sum()))
    screen.print(
        f"{len(made):,} of {made.n_known:,} known pages, {total} expected; plan {made.id}",
        markup=False,
    )
    if made.left_out:
        screen.print("not picked: " + ", ".join(f"{n:,} {cause}" for cause, n in made.left_out.items()), markup=False)
    if len(made.yield_by_budget):
        screen.print(_by_budget(made), markup=False)
    if made.n_starving:
        screen.print(
            f"{made.n_starving:,} pages have waited more than {made.request.max_wait.days} days and are not in the plan; "
            f"so that none waits longer, --budget {made.budget_needed:,} would be needed in every cycle",
            style="yellow",
            markup=False,
        )


def _table(made: Plan, top: int) -> Table:
    from rich.table import Table

    from recrawl.plan.formats import records

    table = Table("page", "expected", "any", "changed", "last visit", "last new link", "why", pad_edge=False)
    for column in (1, 2, 3):
        table.columns[column].justify = "right"
    for row in islice(records(made), top):
        changed = row["probability_changed"]
        table.add_row(
            row["url"],
            _expected(row),
            f"{row['probability']:.0%}",
            "–" if changed is None else f"{changed:.0%}",
            _short(row["last_visit_at"]),
            _short(row["last_change_at"]),
            row["reason"],
        )
    table.title, table.title_justify = f"the next pages, by {made.policy}", "left"
    return table


def _expected(row: dict[str, Any]) -> str:
    """New links, with the interval where there is one."""
    from recrawl.models.reasons import number

    if row["expected_low"] is None:
        return number(row["expected_new_links"])
    return f"{number(row['expected_new_links'])} ({row['expected_low']:.0f}–{row['expected_high']:.0f})"


def _gains(made: Plan, links: float, changed: float) -> str:
    """What counts for the goal, in words."""
    from recrawl.models.reasons import number

    words = {"links": f"{number(links)} new links", "content": f"{number(changed)} changed pages"}
    return words.get(made.request.goal) or " and ".join(words.values())


def _by_budget(made: Plan) -> str:
    """What half and twice the budget would bring, and one page more."""
    import numpy as np

    links, changed = made.links_by_budget, made.changed_by_budget
    budgets = sorted({max(1, round(len(made) * share)) for share in (0.5, 1, 2)})
    ends = [min(budget, len(links)) - 1 for budget in budgets]
    totals = {len(made): (float(made.expected.sum()), float(np.nansum(made.probability_changed)))}  # as chosen with it
    gains = [totals.get(budget) or (links[end], changed[end]) for budget, end in zip(budgets, ends, strict=True)]
    shown = ", ".join(f"{budget:,} pages: {_gains(made, *gain)}" for budget, gain in zip(budgets, gains, strict=True))
    more = _gains(made, made.at_cut(links), made.at_cut(changed))
    return f"expected by budget: {shown}; one page more would bring {more}"


def _short(at: str | None) -> str:
    return at[:16].replace("T", " ") if at else "never"
