"""The command line: options → one library call → print. One file per command; heavy imports happen inside them."""

from __future__ import annotations

import gc
import sys

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
from recrawl.errors import BadOption, RecrawlError

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


def main() -> None:
    """Run the command line; exit 0 for success, 1 for a failed job, 2 for wrong usage."""
    gc.set_threshold(100_000)  # while modules are loaded there is nothing to collect
    try:
        app()
    except RecrawlError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, BadOption) else 1)
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            print(f"error: {error.strerror or error}", file=sys.stderr)
            sys.exit(1)
        # The reader of our output (head, less) has seen enough.
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    finally:
        gc.freeze()  # a last look at everything that a large plan holds would take a quarter of a second
