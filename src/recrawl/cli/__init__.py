"""The command line: options → one library call → print.

This module imports next to nothing, so that `main` can answer Ctrl-C while the commands (`recrawl.cli.commands`) are still loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recrawl.cli.commands import app as app

STOPPED = 130  #: exit code after Ctrl-C, as shells have it


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module 'recrawl.cli' has no attribute {name!r}")
    from recrawl.cli.commands import app

    return app


def main() -> None:
    """Run the command line; exit 0 for success, 1 for a failed job, 2 for wrong usage, 130 after Ctrl-C."""
    try:
        from recrawl.cli.running import run

        run()
    except KeyboardInterrupt:
        stopped()


def stopped() -> None:
    """End after Ctrl-C: one line, and the exit code that shells expect."""
    import signal
    import sys

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second Ctrl-C ends the program while it waits for its threads
    print("stopped", file=sys.stderr)
    sys.exit(STOPPED)
