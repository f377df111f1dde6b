"""``recrawl train``: learn from a history which pages gain links."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.common import (
    HISTORY,
    JsonOption,
    check_writable,
    console,
    note,
    print_json,
    steps,
)
from recrawl.cli.option_groups import with_options
from recrawl.cli.planning import HistoryOptions
from recrawl.models.options import TrainOptions

if TYPE_CHECKING:
    from recrawl.models.predictor import Predictor

MODEL = "./model.recrawl"
CLEARLY = 0.02  #: of a difference between two rank correlations that is worth a sentence


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("train")(with_options(train))


def train(
    options: TrainOptions,
    past: HistoryOptions,
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="Model file to write.")] = MODEL,
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="FILE",
            help="Train nothing: say whether this model is due to be trained again, by the visits since then. Exits 1 if it is.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Learn which pages gain new links, and show how right the same model was one round earlier.

    The model is one file, without pickle, that records what it was trained on. recrawl predict uses it. With --check, a model is
    due if it has lost what it ranked pages better by than average-count, beyond chance.
    """
    if check:
        _check(check, past, json)
        return
    check_writable(out)
    opened = past.open()
    from recrawl.models.predictor import train as run
    from recrawl.models.saved import save

    with steps("finding what was new in each round") as on_step:
        predictor = run(opened, options.recipe(), on_step, note)
        card = save(predictor, out)
    if json:
        print_json(
            {
                "model": out,
                **{key: card[key] for key in ("window", "n_pages", "n_rounds", "neighbours", "recipe", "versions")},
                "scores": card["scores_one_round_earlier"],
            }
        )
        return
    from recrawl.cli.screen import Screen

    screen = Screen()
    show_scores(predictor)
    for sentence in outdone(predictor):
        note(sentence)
    screen.line(
        f"trained on {predictor.n_pages:,} pages and {predictor.n_rounds} rounds, last visit "
        f"{predictor.window[1].replace('T', ' ')} UTC: {out}"
    )
    screen.item(f"next: recrawl predict --model {shlex.quote(out)}{_beside(past.history)}")


def _check(model: str, past: HistoryOptions, json: bool) -> None:
    """Say in one line whether a model is due to be trained again."""
    from recrawl.models.ageing import check_age
    from recrawl.models.saved import check_fits, load

    predictor = load(model)
    opened = past.open()
    check_fits(predictor, opened.timeline.pages, model)
    age = check_age(predictor, opened, note)
    if json:
        print_json(
            {
                "model": model,
                "due": age.is_due,
                "why": age.sentence,
                "rounds_since": age.n_rounds,
                "before": age.before,
                "since": age.since,
            }
        )
    else:
        console().print(age.sentence, markup=False, highlight=False, soft_wrap=True)
    if age.is_due:
        raise typer.Exit(1)


def show_scores(predictor: Predictor) -> None:
    """How right the model was one round earlier, beside the simple baselines."""
    from recrawl.cli.screen import Screen

    header = (
        f"new {predictor.recipe.noun}",
        "Spearman",
        "average-count",
        "previous-count",
        "area",
        "expected",
        "found",
        "pages",
    )
    rows = []
    for links, scores in predictor.scores.items():
        if scores:
            cells = (_cell(scores[name]) for name in ("spearman", "spearman_average", "spearman_previous", "area"))
            rows.append([links, *cells, *(f"{scores[name]:,.0f}" for name in ("expected", "found", "n_pages"))])
    screen = Screen()
    if rows:
        screen.heading("the same model one round earlier")
        screen.columns(header, rows)
    else:
        screen.line("too few rounds to see how right the model would have been one round earlier")


def _beside(history: str) -> str:
    """The option for a history that is not the default one."""
    return "" if history == HISTORY else f" --history {shlex.quote(history)}"


def outdone(predictor: Predictor) -> list[str]:
    """Where a simple baseline ranked the pages better; ties among pages without new links contribute to that."""
    sentences = []
    for links, scores in predictor.scores.items():
        simple = {name: scores.get(f"spearman_{name}", float("nan")) for name in ("average", "previous")}
        best = max(simple, key=lambda name: (simple[name] == simple[name], simple[name]))
        if scores and simple[best] > scores["spearman"] + CLEARLY:
            sentences.append(
                f"one round earlier {best}-count ranked {links} {predictor.recipe.noun} better ({simple[best]:.3f}, not "
                f"{scores['spearman']:.3f}); --learner {best}-count would learn just that"
            )
    return sentences


def _cell(value: float) -> str:
    """Three digits, or a dash where there is no number."""
    return "-" if value != value else f"{value:.3f}"
