"""``recrawl crawl``: fetch the plan, record the visits."""

from __future__ import annotations

from dataclasses import asdict, fields
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from recrawl.cli.common import HISTORY, HistoryOption, JsonOption, console, note, print_json
from recrawl.cli.crawl_options import FetchOptions, FirstCrawlOptions, PoliteOptions
from recrawl.cli.option_groups import with_options
from recrawl.crawl.follow_options import NONE, FollowOptions
from recrawl.errors import RecrawlError
from recrawl.plan.options import PlanOptions

NO_SCRAPY = "recrawl crawl needs Scrapy: pip install 'recrawl[crawl]'"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("crawl")(with_options(crawl))


def crawl(
    options: PlanOptions,
    polite: PoliteOptions,
    first: FirstCrawlOptions,
    fetch: FetchOptions,
    follow: FollowOptions,
    history: HistoryOption = HISTORY,
    cycles: Annotated[int, typer.Option("--cycles", min=1, help="Number of cycles, one after the other.")] = 1,
    json: JsonOption = False,
) -> None:
    """Fetch the next pages politely and record what they show: one cycle, or one after the other.

    With --every 1h --cycles 24 a cycle begins every hour, for a day. The plan is the one that recrawl plan makes. robots.txt is
    obeyed, requests to each host are spaced out, and nothing is fetched from addresses that are not public. Ctrl-C ends the
    crawl and keeps all visits; a second Ctrl-C ends it at once.
    """
    try:
        from recrawl.crawl.run import crawl as run
    except ImportError as error:
        if (error.name or "").partition(".")[0] in ("scrapy", "twisted", "lxml"):
            raise typer.BadParameter(NO_SCRAPY) from None
        raise
    from recrawl.core.places import place
    from recrawl.core.times import parse_period
    from recrawl.crawl.view import CrawlView, crawl_summary
    from recrawl.history.folder_check import check_format

    _check(options, first, fetch, follow)
    if first.seeds and cycles == 1 and follow.follow != NONE:
        raise typer.BadParameter(
            "--follow is for planned pages; a first crawl (--seeds) follows links by itself: see --depth"
        )
    plan, settings = fetch.plan, _settings(options, fetch, follow, history)
    frontier = first.frontier(options.per_host, polite.host_at_once)
    if frontier is None and plan is None:
        check_format(place(history))  # a plan is made from what was crawled before
    with CrawlView(console(), quiet=json) as view:

        def after(cycle: int, stats: dict[str, Any], wait: float | None) -> None:
            view.wait(wait)
            if json:
                print_json({"cycle": cycle + 1} | crawl_summary(stats))
            else:
                given = "--seeds" if frontier and not cycle else "--plan" if plan else None
                _summary(cycle + 1, stats, cycles, given, is_focused=options.relevance is not None and plan is None)

        result = run(
            settings,
            polite.fetch_settings(),
            frontier=frontier,
            cycles=cycles,
            every=timedelta(0) if options.every in ("auto", "crawl") else parse_period(options.every),
            watch=view.watch,
            between=view.begin,
            after=after,
        )
    if result.error is not None:
        raise result.error
    if len(result.cycles) < cycles:
        note(f"{cycles - len(result.cycles):,} of {cycles:,} cycles were not started")
    if result.was_killed:
        raise typer.Exit(130)
    failed = [stats["recrawl/plan_failed"] for stats in result.cycles if "recrawl/plan_failed" in stats]
    if failed:
        raise RecrawlError(f"no plan could be made: {failed[-1]}")
    _check_any_received([crawl_summary(stats) for stats in result.cycles])


def _check(options: PlanOptions, first: FirstCrawlOptions, fetch: FetchOptions, follow: FollowOptions) -> None:
    """What can be known to be wrong before anything is fetched."""
    from recrawl.crawl.judging import judge_of
    from recrawl.crawl.planned import read_plan

    _check_every(options.every)
    if fetch.plan is not None and first.seeds:
        raise typer.BadParameter("--seeds begins a first crawl, --plan fetches a plan: give one of them")
    if fetch.warc is not None and Path(fetch.warc).exists() and not Path(fetch.warc).is_dir():
        raise typer.BadParameter(f"--warc {fetch.warc}: that is a file; name a directory")
    if fetch.plan is not None and fetch.plan != "none":
        read_plan(Path(fetch.plan))
    judge_of(follow)


