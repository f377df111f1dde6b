"""``recrawl evaluate``: the papers' evaluation of new-outlink prediction on any history."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from recrawl.cli.common import (
    HISTORY,
    AsOfOption,
    EveryOption,
    HistoryOption,
    JsonOption,
    MinShareOption,
    SeedOption,
    console,
    open_history,
    print_json,
    steps,
)

PARTS = "features, history, importance, correlation, maps, rankings, counts"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("evaluate")(evaluate)


def evaluate(
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Write an HTML page with plots.")
    ] = None,
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    every: EveryOption = "crawl",
    min_share: MinShareOption = 1.0,
    rounds: Annotated[
        int, typer.Option("--rounds", min=2, help="Use the last so many rounds; the papers have 10.")
    ] = 10,
    links: Annotated[
        str, typer.Option("--links", help="internal, external, all, or several with commas.")
    ] = "internal,external",
    parts: Annotated[str, typer.Option("--parts", help=f"What to evaluate: {PARTS}.")] = PARTS.replace(" ", ""),
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
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """How well new links can be predicted, from which features and by which models: the tables and figures of the papers.

    Without --quick every model is tuned by cross-validation over the papers' grids, which takes its time. Nothing is learnt from
    the round that is predicted.
    """
    from recrawl.experiments.outlinks import evaluate as run
    from recrawl.experiments.settings import PARTS as KNOWN
    from recrawl.experiments.settings import SPLITS, Settings
    from recrawl.panel import build
    from recrawl.targets import LINKS

    settings = Settings(
        links=chosen("--links", links, LINKS),
        parts=chosen("--parts", parts, KNOWN),
        split=chosen("--split", split, SPLITS)[0],
        seeds=tuple(range(seed, seed + repeat)),
        quick=quick,
        papers_rate=papers_rate,
        trees=trees,
    )
    method = chosen("--neighbours", neighbours, ("auto", "exact", "approximate"))[0]
    opened = open_history(history, as_of)
    with steps("what was new in each round") as on_step:
        panel = build(opened, every, 0.0)
        panel = panel.window(max(0, panel.shape[1] - rounds), panel.shape[1], min_share)
        found = run(opened, panel, settings, on_step, k=related, method=method, trusted=trusted)
        if out:
            from recrawl.experiments.outlinks_page import write_outlinks_page

            write_outlinks_page(out, found)
    if json:
        for part, rows in found.rows.items():
            for row in rows:
                print_json({"part": part, **row})
        return
    from rich.text import Text

    from recrawl.experiments.outlinks_tables import tables

    screen = console()
    for table in tables(found):
        screen.print(table)
    if out:
        screen.print(Text(f"all of it with plots: {out}"))


def chosen(option: str, text: str, known: tuple[Any, ...]) -> tuple[Any, ...]:
    """The names given with an option, with commas between; an unknown one is wrong usage."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise typer.BadParameter(
            f"{option} {unknown[0] if unknown else text!r} is not known; choose from {', '.join(known)}"
        )
    return names
