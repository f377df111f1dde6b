"""The table of Dang et al. (2022), "Look back, look around": one row per page, its ten weekly crawls side by side in columns.

``<name>`` is the last crawl, ``<name>-1`` to ``<name>-8`` the crawls before it. The links themselves were not published, only how
many there were and how many were new since the crawl before. Placeholders replace them: as many as were counted, as many of them
new as were counted, so that everything built on "new since the previous visit" gives the authors' numbers. "Never before on the
page" and "anywhere" cannot be known from this table; with placeholders they equal "new since the previous visit".
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import BinaryIO

from recrawl.errors import BadRecord, BadUrl
from recrawl.sources.base import Context, Source
from recrawl.sources.streams import text_lines
from recrawl.sources.table import csv_rows
from recrawl.web.urls import canonical, origin, page_id
from recrawl.web.visit import Visit

#: When the ten crawls were made (the authors' code), oldest first.
CRAWLS = tuple(
    datetime(2020, month, day, tzinfo=UTC)
    for month, day in ((7, 13), (7, 21), (7, 28), (8, 7), (8, 11), (8, 18), (8, 27), (9, 1), (9, 7), (9, 14))
)
DIMENSIONS = 192
MAX_LINKS = 1_000_000  #: of a page; a larger count is an error
_COUNTS = ("numInternalOutLinks", "numExternalOutLinks", "diffInternalOutLinks", "diffExternalOutLinks")


class Lbla(Source):
    """The published table of Dang et al. (2022)."""

    name = "lbla"

    def detects(self, head: bytes, filename: str = "") -> bool:
        """Whether a file begins with the header of the table."""
        line = head.partition(b"\n")[0]
        return b"numInternalOutLinks" in line and b"url" in line

    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        """For each page its last crawl, and each earlier one that has columns."""
        csv.field_size_limit(16 << 20)
        lines = text_lines(stream)
        header = next(lines, "")
        delimiter = max(",;\t", key=header.count)
        names = next(csv.reader([header], delimiter=delimiter), [])
        lags = [
            lag for lag in range(len(CRAWLS) - 1, -1, -1) if not lag or any(name.endswith(f"-{lag}") for name in names)
        ]
        for cells in csv_rows(csv.reader(lines, delimiter=delimiter)):
            if isinstance(cells, BadRecord):
                yield cells
            elif len(cells) != len(names):
                yield BadRecord("wrong number of CSV cells", f"{len(cells)} instead of {len(names)}")
            else:
                yield from _page(dict(zip(names, cells, strict=True)), lags)


def _page(row: dict[str, str], lags: list[int]) -> Iterator[Visit | BadRecord]:
    """The visits of one page, oldest first; a bad number spoils the whole row, since its crawls build on each other."""
    if not row.get("url"):
        yield BadRecord("no url", "")
    elif row.get("isValid", "1").strip().lower() in ("0", "false"):
        yield BadRecord("page marked invalid", row["url"][:200])
    else:
        try:
            yield from list(_visits(row, lags))
        except BadRecord as error:
            yield error
        except BadUrl as error:
            yield BadRecord("not a URL", str(error)[:200])
        except (ValueError, OverflowError) as error:
            yield BadRecord("not a number", str(error)[:120])


def _visits(row: dict[str, str], lags: list[int]) -> Iterator[Visit]:
    url = canonical(row["url"], keep_tracking=True)
    internal = Placeholders(f"{origin(url)}/recrawl-stand-in/{page_id(url):x}-")
    external = Placeholders(f"https://stand-in.invalid/{page_id(url):x}-")
    for lag in lags:

        def cell(name: str, lag: int = lag) -> str:
            return row.get(f"{name}-{lag}" if lag else name, "").strip()

        counts = [_count(name, cell(name)) for name in _COUNTS]
        if lag == lags[0] and lag + 1 < len(CRAWLS) and None not in counts:
            # Nothing but what was new since then is known of the crawl before the first with columns.
            before = [*internal.next(counts[0] - counts[2], 0), *external.next(counts[1] - counts[3], 0)]  # type: ignore[operator]
            yield Visit(url=url, at=CRAWLS[-2 - lag], links=before)
        links = None
        if None not in counts:
            links = [*internal.next(counts[0], counts[2]), *external.next(counts[1], counts[3])]  # type: ignore[arg-type]
        yield Visit(
            url=url,
            at=CRAWLS[-1 - lag],
            links=links,
            content_bytes=_whole(cell("contentLength")),
            text_bytes=_whole(cell("textSize")),
            text_quality=float(cell("textQuality")) if cell("textQuality") else None,
            vector=[float(cell(f"SV{i}")) for i in range(DIMENSIONS)] if cell("SV0") else None,
        )


class Placeholders:
    """Made-up links of one page, as many as were counted, and as many of them new.

    >>> links = Placeholders("https://e.org/")
    >>> links.next(2, 2), links.next(2, 1)
    (['https://e.org/0', 'https://e.org/1'], ['https://e.org/1', 'https://e.org/2'])
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._made = 0
        self._shown: list[int] = []

    def next(self, n: int, n_new: int) -> list[str]:
        """The links after one more crawl: `n` in all, `n_new` of them not there before."""
        kept = max(n - n_new, 0)
        kept = min(kept, len(self._shown)) if self._made else 0
        n_made = max(n, 0) - kept
        self._shown = self._shown[len(self._shown) - kept :] + list(range(self._made, self._made + n_made))
        self._made += n_made
        return [f"{self.prefix}{number}" for number in self._shown]


def _count(name: str, cell: str) -> int | None:
    number = _whole(cell)
    if number is not None and not 0 <= number <= MAX_LINKS:
        raise BadRecord("number of links out of range", f"{name} is {cell[:40]}")
    return number


def _whole(cell: str) -> int | None:
    return int(float(cell)) if cell else None
