"""``recrawl evaluate --method outlinks``: the options of the evaluation of Dang et al. (LBLA), and its work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.common import chosen, console, note, open_history, print_json, steps
from recrawl.cli.report_options import PageOutput

if TYPE_CHECKING:
    from recrawl.papers.outlinks.evaluation import OutlinkEvaluation
    from recrawl.papers.outlinks.settings import OutlinkSettings

PARTS = "features, history, importance, correlation, maps, rankings, counts, drift"
PANEL = "Options of --method outlinks"


def _option(name: str, text: str, **more: Any) -> Any:
    return typer.Option(name, help=text, rich_help_panel=PANEL, **more)


@dataclass(frozen=True)
class PastRounds:
    """The part of the history that is evaluated."""

    every: str
    min_share: float
    as_of: str | None
    with_content: bool = False


@dataclass(frozen=True)
class OutlinkOptions:
    """What to learn from, what to predict and how to test it."""

    rounds: Annotated[
        int,
        _option("--rounds", "Number of rounds to use, counted from the last; the papers have 10.", metavar="N", min=2),
    ] = 10
    links: Annotated[
        str, _option("--links", "Kinds of links, separated by commas: internal, external, all.", metavar="KINDS")
    ] = "internal,external"
    split: Annotated[
        str,
        _option(
            "--split",
            "pages: test on a random quarter of the pages, as in the papers; time: learn from past rounds, predict the last.",
            metavar="NAME",
        ),
    ] = "pages"
    quick: Annotated[
        bool, _option("--quick", "Use the papers' tuned settings instead of a cross-validation for each model.")
    ] = False
    repeat: Annotated[int, _option("--repeat", "Number of repetitions with different seeds.", metavar="N", min=1)] = 3
    papers_rate: Annotated[
        bool,
        _option(
            "--papers-rate",
            "Let the rates of related pages include the predicted round, as in the papers: the future leaks into them.",
        ),
    ] = False
    papers_leaks: Annotated[
        bool,
        _option(
            "--papers-leaks",
            "Let in what the authors' program let in: these rates, and the related pages' new links of the predicted round.",
        ),
    ] = False
    target: Annotated[
        str,
        _option(
            "--target",
            "Whose new links are predicted: outlinks (links on a page) or inlinks (links to it on other pages).",
            metavar="NAME",
        ),
    ] = "outlinks"
    learner: Annotated[
        str,
        _option(
            "--learner",
            "Learner of whether there are new links (parts history and importance): extra-trees, lightgbm-unlimited, … "
            "(an unknown name lists all).",
            metavar="NAME",
        ),
    ] = "extra-trees"
    idf: Annotated[
        str,
        _option(
            "--idf",
            "Weight of rare words in semantic vectors: log (the usual logarithm) or ratio (as in the papers' appendix).",
            metavar="NAME",
        ),
    ] = "log"
    trees: Annotated[
        int | None, _option("--trees", "Maximum number of trees per model, for a quick look.", metavar="N", min=1)
    ] = None
    related: Annotated[int, _option("--related", "Number of related pages of each page.", metavar="N", min=1)] = 30
    related_by: Annotated[
        str,
        _option(
            "--related-by",
            "What makes pages related: content (similar text), or new links that come and go together (correlation, dtw).",
            metavar="NAME",
        ),
    ] = "content"
    neighbours: Annotated[
        str, _option("--neighbours", "Search for related pages: auto, exact or approximate.", metavar="NAME")
    ] = "auto"
    trusted: Annotated[
        list[str] | None,
        _option("--trusted", "Page or host from which TrustRank starts. Repeatable.", metavar="URL"),
    ] = None

    def settings(self, parts: str | None, seed: int) -> OutlinkSettings:
        """The settings of the evaluation."""
        from recrawl.insight.choices import IDFS, LINKS, RELATED_BY
        from recrawl.papers.outlinks.settings import PARTS as KNOWN
        from recrawl.papers.outlinks.settings import SPLITS, TARGETS, OutlinkSettings

        return OutlinkSettings(
            links=chosen("--links", self.links, LINKS),
            parts=chosen("--parts", parts, KNOWN) if parts is not None else KNOWN,
            split=chosen("--split", self.split, SPLITS)[0],
            seeds=tuple(range(seed, seed + self.repeat)),
            quick=self.quick,
            papers_rate=self.papers_rate,
            papers_leaks=self.papers_leaks,
            target=chosen("--target", self.target, TARGETS)[0],
            presence_learner=_presence_learner(self.learner),
            idf=chosen("--idf", self.idf, IDFS)[0],
            related_by=chosen("--related-by", self.related_by, RELATED_BY)[0],
            trees=self.trees,
        )


def _presence_learner(name: str) -> str:
    """The name of a learner that can predict presence; any other is wrong usage."""
    from recrawl.core.suggest import unknown
    from recrawl.models.learners import all_learners

    able = [learner.name for learner in all_learners() if "presence" in learner.kinds and not learner.baseline]
    if name not in able:
        raise typer.BadParameter(f"--learner: {unknown('learner of presence', name, able)}")
    return name


def run(
    history: str, past: PastRounds, options: OutlinkOptions, settings: OutlinkSettings, page: PageOutput, json: bool
) -> None:
    """Evaluate, then print the tables or the rows, and write the page."""
    from recrawl.papers.outlinks.evaluation import evaluate
    from recrawl.world.panel import build

    method = chosen("--neighbours", options.neighbours, ("auto", "exact", "approximate"))[0]
    opened = open_history(history, past.as_of)
    with steps("what was new in each round") as on_step:
        panel = build(opened, past.every, 0.0, with_content=past.with_content)
        panel = panel.window(max(0, panel.shape[1] - options.rounds), panel.shape[1], past.min_share)
        evaluation = evaluate(
            opened, panel, settings, on_step, k=options.related, method=method, trusted=options.trusted
        )
        if page.path:
            from recrawl.papers.outlinks.page import write_outlinks_page

            write_outlinks_page(page.path, evaluation, self_contained=page.self_contained)
    for line in evaluation.notes:
        note(line)
    _print_rows(evaluation) if json else _print_tables(evaluation, page)


def _print_rows(evaluation: OutlinkEvaluation) -> None:
    print_json({"part": "about", **evaluation.about()})
    for part, rows in evaluation.rows.items():
        for row in rows:
            print_json({"part": part, **row})


def _print_tables(evaluation: OutlinkEvaluation, page: PageOutput) -> None:
    from rich.text import Text

    from recrawl.papers.outlinks.page import findings, outlink_tables
    from recrawl.papers.outlinks.tables import scope
    from recrawl.report.terminal import Bullets

    screen = console()
    screen.print(Bullets(findings(evaluation)))
    screen.print(Text(scope(evaluation)))
    for table in outlink_tables(evaluation):
        screen.print(table)
    page.print_path(screen)
