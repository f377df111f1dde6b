"""``recrawl evaluate``: the papers' evaluations on any history, of new links, of history-aware choices or of experts."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated

import typer

from recrawl.cli import evaluate_experts, evaluate_updates
from recrawl.cli.common import (
    HISTORY,
    AsOfOption,
    HistoryOption,
    JsonOption,
    SeedOption,
    checked_rounds,
    chosen,
    console,
    note,
    open_history,
    print_json,
    steps,
)
from recrawl.cli.evaluate_experts import ExpertOptions
from recrawl.cli.evaluate_updates import UpdateOptions
from recrawl.cli.grouped import with_options

METHODS = ("outlinks", "history-aware", "experts")
#: The options that not every method takes.
OWN = {
    "outlinks": (
        "min_share", "rounds", "links", "parts", "split", "quick", "repeat", "papers_rate", "trees", "related", "neighbours",
        "trusted",
    ),
    "history-aware": tuple(field.name for field in fields(UpdateOptions)),
    "experts": ("min_share", "parts", *(field.name for field in fields(ExpertOptions))),
}  # fmt: skip
PARTS = "features, history, importance, correlation, maps, rankings, counts"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("evaluate")(with_options(evaluate))


def checked_every(text: str | None) -> str | None:
    """Rounds, or ``visits``."""
    return text if text in (None, "visits") else checked_rounds(text)


def evaluate(
    context: typer.Context,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="'outlinks': learnt predictions (papers 000 and 003); 'history-aware': rates of updates (paper 004); "
            "'experts': changes of content told by related pages (paper 001).",
        ),
    ] = "outlinks",
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Write an HTML page with plots.")
    ] = None,
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    every: Annotated[
        str | None,
        typer.Option(
            "--every",
            metavar="PERIOD",
            help="Rounds: 'crawl' as crawled, a period such as 1h or 7d, or the times at which they end; for history-aware also "
            "'visits', each at its own time. Default: crawl, for experts 1d.",
            callback=checked_every,
        ),
    ] = None,
    min_share: Annotated[
        float | None,
        typer.Option(
            "--min-share",
            min=0.0,
            max=1.0,
            help="Keep pages seen in at least this share of the rounds. Default: 1, for experts 0.5.",
        ),
    ] = None,
    rounds: Annotated[
        int, typer.Option("--rounds", min=2, help="Use the last so many rounds; the papers have 10.")
    ] = 10,
    links: Annotated[
        str, typer.Option("--links", help="internal, external, all, or several with commas.")
    ] = "internal,external",
    parts: Annotated[
        str | None,
        typer.Option("--parts", help=f"What to evaluate: {PARTS}; of experts: {evaluate_experts.PARTS}. Default: all."),
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            "--split", help="'pages': the papers' random quarter; 'time': learn from past rounds, predict the last."
        ),
    ] = "pages",
    quick: Annotated[
        bool, typer.Option("--quick", help="The papers' tuned settings instead of a cross-validation for each model.")
    ] = False,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Repetitions with other seeds.")] = 3,
    papers_rate: Annotated[
        bool,
        typer.Option(
            "--papers-rate",
            help="Rates of related pages that include the predicted round, as in the papers: they leak.",
        ),
    ] = False,
    trees: Annotated[int | None, typer.Option("--trees", min=1, help="At most so many trees, to look quickly.")] = None,
    related: Annotated[int, typer.Option("--related", min=1, help="Related pages of each page.")] = 30,
    neighbours: Annotated[str, typer.Option("--neighbours", help="auto, exact or approximate.")] = "auto",
    trusted: Annotated[
        list[str] | None,
        typer.Option("--trusted", metavar="URL", help="A page or host that TrustRank starts from; repeat it."),
    ] = None,
    *,
    updated: UpdateOptions,
    watched: ExpertOptions,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """How well new links, or changes of content, can be predicted: the tables and figures of the papers.

    With --method outlinks, the default: from which features and by which models. Without --quick every model is tuned by
    cross-validation over the papers' grids, which takes its time. Nothing is learnt from the round that is predicted.

    With --method history-aware: whether a page, or a site, will have new links soon, from the rate of its past updates, for
    --windows of history and thresholds --thetas; which are updated first; and whether updates come like a Poisson process.

    With --method experts: whether a page's content will change significantly in the next round, as related pages tell; beside
    random pages, the page alone and its past changes.
    """
    chosen_method = chosen("--method", method, METHODS)[0]
    _refuse_options_of_others(context, chosen_method)
    if chosen_method == "history-aware":
        wanted = updated.settings(every or "crawl", seed)
        evaluate_updates.run(history, as_of, wanted, out, json)
        return
    if every == "visits":
        raise typer.BadParameter(
            f"--every visits is for --method history-aware; --method {chosen_method} goes from round to round"
        )
    if chosen_method == "experts":
        asked = watched.settings(every or "1d", parts, 0.5 if min_share is None else min_share, seed)
        evaluate_experts.run(history, as_of, asked, out, json)
        return
    from recrawl.experiments.outlinks import evaluate as run
    from recrawl.experiments.settings import PARTS as KNOWN
    from recrawl.experiments.settings import SPLITS, Settings
    from recrawl.panel import build
    from recrawl.targets import LINKS

    settings = Settings(
        links=chosen("--links", links, LINKS),
        parts=chosen("--parts", parts, KNOWN) if parts is not None else KNOWN,
        split=chosen("--split", split, SPLITS)[0],
        seeds=tuple(range(seed, seed + repeat)),
        quick=quick,
        papers_rate=papers_rate,
        trees=trees,
    )
    method = chosen("--neighbours", neighbours, ("auto", "exact", "approximate"))[0]
    opened = open_history(history, as_of)
    with steps("what was new in each round") as on_step:
        panel = build(opened, every or "crawl", 0.0)
        panel = panel.window(max(0, panel.shape[1] - rounds), panel.shape[1], 1.0 if min_share is None else min_share)
        found = run(opened, panel, settings, on_step, k=related, method=method, trusted=trusted)
        if out:
            from recrawl.experiments.outlinks_page import write_outlinks_page

            write_outlinks_page(out, found)
    for line in found.notes:
        note(line)
    if json:
        print_json({"part": "about", **found.about()})
        for part, rows in found.rows.items():
            for row in rows:
                print_json({"part": part, **row})
        return
    from rich.text import Text

    from recrawl.experiments.outlinks_tables import scope, tables

    screen = console()
    screen.print(Text(scope(found)))
    for table in tables(found):
        screen.print(table)
    if out:
        screen.print(Text(f"all of it with plots: {out}"))


def _refuse_options_of_others(context: typer.Context, method: str) -> None:
    """An option that would silently do nothing is wrong usage."""
    for name in dict.fromkeys(name for names in OWN.values() for name in names):
        source = context.get_parameter_source(name)
        if name not in OWN[method] and source is not None and source.name == "COMMANDLINE":
            option = next(p.opts[0] for p in context.command.params if p.name == name)
            owners = " or ".join(other for other in METHODS if name in OWN[other])
            raise typer.BadParameter(f"{option} belongs to --method {owners}")
