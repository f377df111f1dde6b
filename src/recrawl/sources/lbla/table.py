"""The table of Dang et al. (2022), "Look back, look around": one row per page, its ten weekly crawls side by side in columns.

Columns without a lag are of the crawl of 2020-09-07, those with ``-1`` to ``-8`` of the crawls before it. The two columns
``diff…OutLinks`` count the links that were new at the next crawl: without a lag at that of 2020-09-14, which is to be predicted.

The links themselves were not published. Stand-ins replace them, as many of them new at each crawl as were counted, so that
everything built on "new since the previous visit" gives the authors' numbers. "Never before on the page" and "anywhere" cannot be
known; with stand-ins they equal "new since the previous visit". Numbers of outlinks, inlinks and ranks are kept as given.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any, BinaryIO

from recrawl.errors import BadRecord, BadSource, BadUrl
from recrawl.sources.base import Context, Source
from recrawl.sources.json_objects import json_object
from recrawl.sources.lbla.numbers import NumberReader
from recrawl.sources.lbla.page import CRAWLS, PRESENT, SIDES, PageRow, lagged
from recrawl.sources.streams import text_lines
from recrawl.sources.table import csv_rows
from recrawl.web.visit import Visit

DIMENSIONS = 192
NEW = tuple(f"diff{side}OutLinks" for side in SIDES)
OUTLINKS = tuple(f"num{side}OutLinks" for side in SIDES)
#: Quantities with lags, and those of 2020-09-07 only.
LAGGED = (*NEW, "contentLength", "textSize", "textQuality", "numInternalInLinks", "numExternalInLinks", "trustRank")
PLAIN = ("pathDepth", "domainDepth", *OUTLINKS)
#: What recrawl works out by itself: rates, and averages over related pages and over the past.
_DERIVED = re.compile(r"(related|avg)_.*|changeRate|link(Internal|External)ChangeRate")
_USED = re.compile(rf"(url|isValid|semanticVector|SV\d+|{'|'.join(PLAIN)})|({'|'.join((*LAGGED, *OUTLINKS))})(-[1-8])?")
_LAGS = range(1, PRESENT + 1)
_VALID = frozenset({"true", "1", "1.0"})


class Lbla(Source):
    r"""The authors' table, as CSV or as JSON lines.

    >>> from io import BytesIO
    >>> table = b"url,numInternalOutLinks,diffInternalOutLinks,trustRank\nhttps://e.org/,4,2,high\n"
    >>> context = Context()
    >>> [(str(visit.at)[:10], len(visit.links)) for visit in Lbla().read(BytesIO(table), context)]
    [('2020-09-07', 4), ('2020-09-14', 6)]
    >>> dict(context.not_numbers)
    {'trustRank': 1}
    """

    name = "lbla"

    def detects(self, head: bytes, filename: str = "") -> bool:
        """Whether a file begins with the header of the table, or with a row of it as a JSON object."""
        line = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
        names = set(re.findall(r"\w+", line.decode("utf-8", "replace")))
        return "url" in names and "at" not in names and not names.isdisjoint({*NEW, *OUTLINKS})

    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        """For each page the crawls of which anything is known."""
        rows = _rows(stream)
        first = next(rows, None)
        while isinstance(first, BadRecord):
            yield first
            first = next(rows, None)
        if first is None:
            return
        if "url" not in first:
            raise BadSource(f"the table has no column url, but: {', '.join(list(first)[:20])}")
        columns = _Columns(tuple(first))
        context.notes += columns.notes()
        context.unknown_fields.update(columns.unknown)
        numbers = NumberReader(context.not_numbers)
        yield from columns.visits(first, numbers)
        for row in rows:
            yield from (row,) if isinstance(row, BadRecord) else columns.visits(row, numbers)


Row = Mapping[str, Any]


class _Columns:
    """Which columns a table has, and how its rows are read."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = frozenset(names)
        sides = {side for side in SIDES if self._has_any(f"diff{side}OutLinks")}
        self.no_columns = frozenset(SIDES) - sides if sides else frozenset[str]()
        self.n_vector = next(i for i in count() if f"SV{i}" not in self.names)

    @property
    def unknown(self) -> list[str]:
        """Columns that are not of this table."""
        return [name for name in self.names if name and not _USED.fullmatch(name) and not _DERIVED.fullmatch(name)]

    def visits(self, row: Row, numbers: NumberReader) -> Iterator[Visit | BadRecord]:
        """The visits of a row, oldest first."""
        url = row.get("url")
        if not isinstance(url, str) or not url.strip():
            yield BadRecord("no url", repr(url)[:80])
        elif "isValid" in self.names and str(row.get("isValid")).strip().lower() not in _VALID:
            yield BadRecord("page marked invalid", url[:200])
        else:
            try:
                yield from PageRow(row, numbers, self.no_columns, self.n_vector).visits()
            except BadUrl as error:
                yield BadRecord("not a URL", str(error)[:200])

    def notes(self) -> Iterator[str]:
        """What the table says, what it cannot say, and which columns are missing."""
        present, last = f"{CRAWLS[PRESENT]:%Y-%m-%d}", f"{CRAWLS[-1]:%Y-%m-%d}"
        yield (
            f"Table of Dang et al. (2022): columns without a lag are of the crawl of {present}, the new links without a lag of "
            f"{last}. It counts links but does not name them. Stand-ins replace them: the numbers of links that are new since the "
            "previous visit are those of the table; which links they are, and whether they are new to the page or to the whole "
            "collection, is not known"
        )
        yield from self._not_given(present, last)
        missing = [name for name in (*LAGGED, *PLAIN) if not self._has_any(name)]
        missing += [] if self.n_vector or "semanticVector" in self.names else [f"SV0 to SV{DIMENSIONS - 1}"]
        if missing:
            yield f"Columns that the table does not have: {', '.join(missing)}. What they would say is not known"
        for side in sorted(self.no_columns):
            yield f"No column diff{side}OutLinks: pages seem to have no new {side.lower()} links"
        if not any(map(self._has_any, NEW)):
            yield "No column of new links: nothing can be learnt about new links from this table"

    def _not_given(self, present: str, last: str) -> Iterator[str]:
        sides = [name for name in OUTLINKS if not any(lagged(name, lag) in self.names for lag in _LAGS)]
        earlier = f"the numbers of outlinks before {present}; " if sides else ""
        vector = f" The text vectors are of {present} and stand for every crawl." if self.n_vector else ""
        yield f"Not in the table, so not known: {earlier}anything but new links of {last}; PageRank.{vector}"
        derived = sum(bool(_DERIVED.fullmatch(name)) for name in self.names)
        if derived:
            columns = "column" if derived == 1 else "columns"
            yield f"Not read, since recrawl works them out itself: {derived} {columns} of change rates and averages"

    def _has_any(self, name: str) -> bool:
        return any(lagged(name, lag) in self.names for lag in (0, *_LAGS))


def _rows(stream: BinaryIO) -> Iterator[Row | BadRecord]:
    csv.field_size_limit(16 << 20)
    lines = text_lines(stream)
    header = next((line for line in lines if line.strip()), "")
    if header.lstrip().startswith("{"):
        yield from map(_json_row, filter(str.strip, chain([header], lines)))
        return
    delimiter = max(",;\t", key=header.count)
    names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter), [])]
    for cells in csv_rows(lines, delimiter):
        if isinstance(cells, BadRecord):
            yield cells
        elif cells and len(cells) != len(names):
            yield BadRecord("wrong number of CSV cells", f"{len(cells)} instead of {len(names)}")
        elif cells:
            yield dict(zip(names, cells, strict=True))


def _json_row(line: str) -> Row | BadRecord:
    try:
        return json_object(line)
    except BadRecord as error:
        return error
