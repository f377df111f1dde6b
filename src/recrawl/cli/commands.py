"""All commands in one application. One file per command; heavy imports happen inside them."""

from __future__ import annotations

import typer

from recrawl.cli import (
    archive,
    compact,
    crawl,
    demo,
    evaluate,
    experiments,
    explain,
    export,
    importing,
    info,
    plan,
    predict,
    relevance,
    repair,
    replay,
    score,
    seeds,
    show,
    stats,
    synth,
    train,
    tune,
    watch,
)
from recrawl.cli.tidy import TidyGroup, tidy

app = typer.Typer(
    name="recrawl",
    cls=TidyGroup,
    help="Which known pages should a crawler fetch next? Learns from past visits where new links and changes appear.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (
    demo,
    importing,
    archive,
    info,
    show,
    stats,
    train,
    predict,
    evaluate,
    replay,
    tune,
    experiments,
    plan,
    explain,
    score,
    crawl,
    watch,
    seeds,
    relevance,
    synth,
    export,
    compact,
    repair,
):
    module.register(app)
tidy(app)


def _version(asked: bool) -> None:
    if asked:
        from recrawl.core.version import __version__

        typer.echo(f"recrawl {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_version, is_eager=True),
) -> None:
    pass
