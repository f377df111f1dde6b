"""``recrawl plan``: the next pages to fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.common import JsonOption, check_writable, note, print_json, steps, written
from recrawl.cli.option_groups import choice, with_options
from recrawl.cli.planning import HistoryOptions, planning
from recrawl.plan.formats import FORMATS
from recrawl.plan.options import PlanOptions

if TYPE_CHECKING:
    from recrawl.history import History
    from recrawl.plan.plan import Plan


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan")(with_options(plan))


def plan(
    options: PlanOptions,
    past: HistoryOptions,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            callback=choice("format", FORMATS),
            help=f"Format of your crawler: {', '.join(FORMATS)}. Default: jsonl with --out.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write the plan to a file; .gz and .zst compress, - is stdout."
        ),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="Number of pages to show.")] = 20,
    summary: Annotated[bool, typer.Option("--summary", help="Show totals only; with --json one object.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do not store the plan in the history.")] = False,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="Plan bucket by bucket on an engine: sail, spark or sc://HOST:PORT. The plan is the same.",
        ),
    ] = None,
    buckets: Annotated[
        int | None,
        typer.Option(
            "--buckets",
            metavar="N",
            min=1,
            help="With --engine: number of buckets. Default: as the history is laid out.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show the next pages to fetch, each with what to expect of it and why: for a person, a script or a crawler.

    The plan is stored in the history. Once its pages have been visited, recrawl score shows how right it was. With --as-of the
    plan is made as if it were that time.
    """
    check_writable(out)
    if engine is not None:
        history, made = _planned_on(engine, buckets, past, options)
    elif buckets is not None:
        raise typer.BadParameter("only plans on an engine are made in buckets: add --engine sail")
    else:
        with planning(past, options, carry=not dry_run) as (history, planner):
            made = planner.plan()
    if not dry_run:
        from recrawl.plan.score import store

        store(history, made)
    if out or format:
        _write(made, out, format)
    elif summary and json:
        print_json(made.summary())
    elif json:
        for row in made.records():
            print_json(row)
    else:
        _show(made, 0 if summary else top)


def _planned_on(engine: str, buckets: int | None, past: HistoryOptions, options: PlanOptions) -> tuple[History, Plan]:
    """The history, and a plan made on an engine."""
    from recrawl.engine.plan import plan_on

    opened = past.open()
    with steps("starting the engine") as on_step:
        return opened, plan_on(engine, opened, options, n_buckets=buckets, on_step=on_step, on_note=note)


def _write(made: Plan, out: str | None, format: str | None) -> None:
    from recrawl.plan.formats import writer_of

    with written(out or "-") as stream:
        for part in writer_of(format or "jsonl")(made):
            stream.write(part)
    if out and out != "-":
        note(f"{len(made):,} pages: {out}")


def _show(made: Plan, top: int) -> None:
    from itertools import islice

    from recrawl.cli.screen import Screen
    from recrawl.core.words import count, duration

    screen = Screen()
    if len(made) and top:
        screen.heading(f"the next pages, by {made.policy}")
        for row in islice(made.records(), top):
            screen.item(row["url"], *_facts(row, made.request.new_links))
        screen.gap()
    shown = f" ({top} shown, --top shows more)" if 0 < top < len(made) else ""
    screen.line(f"{len(made):,} of {count(made.n_known, 'known page')}, {made.gain_in_words()} expected{shown}")
    screen.line(f"plan {made.id}")
    if made.left_out:
        screen.line("not picked: " + ", ".join(f"{n:,} {cause}" for cause, n in made.left_out.items()))
    if made.by_budget():
        screen.line(_by_budget(made))
    if made.n_starving:
        screen.line(
            f"{count(made.n_starving, 'page')} waited more than {made.request.max_wait.days} days and are not in the plan; "
            f"so that none waits longer, --budget {made.budget_needed:,} would be needed every {duration(made.cycle_hours)}",
            style="yellow",
        )


def _facts(row: dict[str, Any], counted: str) -> list[str]:
    """What to show of a page below its URL: numbers, times, and the reason; `counted`: which links count."""
    from recrawl.core.words import number

    links = f"{number(row['expected_new_links'])} {counted} expected"
    if row["expected_low"] is not None:
        links += f" ({row['expected_low']:.0f} to {row['expected_high']:.0f})"
    likely = f"{row['probability']:.0%} likely to have any"
    changed = "" if row["probability_changed"] is None else f", {row['probability_changed']:.0%} to have changed"
    visits = (
        f"last visit {_short(row['last_visit_at'])}, last {counted.removesuffix('s')} {_short(row['last_change_at'])}"
    )
    trial = " (a trial)" if row["trial"] else ""
    site = [f"site: {row['site'] or 'none, it is under no root'}"] if "site" in row else []
    return [f"{row['rank']:,}. {links}; {likely}{changed}{trial}", visits, *site, f"why: {row['reason']}"]


def _by_budget(made: Plan) -> str:
    """What half and twice the budget would bring, and one page more."""
    gains = ", ".join(
        f"{budget:,} pages: {made.in_words(links, changed)}" for budget, links, changed in made.by_budget()
    )
    more = made.in_words(made.at_cut(made.links_by_budget), made.at_cut(made.changed_by_budget))
    return f"expected by budget: {gains}; one page more would bring {more}"


def _short(at: str | None) -> str:
    return at[:16].replace("T", " ") if at else "never"
