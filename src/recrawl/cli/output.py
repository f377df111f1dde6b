"""Standard output and error as people read them: what is printed has passed here, whichever part of the program prints it.

Text comes from the web, so control characters are made visible before they reach a terminal (`recrawl.core.visible`). A terminal
that does not know a letter gets a likeness of it. What programs read (JSON, CSV, lists
of URLs) is written as bytes and stays exact.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from recrawl.core.visible import PLAIN_LETTERS, visible


class VisibleText:
    """A stream of text on which every control character is visible; in all else the stream that it stands before."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.is_broken = False  # whether the reader of a pipe has gone

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text for people."""
        with self._noticing():
            self._stream.write(visible(text))
        return len(text)

    def flush(self) -> None:
        """Hand on what was written."""
        with self._noticing():
            self._stream.flush()

    def writelines(self, lines: Iterable[str]) -> None:
        """Write some lines."""
        for line in lines:
            self.write(line)

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            self.is_broken = True
            raise

    @property
    def rich_proxied_file(self) -> Any:
        """Where rich writes: it makes colours of control characters. `Terminal` makes those in texts visible itself."""
        return self._stream if self._stream.isatty() or os.environ.get("FORCE_COLOR") else self


def make_output_visible() -> None:
    """Let standard output and error pass here, and never fail at a letter that the terminal does not know."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None or isinstance(stream, VisibleText):
            continue
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=PLAIN_LETTERS)
        setattr(sys, name, cast(TextIO, VisibleText(stream)))


def is_reader_gone(error: BaseException) -> bool:
    """Whether an error came from writing to a pipe whose reader (head, less) has seen enough."""
    chain: BaseException | None = error
    while chain is not None and not isinstance(chain, BrokenPipeError):
        chain = chain.__cause__ or chain.__context__
    noticed = any(getattr(stream, "is_broken", False) for stream in (sys.stdout, sys.stderr))
    return chain is not None and (noticed or any(map(_is_closed_pipe, (1, 2))))


def discard_output() -> None:
    """Send what is still to be printed nowhere, so that it is no error when the program ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for fd in (1, 2):
        if _is_closed_pipe(fd):
            os.dup2(nowhere, fd)


def _is_closed_pipe(fd: int) -> bool:
    if not hasattr(select, "poll"):  # Windows
        return True
    poll = select.poll()
    poll.register(fd, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
