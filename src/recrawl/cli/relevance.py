"""``recrawl relevance``: learn which pages belong to the topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from recrawl.cli.common import (
    HISTORY,
    AsOfOption,
    HistoryOption,
    JsonOption,
    SeedOption,
    console,
    open_history,
    print_json,
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("relevance")(relevance)


def relevance(
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels", metavar="FILE", help="CSV or JSON lines with label (1, 0, yes, no) and url or text; - is stdin."
        ),
    ] = None,
    recorded: Annotated[
        bool,
        typer.Option(
            "--recorded", help="Learn from the URLs of pages whose visits have a relevance: above 0.5, or not."
        ),
    ] = False,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="Classifier file to write.")
    ] = "relevance.json",
    history: HistoryOption = HISTORY,
    as_of: AsOfOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Train a topic classifier from labelled URLs or texts, for --relevance of other commands and recrawl crawl --order."""
    if labels is None and not recorded:
        raise typer.BadParameter(
            "nothing to learn from: give --labels FILE, or --recorded for what visits have recorded"
        )
    from recrawl.models.relevance import train

    examples = [] if labels is None else list(_examples(labels))
    if recorded:
        from recrawl.models.link_relevance import recorded_examples

        examples += recorded_examples(open_history(history, as_of))
    texts, truth = [text for text, _ in examples], [label for _, label in examples]
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
