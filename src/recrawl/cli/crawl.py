"""``recrawl crawl``: fetch the plan, record the visits."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from recrawl.cli.common import ANY, JsonOption, console, note, print_json
from recrawl.cli.crawl_options import FetchOptions, FirstCrawlOptions, PoliteOptions
from recrawl.cli.grouped import with_options
from recrawl.cli.planning import Asked, BudgetOption
from recrawl.errors import RecrawlError

MOST_PERIODS = 500  #: that a history may be long for short cycles to be told by the clock
NO_SCRAPY = "recrawl crawl needs Scrapy: pip install 'recrawl[crawl]'"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("crawl")(with_options(crawl))


def crawl(
    asked: Asked,
    polite: PoliteOptions,
    first: FirstCrawlOptions,
    fetch: FetchOptions,
    budget: BudgetOption = "10%",
    cycles: Annotated[int, typer.Option("--cycles", min=1, help="How many cycles, one after the other.")] = 1,
    json: JsonOption = False,
) -> None:
    """Fetch the next pages politely and record what they show: one cycle, or one after the other.

    With --every 1h --cycles 24 a cycle begins every hour, for a day. The plan is made as recrawl plan makes it. robots.txt is
    obeyed, no host gets more than its share, nothing is fetched from addresses that are not public. Ctrl-C ends the crawl and keeps
    all visits; a second one ends it at once.
    """
    try:
        from recrawl.crawl.run import crawl as run
    except ImportError as error:
        if (error.name or "").partition(".")[0] in ("scrapy", "twisted", "protego", "lxml"):
            raise typer.BadParameter(NO_SCRAPY) from None
        raise
    from recrawl.crawl.view import View, told
    from recrawl.history.store import check_format
    from recrawl.panel import parse_period

    _check(asked, first, fetch)
    plan, settings = fetch.plan, _settings(asked, budget) | fetch.settings()
    frontier = first.frontier(asked.per_host, polite.host_at_once)
    if frontier is None and plan is None:
        check_format(Path(asked.history))  # a plan is made from what was crawled before
    with View(console(), quiet=json) as view:

        def after(cycle: int, stats: dict[str, Any], wait: float | None) -> None:
            view.wait(wait)
            if json:
                print_json({"cycle": cycle + 1} | told(stats))
            else:
                _summary(cycle + 1, stats, cycles, "--seeds" if frontier and not cycle else "--plan" if plan else None)

        outcome = run(
            settings,
            polite.manners(),
            frontier=frontier,
            cycles=cycles,
            every=timedelta(0) if asked.every == "crawl" else parse_period(asked.every),
            watch=view.watch,
            between=view.begin,
            after=after,
        )
    if outcome.error is not None:
        raise outcome.error
    if len(outcome.cycles) < cycles:
        note(f"{cycles - len(outcome.cycles):,} of {cycles:,} cycles were not begun")
    if outcome.was_killed:
        raise typer.Exit(130)
    failed = [stats["recrawl/plan_failed"] for stats in outcome.cycles if "recrawl/plan_failed" in stats]
    if failed:
        raise RecrawlError(f"no plan could be made: {failed[-1]}")
    _check_any_came([told(stats) for stats in outcome.cycles])


def _check(asked: Asked, first: FirstCrawlOptions, fetch: FetchOptions) -> None:
    """What can be known to be wrong before anything is fetched."""
    _check_every(asked.every)
    if fetch.plan is not None and first.seeds:
        raise typer.BadParameter("--seeds begins a first crawl, --plan fetches a plan: give one of them")
    if fetch.warc is not None and Path(fetch.warc).exists() and not Path(fetch.warc).is_dir():
        raise typer.BadParameter(f"--warc {fetch.warc}: that is a file; name a directory")
    if asked.as_of or asked.weight is not None or asked.threshold is not None or asked.settings:
        raise typer.BadParameter("--as-of, --weight, --threshold and --set are for recrawl plan; see --plan")
    asked.check()
    _check_files(asked.policy, asked.model, fetch.plan)


def _settings(asked: Asked, budget: str) -> dict[str, Any]:
    """What is asked for of the plan, as the add-on takes it."""
    return {
        "RECRAWL_HISTORY": asked.history,
        "RECRAWL_BUDGET": budget,
        "RECRAWL_GOAL": asked.goal.value,
        "RECRAWL_CHANGE": asked.change or ANY,
        "RECRAWL_POLICY": asked.policy,
        "RECRAWL_FAVOUR": asked.favour.value if asked.favour else None,
        "RECRAWL_MODEL": asked.model,
        "RECRAWL_PER_HOST": asked.per_host,
        "RECRAWL_PER_SITE": asked.per_site,
        "RECRAWL_MIN_GAP": asked.min_gap,
        "RECRAWL_EXCLUDE": tuple(asked.exclude or ()),
        "RECRAWL_EVERY": _rounds(asked.every, asked.history),
        "RECRAWL_RETRY_GONE": asked.retry_gone,
    }


def _check_any_came(cycles: list[dict[str, Any]]) -> None:
    """A crawl that asked for pages and got none has failed."""
    came = sum(one[kind] for one in cycles for kind in ("fetched", "not_modified", "gone", "redirects"))
    in_vain = sum(one[kind] for one in cycles for kind in ("failed", "forbidden", "refused"))
    if in_vain and not came:
        raise RecrawlError("no page came; see above why")


def _check_files(policy: str | None, model: str | None, plan: str | None) -> None:
    """What is named must be there."""
    from recrawl.cli.policy_options import made_policies
    from recrawl.crawl.planned import read_plan

    if policy is not None and any(one.sees_future for one in made_policies(policy)):
        raise typer.BadParameter(f"{policy} knows the future; it can only be replayed")
    if model is not None and not Path(model).is_file():
        raise typer.BadParameter(f"--model {model}: there is no such file; recrawl train makes one")
    if plan is not None and plan != "none":
        read_plan(Path(plan))


def _rounds(every: str, folder: str) -> str:
    """Cycles are told by when they were crawled, whatever the time between them, unless that is too short to see pauses.

    Then the period is a cycle, as long as the history is not so long that nearly all of them would be empty.
    """
    from recrawl.errors import HistoryError
    from recrawl.history import History
    from recrawl.panel import SHORTEST_PAUSE, parse_period

    step = float("inf") if every == "crawl" else parse_period(every) / timedelta(microseconds=1)
    if step > 2 * SHORTEST_PAUSE:
        return "crawl"
    try:
        at = History.open(folder).slim_timeline.at
    except HistoryError:  # there is none yet
        return every
    return every if not len(at) or (at.max() - at.min()) / step < MOST_PERIODS else "crawl"


def _check_every(every: str) -> None:
    from recrawl.panel import parse_period

    try:
        if every != "crawl":
            parse_period(every)
    except ValueError as error:
        raise typer.BadParameter(f"--every tells when the next cycle begins: {error}") from None


def _summary(number: int, stats: dict[str, Any], n_cycles: int, given: str | None) -> None:
    """One cycle in words; `given`: the option that must be given again to go on with it."""
    from recrawl.crawl.unfinished import NOT_ALONE, NOT_KEPT
    from recrawl.crawl.view import counted, failures, told
    from recrawl.models.reasons import number as rounded

    found, screen = told(stats), console()
    head = f"cycle {number}: " if n_cycles > 1 else ""
    rate = found["visits"] / found["seconds"] if found["seconds"] else 0.0
    screen.print(
        f"{head}{found['visits']:,} visits in {found['seconds']:.0f} s ({rate:.1f}/s): {found['fetched']:,} fetched, "
        f"{found['not_modified']:,} unchanged, {found['gone']:,} gone, {found['failed']:,} failed; "
        f"{found['bytes'] / 1e6:.1f} MB",
        markup=False,
    )
    expected = f", {rounded(found['expected_new_links'])} were expected" if found["planned"] else ""
    screen.print(f"{found['new_links']:,} new links{expected}", markup=False)
    for text in found["notes"]:
        screen.print(text, style="dim", markup=False)
    if found["failed"]:
        screen.print(f"failed: {failures(stats)}", style="yellow", markup=False)
    if found["forbidden"] and not found["planned"]:  # planned pages are told among the failures
        why = f"not asked for, as robots.txt forbids it or cannot be read: {counted(found['forbidden_why'])}"
        screen.print(why, style="yellow", markup=False)
    if found["written"] < found["visits"]:
        where = f"; {found['spilled']:,} are in {', '.join(found['spilled_to'])}: recrawl import adds them"
        screen.print(
            f"{found['visits'] - found['written']:,} visits are not in the history ({found['not_written']})"
            + (where if found["spilled"] else ""),
            style="red",
            markup=False,
        )
    if found["ended"] != "finished":
        again = f" with the same {given}" if given else ""
        onward = f"; the next crawl{again} goes on with what was not fetched"
        if any(text.startswith((NOT_KEPT, NOT_ALONE)) for text in found["notes"]):
            onward = ""
        screen.print(f"ended early: {found['ended']}{onward}", markup=False)
