"""Running a command: its errors become sentences, and its end an exit code."""

from __future__ import annotations

import gc
import signal
import sys

from recrawl.cli import STOPPED
from recrawl.cli.output import discard_output, is_reader_gone, make_output_visible
from recrawl.errors import BadOption, RecrawlError

ENDED = 143  #: exit code after SIGTERM, as shells have it


class Ended(SystemExit):
    """Raised by SIGTERM, as `KeyboardInterrupt` is by Ctrl-C."""


def run() -> None:
    """Run the command that the arguments name, and leave with its exit code.

    If the reader of our output (head, less) has seen enough, that is a good end, wherever in the program it is noticed.
    """
    gc.set_threshold(100_000)  # while modules are loaded there is nothing to collect
    make_output_visible()
    end_in_order()
    code: object = 0
    try:
        code = _exit_code()
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
    finally:
        gc.freeze()  # a last look at everything that a large plan holds would take a quarter of a second
    sys.exit(code)  # type: ignore[arg-type]


def end_in_order() -> None:
    """Let SIGTERM end the program as an error would: what is half written is removed. A crawl has a way of its own to end."""

    def end(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # `timeout` sends two: the second must not disturb the tidying up
        raise Ended(ENDED)

    signal.signal(signal.SIGTERM, end)


def code_after(interrupt: KeyboardInterrupt | Ended) -> int:
    """The exit code after Ctrl-C or SIGTERM."""
    return ENDED if isinstance(interrupt, Ended) else STOPPED


def _exit_code() -> object:
    """Run the command; raises `BrokenPipeError` if no one reads what it prints."""
    from recrawl.cli.commands import app

    try:
        app()
    except (RecrawlError, OSError, SystemExit) as error:
        if is_reader_gone(error):
            raise BrokenPipeError from None
        if isinstance(error, Ended):
            print("stopped", file=sys.stderr)
        if isinstance(error, SystemExit):
            return error.code
        message = error if isinstance(error, RecrawlError) else error.strerror or error
        print(f"error: {message}", file=sys.stderr)
        return 2 if isinstance(error, BadOption) else 1
    return 0
