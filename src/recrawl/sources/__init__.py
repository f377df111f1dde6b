"""Other people's records, read as visits. The kind is told from the content, never from the name.

Every kind is one row of `ALL`; the command line, its help and the error texts follow from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from recrawl.errors import BadSource
from recrawl.sources import cdx, framing, jsonl, lbla, table, timemap, wacz, warc

__all__ = ["ALL", "Shape", "Source", "detect", "named"]


class Shape(Enum):
    """How an input can be cut into pieces that are read apart."""

    LINES = "lines"  # every line is a record
    RECORDS = "records"  # WARC: records begin at positions that can be found
    WHOLE = "whole"  # read in one go


@dataclass(frozen=True)
class Source:
    """One kind of input."""

    name: str
    shape: Shape
    looks_like: Callable[[bytes], bool]  # given the first bytes, without compression
    read: Callable[..., object]


ALL = (
    Source("warc", Shape.RECORDS, framing.looks_like, warc.read),
    Source("wacz", Shape.WHOLE, lambda head: head.startswith(b"PK\x03\x04"), wacz.read),
    Source("parquet", Shape.WHOLE, lambda head: head.startswith(b"PAR1"), table.read_parquet),
    Source("cdx", Shape.LINES, cdx.looks_like_cdx, cdx.read_cdx),
    Source("cdxj", Shape.LINES, cdx.looks_like_cdxj, cdx.read_cdxj),
    Source("timemap", Shape.WHOLE, timemap.looks_like, timemap.read),
    Source("jsonl", Shape.LINES, jsonl.looks_like, jsonl.read),
    Source("lbla", Shape.WHOLE, lbla.looks_like, lbla.read),
    Source("csv", Shape.WHOLE, table.looks_like_csv, table.read_csv),
)

#: Beginnings of files that are known and not read, with the way out.
REFUSED = (
    (b"filedesc://", "an ARC file; convert it first, e.g. with: warcio recompress FILE.arc.gz FILE.warc.gz"),
    (b"%pdf", "a PDF file"),
    (b"<!doctype", "an HTML page; put it into a JSON line as {\"url\": …, \"at\": …, \"html\": …}"),
    (b"<html", "an HTML page; put it into a JSON line as {\"url\": …, \"at\": …, \"html\": …}"),
)  # fmt: skip


def named(name: str) -> Source:
    """The source of that name.

    >>> named("warcs")
    Traceback (most recent call last):
    recrawl.errors.BadSource: No format named 'warcs'. Did you mean 'warc'? Known: warc, wacz, parquet, cdx, cdxj, ...
    """
    from difflib import get_close_matches

    for source in ALL:
        if source.name == name:
            return source
    close = get_close_matches(name, [source.name for source in ALL], 1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise BadSource(f"No format named {name!r}.{hint} Known: {', '.join(source.name for source in ALL)}")


def detect(head: bytes, label: str) -> Source:
    """The kind of an input, from its first bytes without compression."""
    if not head.strip():
        raise BadSource(f"{label} is empty")
    for source in ALL:
        if source.looks_like(head):
            return source
    for beginning, what in REFUSED:
        if head.lstrip().lower().startswith(beginning):
            raise BadSource(f"{label} is {what}")
    if b"\tzipnum\t" in head or (head.count(b"\t") >= 3 and b")/" in head[:512]):
        raise BadSource(f"{label} is the summary of a ZipNum index; import the .cdx.gz files it points at")
    known = ", ".join(source.name for source in ALL)
    raise BadSource(
        f"{label} is of no known kind (it begins with {head[:24]!r}); known are {known}; --format overrides"
    )
