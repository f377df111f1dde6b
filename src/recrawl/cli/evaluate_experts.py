"""``recrawl evaluate --method experts``: the options of the evaluation of Radinsky and Bennett (2013), and its work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from recrawl.cli.common import chosen, console, note, open_history, print_json, stderr_console
from recrawl.cli.report_options import PageOutput
from recrawl.core.suggest import unknown

if TYPE_CHECKING:
    from recrawl.papers.experts.settings import ExpertEvaluation, ExpertSettings

PANEL = "Options of --method experts"
PARTS = "settings, combining, selection, history, number; and, if asked for, freshness and experts"
CHOICES = "cross-correlation, dtw, content, graph, random or online-correlation"


def _option(name: str, text: str, **more: Any) -> Any:
    return typer.Option(name, help=text, rich_help_panel=PANEL, **more)


ChangeOption = Annotated[
    str,
    _option(
        "--change",
        "What counts as a change: significant, digest or shingles, also with a threshold: significant:0.01.",
        metavar="KIND",
    ),
]
PredictOption = Annotated[
    str,
    _option(
        "--predict",
        "What is predicted: change (as --change says), new-links, or relevance: that a page becomes relevant, also with a "
        "threshold: relevance:0.8.",
        metavar="TARGET",
    ),
]
LastRoundsOption = Annotated[
    int | None,
    _option("--last-rounds", "Predict only the last rounds, this number. Default: all.", metavar="N", min=1),
]
ObservedOption = Annotated[
    str,
    _option(
        "--observed-rounds",
        "Part freshness: numbers of rounds in which every page is seen before crawling begins, separated by commas.",
        metavar="NUMBERS",
    ),
]
FetchedOption = Annotated[
    float,
    _option("--fetched", "Part freshness: share of the pages to fetch per round.", metavar="SHARE", min=0.0, max=1.0),
]
TrainOption = Annotated[
    int, _option("--train", "Number of rounds that each prediction is learnt from.", metavar="N", min=2)
]
TrainsOption = Annotated[
    str, _option("--trains", "Numbers of such rounds to compare, separated by commas.", metavar="NUMBERS")
]
ExpertsOption = Annotated[
    int, _option("--experts", "Number of experts of each page, beside itself.", metavar="N", min=1)
]
NumbersOption = Annotated[
    str, _option("--numbers", "Numbers of experts to compare, separated by commas.", metavar="NUMBERS")
]
ChooseOption = Annotated[str, _option("--choose", f"How experts are chosen: {CHOICES}.", metavar="NAME")]
ReselectOption = Annotated[
    int | None,
    _option("--reselect", "Choose experts again after this number of rounds. Default: once.", metavar="N", min=1),
]
WindowOption = Annotated[
    int, _option("--window", "Number of rounds whose words and changes an expert uses.", metavar="N", min=1)
]
AheadRoundsOption = Annotated[int, _option("--ahead-rounds", "Number of rounds ahead to predict.", metavar="N", min=1)]
AlphaOption = Annotated[
    float,
    _option(
        "--alpha",
        "Predict pages that switch between change and no change in at least this share of the rounds.",
        metavar="SHARE",
        min=0.0,
        max=1.0,
    ),
]
WordScaleOption = Annotated[
    float,
    _option("--word-scale", "Weight of the words among the features of an expert.", metavar="NUMBER", min=0.0, max=1e6),
]
COption = Annotated[
    str,
    _option(
        "--c",
        "C of the support vector machines; of several, the one that was right most often so far.",
        metavar="NUMBERS",
    ),
]
ModelsOption = Annotated[int, _option("--models", "Number of learners of bagging and of boosting.", metavar="N", min=1)]
PagesOption = Annotated[
    int | None,
    _option(
        "--pages",
        "Maximum number of pages to predict, picked at random; by importance where visits state it.",
        metavar="N",
        min=1,
    ),
]

OnStep: TypeAlias = Callable[[str], None]
OnPage: TypeAlias = Callable[[int, int], None]


def parse_counts(option: str, text: str, least: int = 1) -> tuple[int, ...]:
    """Whole numbers separated by commas, ascending.

    >>> parse_counts("--numbers", "20, 5,1")
    (1, 5, 20)
    """
    try:
        counts = sorted({int(part) for part in text.split(",")})
    except ValueError:
        counts = []
    if not counts or counts[0] < least:
        raise typer.BadParameter(f"{option} {text!r}: write whole numbers from {least} separated by commas, e.g. 30,50")
    return tuple(counts)


ExpertLearnerOption = Annotated[
    str,
    _option(
        "--expert-learner",
        "Learner of each expert: svm, or instead logistic-regression, decision-tree or nearest-neighbours (slow).",
        metavar="NAME",
    ),
]


@dataclass(frozen=True)
class ExpertOptions:
    """The options of this method."""

    change: ChangeOption = "significant"
    predict: PredictOption = "change"
    train: TrainOption = 50
    trains: TrainsOption = "30,50,70,90,120"
    experts: ExpertsOption = 20
    numbers: NumbersOption = "1,2,5,10,15,20,30"
    choose: ChooseOption = "cross-correlation"
    reselect: ReselectOption = None
    window: WindowOption = 1
    ahead_rounds: AheadRoundsOption = 1
    alpha: AlphaOption = 0.3
    word_scale: WordScaleOption = 1.0
    c: COption = "1"
    expert_learner: ExpertLearnerOption = "svm"
    models: ModelsOption = 10
    pages: PagesOption = None
    last_rounds: LastRoundsOption = None
    observed_rounds: ObservedOption = "0,20,50,80,100"
    fetched: FetchedOption = 0.1

    def settings(self, every: str, parts: str | None, min_share: float, seed: int) -> ExpertSettings:
        """The settings of the evaluation."""
        from recrawl.models.experts.selection import METHODS
        from recrawl.papers.experts.settings import ALL_PARTS, ExpertSettings
        from recrawl.papers.experts.settings import PARTS as USUAL

        return ExpertSettings(
            every=every,
            notion=checked_change(self.change),
            target=checked_target(self.predict),
            parts=chosen("--parts", parts, ALL_PARTS) if parts is not None else USUAL,
            n_train=self.train,
            n_trains=checked_lengths(self.train, self.trains, self.ahead_rounds),
            k=self.experts,
            ks=parse_counts("--numbers", self.numbers),
            method=chosen("--choose", self.choose, METHODS)[0],
            reselect=self.reselect,
            l=self.window,
            sigma=self.ahead_rounds,
            alpha=self.alpha,
            word_scale=self.word_scale,
            cs=parse_cs(self.c),
            classifier=made_learner(self.expert_learner),
            n_models=self.models,
            min_share=min_share,
            most_pages=self.pages,
            last=self.last_rounds,
            observed=parse_counts("--observed-rounds", self.observed_rounds, 0),
            share=self.fetched,
            seed=seed,
        )


def made_learner(name: str) -> Any:
    """A classifier of scikit-learn by name; None for the support vector machine."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    known = {
        "svm": None,
        "logistic-regression": LogisticRegression(max_iter=500),
        "decision-tree": DecisionTreeClassifier(min_samples_leaf=2, random_state=0),
        "nearest-neighbours": KNeighborsClassifier(3),
    }
    if name not in known:
        raise typer.BadParameter(f"--expert-learner: {unknown('learner', name, known)}")
    return known[name]


