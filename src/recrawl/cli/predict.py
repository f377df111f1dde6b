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
        str, typer.Option("--model", "-m", metavar="FILE", help="The model that recrawl train made.")
    ] = MODEL,
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    links: Annotated[
        str, typer.Option("--by", help="Sort by new links of this kind: all, internal or external.")
    ] = "all",
    top: Annotated[int, typer.Option("--top", min=1, help="How many pages to show.")] = 20,
    explain: Annotated[
        str | None, typer.Option("--explain", metavar="URL", help="Why one page has its prediction.")
    ] = None,
    url: Annotated[
        list[str] | None, typer.Option("--url", metavar="URL", help="Also a page never fetched; repeat it.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write every page as JSON lines, also .gz or .zst; - for stdout."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """What the next round will show on every known page: how many new links, with what probability, and why.

    Pages seen once, or never with success, are predicted from their related pages, else from their site, else from all pages.
    Of pages that are gone little is expected: as much as their chance to come back allows.
    """
    from recrawl.models.predictor import predict as run
    from recrawl.models.records import records
    from recrawl.models.saved import check_fits, load
    from recrawl.web.urls import canonical

    predictor = load(model)
    opened = open_history(history, as_of)
    check_fits(predictor, opened.timeline.pages, model)
    asked = [canonical(one) for one in (url or []) + ([explain] if explain else [])]
    with steps("what was new in each round") as on_step:
        found = run(predictor, opened, asked, on_step, note)
    kind = links if links in found else next(iter(found))
    if links not in found and links != "all":
        raise typer.BadParameter(f"--by {links!r}: the model predicts {', '.join(found)}")
    if explain:
        _explain(predictor, found, asked[-1], json)
        return
    if out:
        with written(out) as stream:
            for row in records(predictor, found, kind):
                stream.write(_line(row))
        if out != "-":
            console().print(f"every page with its prediction: {out}", markup=False)
        return
    if json:
        for row in records(predictor, found, kind):
            print_json(row)
        return
    _table(predictor, found, kind, top)


def _line(row: dict[str, Any]) -> bytes:
    import orjson

    return orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)


def _table(predictor: Predictor, found: Mapping[Any, Prediction], kind: str, top: int) -> None:
    from rich.table import Table

    from recrawl.models.pages import last_visit
    from recrawl.models.reasons import number
    from recrawl.models.records import records

    table = Table("page", *(f"{name}" for name in found), "any", "80%", "why", pad_edge=False)
    for column in range(1, len(found) + 3):
        table.columns[column].justify = "right"
    for row in records(predictor, found, kind, top):
        low, high = row[f"interval_{kind}"]
        counts = [number(row[f"expected_new_{name}"]) for name in found]
        table.add_row(
            row["url"], *counts, f"{row[f'probability_{kind}']:.0%}", f"{low}-{high}", "; ".join(row["reasons"][:2])
        )
    screen = console()
    when = last_visit(found[kind].panel)[:16].replace("T", " ")
    table.title, table.title_justify = f"new links expected in the round after that of {when} UTC", "left"
    screen.print(table)
    import numpy as np

    sums = ", ".join(f"{np.sum(told.expected):,.0f} {name}" for name, told in found.items())
    screen.print(
        f"{len(found[kind].expected):,} pages, {sums} new links expected in all; all of them: --out FILE", markup=False
    )


def _explain(predictor: Predictor, found: Mapping[Any, Prediction], url: str, json: bool) -> None:
    """One page with all that is said of it."""
    import numpy as np

    from recrawl.models.around import BASES
    from recrawl.models.reasons import number, reasons
    from recrawl.web.urls import page_id

    first = next(iter(found.values()))
    page = int(np.searchsorted(first.panel.page, page_id(url)))
    told: dict[str, Any] = {"url": url}
    for name, prediction in found.items():
        rank = int((prediction.expected > prediction.expected[page]).sum()) + 1
        told[name] = {
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
        print_json(told)
        return
    screen = console()
    screen.print(url, markup=False, style="bold")
    for name in found:
        one = told[name]
        low, high = one["interval"]
        screen.print(
            f"{name} links: {number(one['expected'])} expected, {one['probability']:.0%} likely to have any, "
            f"80% between {low} and {high}; rank {one['rank']:,} of {one['of']:,}; from {one['basis']}",
            markup=False,
        )
        for reason in one["reasons"][:3]:
            screen.print(f"  {number(reason['effect'], '+'):>8}  {reason['words']}", markup=False)
