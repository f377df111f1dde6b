"""Other tools' records, read as visits. The format of an input is detected from its content, rarely from its name.

Every format is one row of `ALL`; the command line, its help and the error messages follow from it. Plug-ins add to it.
"""

from __future__ import annotations

from recrawl.sources.ache import Ache
from recrawl.sources.base import Context, Cut, Source
from recrawl.sources.cdx import Cdx, Cdxj
from recrawl.sources.jsonl import JsonLines
from recrawl.sources.lbla import Lbla, LblaCrawls
from recrawl.sources.registry import detect, known, named
from recrawl.sources.table import Csv, Parquet
from recrawl.sources.timemap import TimeMap
from recrawl.sources.wacz import Wacz
from recrawl.sources.warc import Warc

__all__ = ["ALL", "Context", "Cut", "Source", "detect", "known", "named"]

#: In the order in which they are tried: the first that detects an input reads it.
ALL: tuple[Source, ...] = (
    Warc(), Wacz(), Parquet(), Cdx(), Cdxj(), TimeMap(), LblaCrawls(), Ache(), Lbla(), JsonLines(), Csv(),
)  # fmt: skip