def parse_cs(text: str) -> tuple[float, ...]:
    """Positive numbers separated by commas, in their order: of equally good ones the first is taken.

    >>> parse_cs("1,0.1,10")
    (1.0, 0.1, 10.0)
    """
    try:
        values = tuple(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError:
        values = ()
    if not values or not all(0 < value < float("inf") for value in values):
        raise typer.BadParameter(f"--c {text!r}: write numbers above 0 separated by commas, e.g. 0.1,1,10")
    return values


def checked_change(text: str) -> str:
    """Check a notion of change; anything else is wrong usage."""
    from recrawl.errors import RecrawlError
    from recrawl.world.notions import notion_from

    try:
        notion_from(text)
    except RecrawlError as error:
        raise typer.BadParameter(f"--change: {error}") from None
    return text


def checked_target(text: str) -> str:
    """Check what is to be predicted; anything else is wrong usage."""
    from recrawl.errors import RecrawlError
    from recrawl.papers.experts.targets import parsed_target

    try:
        parsed_target(text)
    except RecrawlError as error:
        raise typer.BadParameter(f"--predict: {error}") from None
    return text


def checked_lengths(train: int, trains: str, ahead: int) -> tuple[int, ...]:
    """The training sizes to compare, always with `train`, which is known to fit the history."""
    if train <= ahead:
        raise typer.BadParameter(
            f"--train {train} leaves nothing to learn from {ahead} rounds ahead; use more than --ahead-rounds"
        )
    return tuple(sorted({train, *parse_counts("--trains", trains, ahead + 1)}))


def run(history: str, as_of: str | None, settings: ExpertSettings, page: PageOutput, json: bool) -> None:
    """Evaluate, then print findings and tables, or the rows, and write the page."""
    from recrawl.papers.experts.evaluation import evaluate_experts

    opened = open_history(history, as_of)
    with _watched() as (on_step, on_page):
        evaluation = evaluate_experts(opened, settings, on_step, on_page)
        if page.path:
            from recrawl.papers.experts.page import write_experts_page

            write_experts_page(page.path, evaluation, self_contained=page.self_contained)
    for line in evaluation.notes:
        note(line)
    if json:
        _print_rows(evaluation)
        return
    from rich.text import Text

    from recrawl.papers.experts.page import expert_tables, findings
    from recrawl.papers.experts.tables import scope
    from recrawl.report.terminal import Bullets

    screen = console()
    screen.print(Bullets(findings(evaluation)))
    screen.print(Text(scope(evaluation)))
    for table in expert_tables(evaluation):
        screen.print(table)
    page.print_path(screen)


def _print_rows(evaluation: ExpertEvaluation) -> None:
    about = {name: value for name, value in vars(evaluation).items() if name != "rows"}
    print_json({"part": "about", **about})
    for part, rows in evaluation.rows.items():
        for row in rows:
            print_json({"part": part, **row})


@contextmanager
def _watched() -> Iterator[tuple[OnStep, OnPage]]:
    """Show the current step, and a bar over the pages once they are predicted; on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda what: None, lambda done, of: None
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, transient=True, console=stderr_console()) as bar:
        task = bar.add_task("opening the history", total=None)
        yield (
            lambda what: bar.update(task, description=what),
            lambda done, of: bar.update(
                task, completed=done, total=of, description=f"predicting, {done:,} of {of:,} pages"
            ),
        )
