"""A table that an HTML page and a terminal can both show."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

Cell: TypeAlias = str | int | float | None
Choose: TypeAlias = Callable[[Iterable[float]], float]  #: max or min: which of the values is best


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of texts and numbers; numbers are aligned to the right, None is shown as a dash.

    A rich console prints it as it is, in the width that the console has:

    >>> from rich.console import Console
    >>> Console(width=40).print(Table(("policy", "coverage"), [["bandit", 0.714]], {"coverage": ".1%"}))
    policy  coverage
    ────────────────
    bandit     71.4%
    """

    header: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    formats: Mapping[str, str] = field(default_factory=dict)  # column → format of its numbers, such as ".1%"
    bold: Collection[tuple[int, int]] = ()  # cells to emphasise, by row and column
    title: str = ""
    note: str = ""  # what a reader has to know; for an empty table, why it is empty
    rules: Collection[int] = ()  # rows that are followed by a line

    def texts(self) -> list[list[str]]:
        """The rows as people read them."""
        formats = [self.formats.get(name, "") for name in self.header]
        return [[cell_text(cell, spec) for cell, spec in zip(row, formats, strict=True)] for row in self.rows]

    def is_text(self) -> list[bool]:
        """For each column, whether it holds texts; columns of numbers alone are aligned to the right."""
        return [any(isinstance(row[i], str) for row in self.rows) for i in range(len(self.header))]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[RenderableType]:
        """How rich prints the table."""
        from recrawl.report.terminal import rendered

        return rendered(self, options.max_width)


def cell_text(cell: Cell, spec: str = "") -> str:
    """A cell as people read it, by `spec` if it is a number.

    >>> [cell_text(cell) for cell in (None, 384323, 2.71828, "a", float("nan"), 12345.6, 0.00004)]
    ['–', '384,323', '2.72', 'a', '–', '12,346', '4e-05']
    >>> cell_text(0.714, ".1%")
    '71.4%'
    """
    if cell is None or cell != cell:
        return "–"
    if isinstance(cell, str):
        return cell
    if not spec:
        spec = ",.0f" if isinstance(cell, int) or abs(cell) >= 1000 else ".3g"
    return format(cell, spec)


def is_known(value: Any) -> bool:
    """Whether a value is a finite number.

    >>> [is_known(value) for value in (None, float("nan"), float("-inf"), 0)]
    [False, False, False, True]
    """
    return value is not None and math.isfinite(value)


def with_best(table: Table, best: Mapping[str, Choose], rows: Iterable[int] | None = None) -> Table:
    """The table with the best value of each given column in bold, and whatever reads the same.

    Only `rows` compete, by default all. A column with fewer than two known values has no best.

    >>> sorted(with_best(Table(("a",), [[0.51], [0.52], [None]], {"a": ".1f"}), {"a": max}).bold)
    [(0, 0), (1, 0)]
    """
    competing = range(len(table.rows)) if rows is None else list(rows)
    texts, bold = table.texts(), set(table.bold)
    for name, choose in best.items():
        column = table.header.index(name)
        values: dict[int, Any] = {i: table.rows[i][column] for i in competing if is_known(table.rows[i][column])}
        if len(values) < 2:
            continue
        top = choose(values.values())
        top_text = next(texts[i][column] for i, value in values.items() if value == top)
        bold |= {(i, column) for i in values if texts[i][column] == top_text}
    return replace(table, bold=bold)
