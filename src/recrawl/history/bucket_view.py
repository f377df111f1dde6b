"""A history restricted to one bucket: the pages of some sites, with all that their visits showed.

It reads the files of its own bucket, and those that are not laid out in the same buckets, of which it leaves out the rows of other
buckets' pages. Files of other buckets stay unread, but for two things that are looked for in them when they are missing: link sets
and texts that new visits share with pages of other buckets, and the URLs of links to pages there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from recrawl.core.arrays import Ints
from recrawl.core.ids import IdFilter
from recrawl.errors import BadOption, HistoryError
from recrawl.history.buckets import bucket_in, checked
from recrawl.history.delta import read_file
from recrawl.history.keys import distinct
from recrawl.history.page_buckets import PageBuckets
from recrawl.history.row_groups import RowGroup, n_rows_of, row_groups, side_by_side
from recrawl.history.schema import BY_PAGE, SHOWN, Batch
from recrawl.history.store import Appended, Store


class BucketStore(Store):
    """The tables of a history as far as they are about the pages of one bucket; only to be read."""

    def __init__(self, whole: Store, bucket: int, n: int) -> None:
        if isinstance(whole, BucketStore):
            raise HistoryError(f"{whole.part} is a bucket already; take buckets of the whole history")
        if not 0 <= bucket < checked(n):
            raise BadOption(f"there is no bucket {bucket:,} of {n:,}: they are numbered from 0 to {n - 1:,}")
        self.whole, self.bucket, self.n = whole, bucket, n
        self.folder = whole.folder
        self.part = f"bucket {bucket} of {n}"
        self._buckets = PageBuckets(n, lambda: row_groups(self.files("urls")))
        self._pages_in: dict[str, Ints] = {}  # by file
        self._strays: dict[str, tuple[object, list[str]]] = {}  # by table: for which files, and which these are

    def files(self, name: str) -> list[str]:
        """The files of a table that hold, or may hold, rows of the bucket."""
        visits = self.whole.files("visits") if name in SHOWN else []  # first: what they show is written before them
        files = self.whole.files(name)
        own = [file for file in files if self._is_open(file) or self._is_own(file)]
        return own + self._stray_files(name, own, files, [file for file in visits if self._is_open(file)])

    def layout(self) -> int | None:
        """The number of buckets that the whole history is laid out in."""
        return self.whole.layout()

    def make(self) -> None:
        """Refuse: see `append`."""
        raise self._read_only()

    def make_if_missing(self) -> None:
        """Make the tables of the whole history if they are not there: what is kept beside them belongs to it."""
        self.whole.make_if_missing()

    def append(self, batch: Batch) -> Appended:
        """Refuse: visits are appended to the whole history, which knows what it holds."""
        raise self._read_only()

    def compact(self, buckets: int | None = None) -> None:
        """Refuse: see `append`."""
        raise self._read_only()

    def look_up(self, ids: Ints) -> pa.Array:
        """The URLs of pages and links; those of links to other buckets are looked up in the whole history."""
        found = super().look_up(ids)
        is_missing = found.is_null()
        if not (missing := np.flatnonzero(np.asarray(is_missing))).size:
            return found
        return pc.replace_with_mask(found, is_missing, self.whole.look_up(ids[missing]))

    def _read_only(self) -> HistoryError:
        return HistoryError(f"{self.part} of {self.folder} is only to be read; write to the whole history")

    def _is_there(self, name: str) -> bool:
        return self.whole._is_there(name)

    def _is_own(self, file: str) -> bool:
        return bucket_in(file) == (self.bucket, self.n)

    def _is_open(self, file: str) -> bool:
        """Whether a file may hold rows of any bucket."""
        laid_out = bucket_in(file)
        return laid_out is None or laid_out[1] != self.n

    # -- rows of other buckets in files that are not laid out ----------------------------------------------------------

    def _dataset(self, name: str, files: list[str]) -> ds.Dataset:
        rows = super()._dataset(name, files)
        open_files = [file for file in files if self._is_open(file)] if name in BY_PAGE else []
        if not open_files:
            return rows
        own, others = self._split(open_files)
        if len(open_files) == len(files):
            return rows.filter(pc.is_in(ds.field("page"), pa.array(own)))
        return rows.filter(~pc.is_in(ds.field("page"), pa.array(others))) if len(others) else rows

    def _row_groups(self, name: str, files: list[str]) -> list[RowGroup]:
        groups = super()._row_groups(name, files)
        open_files = [file for file in files if self._is_open(file)] if name in BY_PAGE else []
        if not open_files:
            return groups
        own = IdFilter(self._split(open_files)[0])
        return [
            OwnRows(group.file, group.number, group.about, own) if self._is_open(group.file) else group
            for group in groups
        ]

    def _split(self, files: list[str]) -> tuple[Ints, Ints]:
        """The pages in some files that belong to the bucket, and the others; both ascending."""
        for file in files:
            if file not in self._pages_in:
                self._pages_in[file] = distinct(read_file(file, columns=["page"])["page"].to_numpy())
        pages = distinct(np.concatenate([self._pages_in[file] for file in files]))
        # The URL of none of its own can be only in files of other buckets.
        is_own = self._buckets.of(pages) == self.bucket
        return pages[is_own], pages[~is_own]

    # -- what new visits share with pages of other buckets -------------------------------------------------------------

    def _stray_files(self, name: str, own: list[str], files: list[str], visits: list[str]) -> list[str]:
        """The files of other buckets that hold link sets or texts which new visits to pages of this one point at.

        An import does not write again what is there already, in whichever bucket.
        """
        others = sorted(set(files) - set(own))
        if not others or not visits:
            return []
        of = (frozenset(files), frozenset(visits))
        known = self._strays.get(name)
        if known is None or known[0] != of:
            column = SHOWN[name]
            shown = self._dataset("visits", visits).to_table(columns=[column])[column].drop_null().to_numpy()
            missing = _not_in(distinct(shown), row_groups(own))[0]
            known = self._strays[name] = (of, _not_in(missing, row_groups(others))[1])
        return known[1]


@dataclass(frozen=True)
class OwnRows(RowGroup):
    """The rows of a row group whose pages are among some."""

    pages: IdFilter = field(compare=False)

    @cached_property
    def _rows(self) -> Ints:
        return self.pages.among(super().read(["page"])["page"].to_numpy())[0]

    @property
    def n_rows(self) -> int:
        """How many rows it has."""
        return len(self._rows)

    def span(self, column: str) -> tuple[int, int] | None:
        """The least and the greatest value of a column; None: there is none."""
        least, greatest = pc.min_max(self.read([column])[column]).as_py().values()
        return None if least is None else (least, greatest)

    def read(self, columns: Sequence[str]) -> pa.Table:
        """These columns of its rows."""
        return super().read(columns).take(pa.array(self._rows))


def _not_in(ids: Ints, groups: list[RowGroup]) -> tuple[Ints, list[str]]:
    """Those of some ids (ascending) that no row group has as a digest, and the files that have others of them."""
    if not len(ids):
        return ids, []
    wanted, is_left, files = IdFilter(ids), np.ones(len(ids), np.bool_), list[str]()

    def held(group: RowGroup) -> Ints:
        return wanted.among(group.read(["digest"])["digest"].to_numpy())[1]

    for group, which in zip(groups, side_by_side(held, groups, n_rows_of(groups)), strict=True):
        if is_left[which].any():
            is_left[which] = False
            files.append(group.file)
    return ids[is_left], list(dict.fromkeys(files))
