"""``recrawl evaluate``: the papers' evaluations on any history: of new links, of history-aware choices or of experts."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated

import typer

from recrawl.cli import evaluate_experts, evaluate_outlinks, evaluate_updates
from recrawl.cli.common import (
    HISTORY,
    AsOfOption,
    HistoryOption,
    JsonOption,
    SeedOption,
    WithContentOption,
    check_writable,
    checked_rounds,
    chosen,
)
from recrawl.cli.evaluate_experts import ExpertOptions
from recrawl.cli.evaluate_outlinks import OutlinkOptions, PastRounds
from recrawl.cli.evaluate_updates import UpdateOptions
from recrawl.cli.option_groups import with_options
from recrawl.cli.report_options import OutOption, PageOutput, SelfContainedOption

METHODS = ("outlinks", "history-aware", "experts")
#: The options that not every method takes.
OWN = {
    "outlinks": ("min_share", "with_content", "parts", *(field.name for field in fields(OutlinkOptions))),
    "history-aware": tuple(field.name for field in fields(UpdateOptions)),
    "experts": ("min_share", "parts", *(field.name for field in fields(ExpertOptions))),
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("evaluate")(with_options(evaluate))


def checked_every(text: str | None) -> str | None:
    """Check the value of --every: rounds, or ``visits``."""
    return text if text in (None, "visits") else checked_rounds(text)


def evaluate(
    context: typer.Context,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="NAME",
            help="What to evaluate. outlinks: models that predict new links (Dang et al. (LBLA), 2022); history-aware: rates of "
            "updates (Jayawardana et al., 2020); experts: related pages that predict changes of content (Radinsky and Bennett, "
            "2013).",
        ),
    ] = "outlinks",
    out: OutOption = None,
    self_contained: SelfContainedOption = False,
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    every: Annotated[
        str | None,
        typer.Option(
            "--every",
            metavar="PERIOD",
            help="Rounds: crawl (as crawled), a period such as 1h or 7d, or the times at which they end; for history-aware also "
            "visits (each at its own time). Default: crawl; for experts 1d.",
            callback=checked_every,
        ),
    ] = None,
    min_share: Annotated[
        float | None,
        typer.Option(
            "--min-share",
            metavar="SHARE",
            min=0.0,
            max=1.0,
            help="Keep pages seen in at least this share of the rounds. Default: 1; for experts 0.5.",
        ),
    ] = None,
    with_content: WithContentOption = False,
    parts: Annotated[
        str | None,
        typer.Option(
            "--parts",
            metavar="NAMES",
            help=f"Parts to run, separated by commas. outlinks: {evaluate_outlinks.PARTS}; experts: {evaluate_experts.PARTS}. "
            "Default: all.",
        ),
    ] = None,
    *,
    outlinks: OutlinkOptions,
    updates_options: UpdateOptions,
    experts_options: ExpertOptions,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Measure how well new links, or changes of content, can be predicted: the tables and figures of the papers.

    --method outlinks (default): from which features and by which models. Without --quick every model is tuned by
    cross-validation over the papers' grids, which takes long. Nothing is learnt from the round that is predicted.

    --method history-aware: whether a page, or a site, will have new links soon, from the rate of its past updates, for the
    --windows of history and the thresholds --thetas; which pages are updated first; and whether updates follow a Poisson process.

    --method experts: whether a page's content will change significantly in the next round, predicted by related pages; compared
    with random pages, the page alone and its past changes.
    """
    chosen_method = chosen("--method", method, METHODS)[0]
    _refuse_options_of_others(context, chosen_method)
    if every == "visits" and chosen_method != "history-aware":
        raise typer.BadParameter(
            f"--every visits is for --method history-aware; --method {chosen_method} goes from round to round"
        )
    check_writable(out)
    page = PageOutput(out, self_contained)
    if chosen_method == "history-aware":
        evaluate_updates.run(history, as_of, updates_options.settings(every or "crawl", seed), page, json)
    elif chosen_method == "experts":
        settings = experts_options.settings(every or "1d", parts, 0.5 if min_share is None else min_share, seed)
        evaluate_experts.run(history, as_of, settings, page, json)
    else:
        past = PastRounds(every or "crawl", 1.0 if min_share is None else min_share, as_of, with_content)
        evaluate_outlinks.run(history, past, outlinks, outlinks.settings(parts, seed), page, json)


def _refuse_options_of_others(context: typer.Context, method: str) -> None:
    """Refuse options that would silently do nothing."""
    for name in dict.fromkeys(name for names in OWN.values() for name in names):
        source = context.get_parameter_source(name)
        if name not in OWN[method] and source is not None and source.name == "COMMANDLINE":
            option = next(p.opts[0] for p in context.command.params if p.name == name)
            owners = " or ".join(other for other in METHODS if name in OWN[other])
            raise typer.BadParameter(f"{option} belongs to --method {owners}")
