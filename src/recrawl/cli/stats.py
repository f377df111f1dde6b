"""``recrawl stats``: how new links arrive on the pages of a history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from recrawl.cli.common import (
    HISTORY,
    AsOfOption,
    EveryOption,
    HistoryOption,
    JsonOption,
    SeedOption,
    WithContentOption,
    check_writable,
    console,
    note,
    open_history,
    print_json,
    working,
)
from recrawl.cli.option_groups import with_options
from recrawl.cli.report_options import OutOption, PageOutput, SelfContainedOption
from recrawl.core.options import check_values, option, read_values, same_option
from recrawl.insight.choices import OUTLINKS, TARGETS
from recrawl.plan.options import PlanOptions


@dataclass(frozen=True, kw_only=True)
class StatsOptions:
    """What is analysed."""

    roots: str = same_option(PlanOptions, "roots")
    target: str = option(
        OUTLINKS,
        "Whose new links are analysed: outlinks (on a page), or inlinks (on other pages, and leading to it).",
        metavar="NAME",
        choices=TARGETS,
    )

    def __post_init__(self) -> None:
        read_values(self)
        check_values(self)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("stats")(with_options(stats))


def stats(
    options: StatsOptions,
    out: OutOption = None,
    self_contained: SelfContainedOption = False,
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    every: EveryOption = "crawl",
    min_share: Annotated[
        float | None,
        typer.Option(
            "--min-share",
            metavar="SHARE",
            min=0.0,
            max=1.0,
            help="Keep pages seen in at least this share of the rounds. Default: 0.5, or less where that would leave out more "
            "than half of the pages.",
        ),
    ] = None,
    with_content: WithContentOption = False,
    seed: SeedOption = 0,
    engine: Annotated[
        str | None, typer.Option("--engine", metavar="NAME", help="Not possible, and why.", hidden=True)
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show how new links arrive: findings first, then tables; with --out also an HTML page with plots.

    New links per page and round, pages without new links, change rates, groups from round to round, heavy tails and the laws that
    fit them, the most extreme pages, top-level domains, and the time between visits: the analysis of Dang et al. (2022) and of
    Jayawardana et al. (2020). With --roots also websites as a whole. Many rounds are shown as means by day, week or month; --json
    has every round.
    """
    if engine is not None:
        raise typer.BadParameter(
            "no engine can do this: medians, groups of pages, and the laws that fit all new links need the pages of all "
            "buckets at once. recrawl info and recrawl export visits take --engine",
            param_hint="--engine",
        )
    check_writable(out)
    opened = open_history(history, as_of)
    from recrawl.report.stats.analysis import analyse, default_share
    from recrawl.world.panel import build
    from recrawl.world.roots import DOMAINS, parse_roots

    roots = parse_roots(options.roots)
    for text in roots.notes():
        note(text)
    with working("working out what was new, and how it is distributed"):
        timeline = opened.timeline
        share = default_share(opened, every, with_content) if min_share is None else min_share
        panel = build(opened, every, share, with_content=with_content)
        statistics = analyse(
            panel,
            timeline.page,
            timeline.at.view("datetime64[us]"),
            seed=seed,
            roots=None if roots == DOMAINS else roots,
            target=options.target,
        )
        if out:
            from recrawl.report.stats.page import write_stats_page

            write_stats_page(out, statistics, self_contained=self_contained)
    note(
        f"pages seen in at least {share:.1%} of the rounds (--min-share {share:g}): {_kept(panel.shape[0], len(timeline.pages))}"
    )
    if json:
        print_json(statistics.as_dict())
        return
    from rich.text import Text

    from recrawl.report.stats.page import scope, stats_tables
    from recrawl.report.terminal import Bullets

    screen = console()
    screen.print(Text(f"{scope(statistics)}.", "bold"))
    screen.print(Bullets(statistics.findings))
    for table in stats_tables(statistics):
        screen.print(table)
    PageOutput(out).print_path(screen)


def _kept(n_pages: int, n_known: int) -> str:
    return f"all {n_pages:,}" if n_pages == n_known else f"{n_pages:,} of {n_known:,}"
