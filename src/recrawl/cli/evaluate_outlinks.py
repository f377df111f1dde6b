"""``recrawl evaluate --method outlinks``: the options of the LBLA papers' evaluation, and its work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.common import chosen, console, note, open_history, print_json, steps

if TYPE_CHECKING:
    from recrawl.papers.outlinks.evaluation import OutlinkEvaluation
    from recrawl.papers.outlinks.settings import OutlinkSettings

PARTS = "features, history, importance, correlation, maps, rankings, counts"


@dataclass(frozen=True)
class OutlinkOptions:
    """What to learn from, what to predict and how to test it."""

    rounds: Annotated[int, typer.Option("--rounds", min=2, help="Use the last so many rounds; the papers have 10.")] = (
        10
    )
    links: Annotated[str, typer.Option("--links", help="internal, external, all, or several with commas.")] = (
        "internal,external"
    )
    split: Annotated[
        str,
        typer.Option(
            "--split", help="'pages': the papers' random quarter; 'time': learn from past rounds, predict the last."
        ),
    ] = "pages"
    quick: Annotated[
        bool, typer.Option("--quick", help="The papers' tuned settings instead of a cross-validation for each model.")
    ] = False
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Repetitions with other seeds.")] = 3
    papers_rate: Annotated[
        bool,
        typer.Option(
            "--papers-rate",
            help="Rates of related pages that include the predicted round, as in the papers: they leak.",
        ),
    ] = False
    trees: Annotated[int | None, typer.Option("--trees", min=1, help="At most so many trees, to look quickly.")] = None
    related: Annotated[int, typer.Option("--related", min=1, help="Related pages of each page.")] = 30
    neighbours: Annotated[str, typer.Option("--neighbours", help="auto, exact or approximate.")] = "auto"
    trusted: Annotated[
        list[str] | None,
        typer.Option("--trusted", metavar="URL", help="A page or host that TrustRank starts from; repeat it."),
    ] = None

    def settings(self, parts: str | None, seed: int) -> OutlinkSettings:
        """As the evaluation takes them."""
        from recrawl.insight.targets import LINKS
        from recrawl.papers.outlinks.settings import PARTS as KNOWN
        from recrawl.papers.outlinks.settings import SPLITS, OutlinkSettings

        return OutlinkSettings(
            links=chosen("--links", self.links, LINKS),
            parts=chosen("--parts", parts, KNOWN) if parts is not None else KNOWN,
            split=chosen("--split", self.split, SPLITS)[0],
            seeds=tuple(range(seed, seed + self.repeat)),
            quick=self.quick,
            papers_rate=self.papers_rate,
            trees=self.trees,
        )


def run(
    history: str,
    as_of: str | None,
    asked: OutlinkOptions,
    settings: OutlinkSettings,
    every: str,
    min_share: float,
    out: str | None,
    json: bool,
) -> None:
    """Evaluate, then print the tables or the rows, and write the page."""
    from recrawl.papers.outlinks.evaluation import evaluate
    from recrawl.world.panel import build

    method = chosen("--neighbours", asked.neighbours, ("auto", "exact", "approximate"))[0]
    opened = open_history(history, as_of)
    with steps("what was new in each round") as on_step:
        panel = build(opened, every, 0.0)
        panel = panel.window(max(0, panel.shape[1] - asked.rounds), panel.shape[1], min_share)
        found = evaluate(opened, panel, settings, on_step, k=asked.related, method=method, trusted=asked.trusted)
        if out:
            from recrawl.papers.outlinks.page import write_outlinks_page

            write_outlinks_page(out, found)
    for line in found.notes:
        note(line)
    _print_rows(found) if json else _print_tables(found, out)


def _print_rows(found: OutlinkEvaluation) -> None:
    print_json({"part": "about", **found.about()})
    for part, rows in found.rows.items():
        for row in rows:
            print_json({"part": part, **row})


def _print_tables(found: OutlinkEvaluation, out: str | None) -> None:
    from rich.text import Text

    from recrawl.papers.outlinks.tables import scope, tables

    screen = console()
    screen.print(Text(scope(found)))
    for table in tables(found):
        screen.print(table)
    if out:
        screen.print(Text(f"all of it with plots: {out}"))
