"""Options and output that the commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Protocol

import typer

from recrawl.core.files import compressed_file
from recrawl.core.visible import visible

if TYPE_CHECKING:
    from rich.console import Console

HistoryOption = Annotated[
    str,
    typer.Option(
        "--history",
        envvar="RECRAWL_HISTORY",
        metavar="DIR",
        help="History: a directory, or the URL of an object store (s3://BUCKET/PREFIX).",
    ),
]
EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="Engine whose workers do the work: sail, spark, spark:MASTER, or sc://HOST:PORT. Default: this process.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
SeedOption = Annotated[int, typer.Option("--seed", help="Random seed.")]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of", metavar="TIME", help="Use only what was known at this time (ISO 8601 with zone, or epoch)."
    ),
]


def checked_period(text: str) -> str:
    """A period; anything else is wrong usage."""
    from recrawl.core.times import parse_period

    try:
        parse_period(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return text


def checked_url(text: str) -> str:
    """A canonical URL; anything else is wrong usage."""
    from recrawl.errors import BadUrl
    from recrawl.web.urls import canonical

    try:
        return canonical(text)
    except BadUrl as error:
        raise typer.BadParameter(str(error)) from None


def optional_period(text: str | None) -> str | None:
    """A period, or none."""
    return text and checked_period(text)


def checked_rounds(text: str) -> str:
    """``crawl``, a period, or times."""
    from recrawl.world.every import parse_rounds

    try:
        parse_rounds(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return text


EveryOption = Annotated[
    str,
    typer.Option(
        "--every",
        metavar="PERIOD",
        help="How visits are grouped into rounds: 'crawl', a period such as 1h or 7d, or the times at which rounds end.",
        callback=checked_rounds,
    ),
]


MinShareOption = Annotated[
    float,
    typer.Option("--min-share", min=0.0, max=1.0, help="Keep only pages seen in at least this share of the rounds."),
]
WithContentOption = Annotated[
    bool,
    typer.Option(
        "--with-content",
        help="Leave out pages without content: a visit that found an empty page (0 bytes) does not count.",
    ),
]
HISTORY = "./history"


def chosen(option: str, text: str, known: tuple[Any, ...]) -> tuple[Any, ...]:
    """The names given with an option, separated by commas; an unknown one is wrong usage."""
    from recrawl.core.suggest import unknown

    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names or (text,):
        if name not in known:
            raise typer.BadParameter(unknown("value", name, known), param_hint=option)
    return names


def open_history(folder: str, as_of: str | None = None) -> Any:
    """The history that a command reads, as it was known at `as_of`."""
    from recrawl.errors import BadRecord
    from recrawl.web.visit import parse_at

    try:
        moment = parse_at(as_of) if as_of else None
    except BadRecord as error:
        raise typer.BadParameter(
            f"{error}; write a time with its zone, such as 2025-03-01T00:00:00Z", param_hint="--as-of"
        ) from None
    from recrawl.history import History  # takes a second to load: what is wrong with the options is said before

    history = History.open(folder)
    return history.as_of(moment) if moment else history


def print_json(value: Any) -> None:
    """One JSON object on a line of its own."""
    import orjson

    options = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS
    sys.stdout.buffer.write(orjson.dumps(value, option=options))
    sys.stdout.buffer.flush()


def console() -> Console:
    """Where tables go: as wide as the terminal, or as COLUMNS says."""
    from recrawl.cli.terminal import Terminal

    return Terminal()


def stderr_console() -> Console:
    """Where spinners and progress bars go."""
    from recrawl.cli.terminal import Terminal

    return Terminal(stderr=True)


def check_writable(out: str | None, option: str = "--out") -> None:
    """Refuse a file that cannot be written before anything slow begins."""
    if out is None or out == "-":
        return
    path = Path(out)
    if path.is_dir():
        raise typer.BadParameter(f"{out} is a directory; name a file", param_hint=option)
    if not path.parent.is_dir():
        raise typer.BadParameter(f"there is no directory {path.parent}; create it first", param_hint=option)
    if path.exists() and not path.is_file():
        return  # a device or a pipe
    try:
        with TemporaryFile(
            dir=os.path.dirname(os.path.realpath(path))
        ):  # files are written beside their final place first
            pass
    except OSError as error:
        raise typer.BadParameter(f"{out} cannot be written: {error.strerror or error}", param_hint=option) from None


def note(message: str) -> None:
    """A line for people, beside the output."""
    print(
        visible(message), file=sys.stderr
    )  # here, too: while a progress bar is shown, rich makes colours of control characters


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner on a terminal while something takes its time."""
    if not sys.stderr.isatty():
        yield
        return
    with stderr_console().status(what):
        yield


@contextmanager
def steps(first: str) -> Iterator[Callable[[str], None]]:
    """A spinner with the present step and the time so far, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda what: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, transient=True, console=stderr_console()) as progress:
        task = progress.add_task(first)
        yield lambda what: progress.update(task, description=what)


@contextmanager
def written(out: str) -> Iterator[BinaryIO]:
    """A file to write to, compressed as its name says, that appears under its name only when it is complete."""
    if out == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with compressed_file(out) as stream:
        yield stream


class Advance(Protocol):
    """Moves a progress bar."""

    def __call__(self, amount: float, total: float | None = None) -> None:
        """Add `amount`; `total` is how much there will be, once that is known."""


@contextmanager
def progress(what: str, total: float | None = None, *, in_bytes: bool = False) -> Iterator[Advance]:
    """A progress bar on standard error, if that is a terminal; else nothing."""
    if not sys.stderr.isatty():
        yield lambda amount, total=None: None
        return
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    amount_column = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        amount_column,
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=stderr_console()) as bar:
        task = bar.add_task(what, total=total)
        yield lambda amount, total=None: bar.update(task, advance=amount, total=total)
