"""Text for a terminal of any width: nothing is cut off, long lines are wrapped at words, and URLs are kept whole."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence

from recrawl.core.visible import one_line, visible

PIPE_WIDTH = 80  #: where the output is not a terminal and COLUMNS is not set


def width() -> int:
    """Columns to write in: COLUMNS if set, else the terminal's, else 80."""
    return max(20, shutil.get_terminal_size((PIPE_WIDTH, 24)).columns)


class Screen:
    """Lines for people on standard output."""

    def __init__(self) -> None:
        self.width = width()

    def line(self, text: str, indent: str = "", style: str | None = None) -> None:
        """One paragraph, wrapped at words; a word that is longer than the line, such as a URL, stays whole."""
        wrapped = textwrap.wrap(
            visible(text),
            self.width,
            initial_indent=indent,
            subsequent_indent=indent + "  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        self._print("\n".join(wrapped or [""]), style)

    def heading(self, text: str) -> None:
        """A line that begins a part."""
        self.line(text, style="bold")

    def item(self, title: str, *facts: str) -> None:
        """A title, whole on a line of its own, with facts below it."""
        self._print(one_line(title), "bold")
        for fact in facts:
            self.line(fact, indent="   ")

    def gap(self) -> None:
        """An empty line."""
        print()

    def columns(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table: the first column to the left, the others to the right. Stacked where it does not fit."""
        header, rows = [*map(one_line, header)], [[*map(one_line, row)] for row in rows]
        widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
        if sum(widths) + 2 * (len(widths) - 1) > self.width:
            for row in rows:
                self.item(row[0], *(f"{name}: {value}" for name, value in zip(header[1:], row[1:], strict=True)))
            return
        for i, row in enumerate([header, *rows]):
            cells = [row[0].ljust(widths[0]), *(cell.rjust(n) for cell, n in zip(row[1:], widths[1:], strict=True))]
            self._print("  ".join(cells).rstrip(), "bold" if i == 0 else None)

    def _print(self, text: str, style: str | None) -> None:
        if style and sys.stdout.isatty():
            from recrawl.cli.terminal import Terminal

            # Markup off: an IPv6 host in brackets is not a style.
            Terminal().print(text, style=style, markup=False, soft_wrap=True)
        else:
            print(text)
