"""``recrawl predict``: which pages will have new links next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.common import (
    HISTORY,
    AsOfOption,
    HistoryOption,
    JsonOption,
    check_writable,
    console,
    note,
    open_history,
    print_json,
    steps,
    written,
)
from recrawl.cli.train import MODEL

if TYPE_CHECKING:
    from recrawl.models.predictor import Prediction, Predictor


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict")(predict)


def predict(
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="FILE", help="Model file that recrawl train wrote.")
    ] = MODEL,
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    links: Annotated[
        str, typer.Option("--by", help="Sort by new links of this kind: all, internal or external.")
    ] = "all",
    top: Annotated[int, typer.Option("--top", min=1, help="Number of pages to show.")] = 20,
    explain: Annotated[
        str | None, typer.Option("--explain", metavar="URL", help="Explain the prediction of one page.")
    ] = None,
    url: Annotated[
        list[str] | None,
        typer.Option("--url", metavar="URL", help="Also predict a page that was never fetched. Repeatable."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write every page as JSON lines; .gz and .zst compress, - is stdout."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Predict the next round for every known page: how many new links, with what probability, and why.

    Pages seen at most once are predicted from their related pages, else from their site, else from all pages. Pages that are
    gone count as far as they are likely to come back.
    """
    from recrawl.models.predictor import predict as run
    from recrawl.models.records import records
    from recrawl.models.saved import check_fits, load
    from recrawl.web.urls import canonical

    check_writable(out)
    predictor = load(model)
    opened = open_history(history, as_of)
    check_fits(predictor, opened.timeline.pages, model)
    wanted = [canonical(text) for text in (url or []) + ([explain] if explain else [])]
    with steps("finding what was new in each round") as on_step:
        predictions = run(predictor, opened, wanted, on_step, note)
    _note_age(predictor, next(iter(predictions.values())), model)
    kind = links if links in predictions else next(iter(predictions))
    if links not in predictions and links != "all":
        raise typer.BadParameter(f"--by {links!r}: the model predicts {', '.join(predictions)}")
    if explain:
        _explain(predictor, predictions, wanted[-1], json)
        return
    if out:
        with written(out) as stream:
            for row in records(predictor, predictions, kind):
                stream.write(_line(row))
        if out != "-":
            console().print(f"every page with its prediction: {out}", markup=False)
        return
    if json:
        for row in records(predictor, predictions, kind):
            print_json(row)
        return
    _show(predictor, predictions, kind, top)


def _note_age(predictor: Predictor, prediction: Prediction, model: str) -> None:
    """Name the way to check a model that has not been trained for a while."""
    import shlex

    from recrawl.models.ageing import WORTH_CHECKING, rounds_since

    n_rounds = rounds_since(prediction.panel, predictor.window[1])
    if n_rounds >= WORTH_CHECKING:
        note(
            f"the model was trained {n_rounds} rounds ago or more; whether it is due to be trained again says: "
            f"recrawl train --check {shlex.quote(model)}"
        )


def _line(row: dict[str, Any]) -> bytes:
    import orjson

    return orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)


def _show(predictor: Predictor, predictions: Mapping[Any, Prediction], kind: str, top: int) -> None:
    import numpy as np

    from recrawl.cli.screen import Screen
    from recrawl.core.words import number
    from recrawl.models.pages import last_visit
    from recrawl.models.records import records

    screen = Screen()
    when = last_visit(predictions[kind].panel)[:16].replace("T", " ")
    noun = predictor.recipe.noun
    screen.heading(f"new {noun} expected in the round after that of {when} UTC")
    for row in records(predictor, predictions, kind, top):
        low, high = row[f"interval_{kind}"]
        counts = ", ".join(f"{number(row[f'expected_new_{name}'])} {name}" for name in predictions)
        likely = f"{row[f'probability_{kind}']:.0%} likely to have any; 80% interval {low} to {high}"
        screen.item(row["url"], f"{counts} new {noun} expected; {likely}", f"why: {'; '.join(row['reasons'][:2])}")
    screen.gap()
    sums = ", ".join(f"{np.sum(prediction.expected):,.0f} {name}" for name, prediction in predictions.items())
    screen.line(
        f"{len(predictions[kind].expected):,} pages, {sums} new {noun} expected in all; --out FILE writes every page"
    )


def _explain(predictor: Predictor, predictions: Mapping[Any, Prediction], url: str, json: bool) -> None:
    """One page with its predictions and their reasons."""
    import numpy as np

    from recrawl.cli.screen import Screen
    from recrawl.core.words import number
    from recrawl.models.around import BASES
    from recrawl.models.reasons import reasons
    from recrawl.web.urls import page_id

    first = next(iter(predictions.values()))
    page = int(np.searchsorted(first.panel.page, page_id(url)))
    explained: dict[str, Any] = {"url": url}
    for name, prediction in predictions.items():
        rank = int((prediction.expected > prediction.expected[page]).sum()) + 1
        explained[name] = {
            "expected": round(float(prediction.expected[page]), 4),
            "probability": round(float(prediction.probability[page]), 4),
            "interval": [int(prediction.low[page]), int(prediction.high[page])],
            "rank": rank,
            "of": len(prediction.expected),
            "basis": BASES[prediction.basis[page]],
            "reasons": [
                {"words": reason.words, "effect": round(reason.effect, 4)}
                for reason in reasons(predictor, prediction, np.array([page]), 7)[0]
            ],
        }
    if json:
        print_json(explained)
        return
    screen, noun = Screen(), predictor.recipe.noun
    screen.item(url)
    for name in predictions:
        of_kind = explained[name]
        low, high = of_kind["interval"]
        screen.line(
            f"{name} {noun}: {number(of_kind['expected'])} expected, {of_kind['probability']:.0%} likely to have any, "
            f"80% interval {low} to {high}; rank {of_kind['rank']:,} of {of_kind['of']:,}; from {of_kind['basis']}"
        )
        for reason in of_kind["reasons"][:3]:
            screen.line(f"{number(reason['effect'], '+'):>8}  {reason['words']}", indent="  ")
