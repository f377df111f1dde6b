"""``recrawl relevance``: learn which pages belong to the topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from recrawl.cli.common import JsonOption, SeedOption, console, print_json


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("relevance")(relevance)


def relevance(
    labels: Annotated[
        str,
        typer.Option(
            "--labels", metavar="FILE", help="CSV or JSON lines with label (1, 0, yes, no) and url or text; - is stdin."
        ),
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="Classifier file to write.")
    ] = "relevance.json",
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Train a topic classifier from labelled URLs or texts, for recrawl replay --relevance and recrawl crawl --order."""
    from recrawl.models.relevance import train

    texts, truth = [], []
    for text, label in _examples(labels):
        texts.append(text)
        truth.append(label)
    model = train(texts, truth, seed)
    model.save(out)
    if json:
        counts = {"n_positive": model.n_positive, "n_negative": model.n_negative}
        print_json({"file": out, **counts, "balanced_accuracy": model.accuracy})
        return
    console().print(
        f"{model.n_positive:,} relevant and {model.n_negative:,} irrelevant examples, balanced accuracy {model.accuracy:.2f} "
        f"by cross-validation: {out}",
        markup=False,
    )


def _examples(path: str) -> Iterator[tuple[str, bool]]:
    """Text or URL, and label, of every usable row; the number of others is reported."""
    from recrawl.cli.common import note
    from recrawl.sources.labels import read_labels

    skipped = 0
    for example in read_labels(path):
        if example is None:
            skipped += 1
        else:
            yield example
    if skipped:
        note(f"{skipped:,} rows without a label (1, 0, yes, no) or without url and text were skipped")
