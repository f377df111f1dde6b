"""The buckets of pages by their ids: from the URLs of a history, each looked up once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from recrawl.core.arrays import Ints
from recrawl.core.ids import IdFilter
from recrawl.history.buckets import bucket_in, bucket_of
from recrawl.history.keys import distinct
from recrawl.history.row_groups import RowGroup, n_rows_of, side_by_side

NOWHERE = -1  #: the bucket of a page whose URL is in none of the files
AT_ONCE = 4_000_000  #: pages that are looked up together


class PageBuckets:
    """The bucket of each page, of `n`; it never changes, so each page is looked up once.

    `urls`: the row groups of the table `urls` that are looked at, as they are when new pages are asked for.
    """

    def __init__(self, n: int, urls: Callable[[], list[RowGroup]]) -> None:
        self.n = n
        self._urls = urls
        self._known: tuple[Ints, Ints] = np.zeros(0, np.int64), np.zeros(0, np.int64)  # pages, ascending; buckets

    def of(self, pages: Ints) -> Ints:
        """The bucket of each of some pages; `NOWHERE` where no URL is found."""
        known, bucket = self._known
        asked = distinct(pages)
        new = np.setdiff1d(asked, known, assume_unique=True)
        if len(new):
            found = self._looked_up(new)
            order = np.argsort(known := np.append(known, new))
            known, bucket = self._known = known[order], np.append(bucket, found)[order]
        of_pages: Ints = bucket[np.searchsorted(known, pages)]
        return of_pages

    def _looked_up(self, pages: Ints) -> Ints:
        groups = self._urls()
        some = [pages[first : first + AT_ONCE] for first in range(0, len(pages), AT_ONCE)]
        return np.concatenate([buckets_of(each, groups, self.n) for each in some])


def buckets_of(pages: Ints, groups: list[RowGroup], n: int) -> Ints:
    """The bucket of each of some pages (ascending): by the name of the file that has its URL, else by the URL."""
    wanted, bucket = IdFilter(pages), np.full(len(pages), NOWHERE, np.int64)

    def look(group: RowGroup) -> tuple[Ints, Ints]:
        span = group.span("id")
        if span and np.searchsorted(pages, span[0]) == np.searchsorted(pages, span[1], "right"):
            return pages[:0], pages[:0]
        rows, which = wanted.among(group.read(["id"])["id"].to_numpy())
        laid_out = bucket_in(group.file)
        if laid_out is not None and laid_out[1] == n:
            return which, np.full(len(which), laid_out[0], np.int64)
        return which, bucket_of(group.read(["url"])["url"].take(pa.array(rows)), n) if len(rows) else which

    for which, found in side_by_side(look, groups, n_rows_of(groups)):
        bucket[which] = found
    return bucket
