"""Buckets of a history: each holds all pages of some sites, so that one can be planned without the others.

The bucket of a page follows from its URL alone. Where a history is laid out in buckets (`recrawl.history.layout`), the name of a
data file says which bucket its rows belong to; files that came later hold rows of any.
"""

from __future__ import annotations

import os
import re

import numpy as np
import pyarrow as pa

from recrawl.core.arrays import Ints
from recrawl.core.hashing import hash64
from recrawl.errors import BadOption
from recrawl.web.hosts import hosts_of
from recrawl.web.urls import site

MOST = 65_536  #: buckets
_RANGE = 1 << 64  # hashes are read as unsigned numbers here
_LAID_OUT = re.compile(r"bucket-(\d{5})-of-(\d{5})-")


def bucket_of(url: pa.Array | pa.ChunkedArray, n: int) -> Ints:
    """The bucket of each canonical URL, of `n` buckets: the hash of its site's name, as an unsigned number, modulo `n`.

    >>> bucket_of(pa.array(["https://e.org/", "http://news.e.org:8080/a", "https://f.org/"]), 8)
    array([6, 6, 0])
    """
    checked(n)
    if isinstance(url, pa.ChunkedArray):
        return np.concatenate([bucket_of(chunk, n) for chunk in url.chunks] or [np.zeros(0, np.int64)])
    host, names = hosts_of(url)
    of_host = np.array([hash64(site(name)) % _RANGE % n for name in names], np.int64)
    return of_host[host]


def checked(n: int) -> int:
    """A number of buckets, if it can be one."""
    if not 1 <= n <= MOST:
        raise BadOption(f"a history can have 1 to {MOST:,} buckets, not {n:,}")
    return n


def file_prefix(bucket: int, n: int) -> str:
    """How the name of a file begins that holds rows of one bucket only.

    >>> file_prefix(12, 64)
    'bucket-00012-of-00064'
    """
    return f"bucket-{bucket:05}-of-{n:05}"


def bucket_in(file: str) -> tuple[int, int] | None:
    """The bucket that a file holds and the number of buckets, as its name says; None: it may hold rows of any.

    >>> bucket_in("h/visits/bucket-00012-of-00064-x.parquet"), bucket_in("h/visits/part-00000-x.parquet")
    ((12, 64), None)
    """
    found = _LAID_OUT.match(os.path.basename(file))
    return (int(found[1]), int(found[2])) if found else None


def layout_of(files: list[str]) -> int | None:
    """The number of buckets that a table is laid out in; None: it is not. Files that came later do not count."""
    found = {laid_out[1] for laid_out in map(bucket_in, files) if laid_out is not None}
    return max(found, default=None)