def _settings(options: PlanOptions, fetch: FetchOptions, follow: FollowOptions, history: str) -> dict[str, Any]:
    """All options as the add-on takes them."""
    from recrawl.crawl.settings import CrawlOptions

    of_plan = {each.name: getattr(options, each.name) for each in fields(options)}
    of_plan["every"] = "auto"  # here the option says when the next cycle begins
    return CrawlOptions(**of_plan, **asdict(fetch), **asdict(follow), history=history).as_settings()


def _check_any_received(cycles: list[dict[str, Any]]) -> None:
    """A crawl that requested pages and received none has failed."""
    n_received = sum(cycle[kind] for cycle in cycles for kind in ("fetched", "not_modified", "gone", "redirects"))
    n_failed = sum(cycle[kind] for cycle in cycles for kind in ("failed", "forbidden", "refused"))
    if n_failed and not n_received:
        raise RecrawlError("no page could be fetched; the messages above say why")


def _followed(summary: dict[str, Any]) -> str:
    """What became of the new links that were followed."""
    from recrawl.core.words import count

    relevant = f", {summary['relevant']:,} pages of this crawl are relevant" if summary["relevant"] else ""
    hubs = summary["adopted"]
    watched = (
        f"{count(hubs, 'page')} {'is' if hubs == 1 else 'are'} watched from now on"
        if hubs
        else "none is worth watching"
    )
    return f"{count(summary['followed'], 'new link')} followed{relevant}: {watched}"


def _check_every(every: str) -> None:
    from recrawl.core.times import parse_period

    try:
        if every not in ("auto", "crawl"):
            parse_period(every)
    except ValueError as error:
        raise typer.BadParameter(f"--every says when the next cycle begins: {error}") from None


def _summary(number: int, stats: dict[str, Any], n_cycles: int, given: str | None, *, is_focused: bool = False) -> None:
    """One cycle in words; `given`: the option that must be given again to continue it. `is_focused`: the plan counted relevant
    links only, recrawl score says how many were found.
    """
    from recrawl.core.words import number as rounded
    from recrawl.crawl.unfinished import NOT_ALONE, NOT_KEPT
    from recrawl.crawl.view import crawl_summary, most_common

    summary, screen = crawl_summary(stats), console()
    head = f"cycle {number}: " if n_cycles > 1 else ""
    rate = summary["visits"] / summary["seconds"] if summary["seconds"] else 0.0
    screen.print(
        f"{head}{summary['visits']:,} visits in {summary['seconds']:.0f} s ({rate:.1f}/s): {summary['fetched']:,} fetched, "
        f"{summary['not_modified']:,} unchanged, {summary['gone']:,} gone, {summary['failed']:,} failed; "
        f"{summary['bytes'] / 1e6:.1f} MB",
        markup=False,
    )
    relevant = " relevant ones" if is_focused else ""
    expected = f", {rounded(summary['expected_new_links'])}{relevant} were expected" if summary["planned"] else ""
    screen.print(f"{summary['new_links']:,} new links{expected}", markup=False)
    if summary["followed"]:
        screen.print(_followed(summary), markup=False)
    for text in summary["notes"]:
        screen.print(text, style="dim", markup=False)
    if summary["failed"]:
        screen.print(f"failed: {most_common(summary['failures'])}", style="yellow", markup=False)
    if summary["forbidden"] and not summary["planned"]:  # planned pages are among the failures
        why = f"not requested, because robots.txt forbids it or cannot be read: {most_common(summary['forbidden_why'])}"
        screen.print(why, style="yellow", markup=False)
    if summary["written"] < summary["visits"]:
        where = f"; {summary['spilled']:,} are in {', '.join(summary['spilled_to'])}, add them with recrawl import"
        screen.print(
            f"{summary['visits'] - summary['written']:,} visits are not in the history ({summary['not_written']})"
            + (where if summary["spilled"] else ""),
            style="red",
            markup=False,
        )
    if summary["ended"] != "finished":
        again = f" with the same {given}" if given else ""
        onward = f"; the next crawl{again} continues with the pages that were not fetched"
        if any(text.startswith((NOT_KEPT, NOT_ALONE)) for text in summary["notes"]):
            onward = ""
        screen.print(f"ended early: {summary['ended']}{onward}", markup=False)
