"""CSV that a spreadsheet can open safely: the one writer of it, and the way back.

Titles and notes come from the web. A spreadsheet runs a cell that begins with ``=``, ``+``, ``-`` or ``@`` as a formula, so such a
text gets a leading apostrophe, as OWASP ("CSV Injection") recommends. Numbers are numbers and stay as they are.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import pyarrow as pa

#: Beginnings that make a formula of a cell; the last four are full-width, which some spreadsheets take for the others.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
#: A text that begins so is protected. Its own apostrophes count: it must not look like a protected one when it is read back.
_BEGINS_A_FORMULA = f"^'*[{''.join(FORMULA).replace('-', '')}-]"


def protected(cell: Any) -> Any:
    """A cell that no spreadsheet runs.

    >>> protected("=1+1"), protected("'=1+1"), protected("https://e.org/"), protected(-1.5)
    ("'=1+1", "''=1+1", 'https://e.org/', -1.5)
    """
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip("'").startswith(FORMULA) else cell


def unprotected(cell: str) -> str:
    """The text that `protected` was given.

    >>> unprotected("'=1+1"), unprotected("''=1+1"), unprotected("'quoted'"), unprotected("-1.5")
    ('=1+1', "'=1+1", "'quoted'", '-1.5')
    """
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(FORMULA) else cell


def write_rows(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    r"""A header and rows of any values.

    >>> write_rows(["title", "change"], [["@home", -2]])
    b"title,change\n'@home,-2\n"
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(protected, names))
    writer.writerows([protected(cell) for cell in row] for row in rows)
    return out.getvalue().encode()


def write_tables(parts: Iterable[pa.Table], stream: BinaryIO) -> None:
    """One Arrow table in parts, with a header before the first."""
    from pyarrow import csv as arrow_csv

    for i, part in enumerate(parts):
        arrow_csv.write_csv(_protected_columns(part), stream, arrow_csv.WriteOptions(include_header=i == 0))


def read_rows(lines: Iterable[str], delimiter: str = ",") -> Iterator[list[str]]:
    """The rows of any CSV, ours included; raises ``csv.Error`` for a broken one, and can be asked for the next."""
    return _Rows(csv.reader(lines, delimiter=delimiter))


class _Rows(Iterator[list[str]]):
    """Not a generator, which would end at the first broken row."""

    def __init__(self, reader: Iterator[list[str]]) -> None:
        self._reader = reader

    def __next__(self) -> list[str]:
        return [unprotected(cell) for cell in next(self._reader)]


def _protected_columns(table: pa.Table) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    names = [protected(name) for name in table.column_names]
    for i, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            text = table.column(i).cast(kind)
            formula = pc.match_substring_regex(text, _BEGINS_A_FORMULA)
            marked = pc.binary_join_element_wise(pa.scalar("'", kind), text, pa.scalar("", kind))
            safe = pc.if_else(formula, marked, text)
            table = table.set_column(i, field.name, safe)
    return table.rename_columns(names)
