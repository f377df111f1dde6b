"""A report is one list of parts: its HTML page and its tables on the terminal are both made from that list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from recrawl.report.page import Section
from recrawl.report.tables import Table

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class ReportPart(Generic[Result]):
    """One part of a report: what it says, draws and lists of a result.

    To add a table to a report, add a part to the report's `PARTS`:

    >>> part = ReportPart(title="Pages", tables=lambda n: [Table(("pages",), [[n]])])
    >>> [table.title for table in terminal_tables([part], 7)]
    ['Pages']
    """

    title: str
    name: str = ""  # of the rows it shows, where a result has rows by name
    text: Callable[[Result], str] = lambda result: ""
    figures: Callable[[Result], Sequence[Any]] = lambda result: ()
    tables: Callable[[Result], Sequence[Table]] = lambda result: ()
    missing: Callable[[Result], str] = lambda result: ""  # why there is nothing to show; empty where there is something
    on_terminal: bool = True  # whether the terminal shows its tables, too


def page_sections(parts: Iterable[ReportPart[Result]], result: Result) -> list[Section]:
    """The parts as sections of a page; a part without anything to show says why."""
    return [_section(part, result) for part in parts]


def _section(part: ReportPart[Result], result: Result) -> Section:
    if reason := part.missing(result):
        return Section(part.title, reason)
    tables = [table for table in part.tables(result) if table.rows or table.note]
    return Section(part.title, part.text(result), [*part.figures(result), *tables])


def terminal_tables(parts: Iterable[ReportPart[Result]], result: Result) -> list[Table]:
    """The tables of the parts for a terminal; a table without a title of its own takes the part's."""
    return [table for part in parts if part.on_terminal for table in _tables(part, result)]


def _tables(part: ReportPart[Result], result: Result) -> list[Table]:
    if reason := part.missing(result):
        return [Table((), (), title=part.title, note=reason)]
    return [
        replace(table, title=table.title or part.title) for table in part.tables(result) if table.rows or table.note
    ]
