"""Tables on a terminal: no heading is broken inside a word, and a table that is too wide is continued below.

Rich squeezes every column of a table that does not fit, down to one letter per line. Here the columns of numbers keep their
width, the columns of texts share what is left, and the columns that still do not fit follow in a second table, beside the
first column again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

from recrawl.report.tables import Table

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

GAPS = (2, 1)  #: spaces between two columns; the second where the table would not fit with the first
NARROWEST = 14  #: characters to which a column of texts may be squeezed; it is then wrapped


def rendered(table: Table, width: int) -> Iterator[RenderableType]:
    """Title, rows and note of a table in a terminal of this width."""
    from rich.text import Text

    if table.title:
        yield Text(f"\n{table.title}", "bold")
    if table.rows:
        head, texts = _headings(table), table.texts()
        layout = _layout(table, head, texts, width)
        for columns, widths in _stacked(layout):
            yield _grid(table, head, texts, columns, widths, layout.gap)
    if table.note:
        yield Text(table.note, "dim" if table.rows else "")


def _headings(table: Table) -> list[str]:
    """The names of the columns, in lines that are no longer than the cells or the longest word."""
    texts = table.texts()
    widths = [max(len(row[i]) for row in texts) for i in range(len(table.header))]
    return [
        "\n".join(wrap(name, max(width, *map(len, name.split())), break_long_words=False, break_on_hyphens=False))
        if name
        else ""
        for name, width in zip(table.header, widths, strict=True)
    ]


@dataclass(frozen=True)
class _Layout:
    """The room that each column would like to have, the least it needs, the gap between two, and what there is."""

    natural: Sequence[int]
    least: Sequence[int]
    gap: int
    width: int

    def total(self, sizes: Sequence[int], columns: Sequence[int]) -> int:
        """The width of these columns with the gaps between them."""
        return sum(sizes[i] for i in columns) + self.gap * (len(columns) - 1)


def _layout(table: Table, head: Sequence[str], texts: Sequence[Sequence[str]], width: int) -> _Layout:
    natural = [
        max(*(len(line) for line in name.split("\n")), *(len(row[i]) for row in texts)) for i, name in enumerate(head)
    ]
    words = [max(map(len, name.split()), default=0) for name in head]
    least = [
        min(size, max(word, NARROWEST)) if text else size
        for size, word, text in zip(natural, words, table.is_text(), strict=True)
    ]
    names = max((len(word) for row in texts for word in row[0].split()), default=0)
    least[0] = max(
        least[0], min(names, natural[0], width // 3)
    )  # the names of the rows stay whole, if a third of the width is enough
    fitting = (gap for gap in GAPS if sum(least) + gap * (len(head) - 1) <= width)
    return _Layout(natural, least, next(fitting, GAPS[0]), width)


def _stacked(layout: _Layout) -> Iterator[tuple[list[int], list[int]]]:
    """The columns that fit beside each other and their widths, as often as needed to show all of them."""
    left = list(range(1, len(layout.natural)))
    while True:
        columns = [0]
        while left and layout.total(layout.least, [*columns, left[0]]) <= layout.width:
            columns.append(left.pop(0))
        if len(columns) == 1 and left:
            columns.append(left.pop(0))  # wider than the terminal: rich has to cut it
        yield columns, _widths(layout, columns)
        if not left:
            return


def _widths(layout: _Layout, columns: Sequence[int]) -> list[int]:
    """As wide as the cells are; where that is too much, the widest column of texts gives way, letter by letter."""
    widths = list(layout.natural)
    while layout.total(widths, columns) > layout.width:
        widest = max((i for i in columns if widths[i] > layout.least[i]), key=lambda i: widths[i], default=None)
        if widest is None:
            break
        widths[widest] -= 1
    return [widths[i] for i in columns]


def _grid(
    table: Table,
    head: Sequence[str],
    texts: Sequence[Sequence[str]],
    columns: Sequence[int],
    widths: Sequence[int],
    gap: int,
) -> RenderableType:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    grid = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, gap - 1, 0, 0), show_edge=False)
    is_text = table.is_text()
    for i, size in zip(columns, widths, strict=True):
        grid.add_column(Text(head[i]), justify="left" if is_text[i] else "right", overflow="fold", width=size)
    for number, row in enumerate(texts):
        # As Text: a URL may hold what rich would take for markup.
        cells = (Text(row[i], "bold" if (number, i) in table.bold else "") for i in columns)
        grid.add_row(*cells, end_section=number in table.rules)
    return grid


@dataclass(frozen=True)
class Bullets:
    """Sentences as a list that rich can print; lines that are continued are indented."""

    sentences: Iterable[str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """One line or more per sentence."""
        from rich.text import Text

        for sentence in self.sentences:
            lines = wrap(sentence, max(options.max_width - 2, 10), break_long_words=False, break_on_hyphens=False)
            yield Text("• " + "\n  ".join(lines))
