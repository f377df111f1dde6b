"""A history laid out in buckets: every data file of visits, and of what they show, holds rows of one bucket only.

The name of a file says which (`recrawl.history.buckets`), so the entry of the log that adds a file says it, too. A link set or a
text is copied into the bucket of every page that shows it. Words (`terms`) are not laid out: all pages share them.

Visits come last, and only those are laid out that were there when it was looked at what they use: what was appended since then
stays in files without a bucket, and so does the rest if the work is killed. Beside the rows that are in hand it holds two numbers
for every page, and for every link set and text: less than imports do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable

from recrawl.core.arrays import Ints
from recrawl.core.places import Place
from recrawl.history.bucket_sort import BucketSort, batches_of
from recrawl.history.buckets import bucket_in, bucket_of, file_prefix
from recrawl.history.commits import ROW_GROUP
from recrawl.history.delta import data_files, dataset, n_bytes_of, read_file
from recrawl.history.folder_check import check_urls
from recrawl.history.keys import distinct, unique_rows
from recrawl.history.object_commits import durable_table
from recrawl.history.opened import open_table
from recrawl.history.page_buckets import NOWHERE, PageBuckets
from recrawl.history.row_groups import row_groups
from recrawl.history.schema import BY_PAGE, KEY, SHOWN, TABLES
from recrawl.history.uses import Copies, Uses

#: For some rows of a table, and the bucket that their file holds (None: any): which of them go where, some more than once.
Places = Callable[[pa.Table, int | None], tuple[Ints, Ints]]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Lays out the tables of a history in `n` buckets, with about so many rows and bytes in memory at once."""

    folder: Place
    n: int
    rows_at_once: int
    bytes_at_once: int

    def lay_out_urls(self) -> None:
        """Lay out the table of URLs, those of links among them: each is in the bucket of its own site."""
        table = open_table(self.folder / "urls")
        self._rewrite("urls", table, lambda rows, _: (np.arange(len(rows)), bucket_of(rows["url"], self.n)))

    def lay_out_visits(self, names: Collection[str]) -> None:
        """Lay out the visits, and before them those tables of these names that visits show or sources state."""
        visits = open_table(self.folder / "visits")
        uses = self._uses(data_files(visits, self.folder / "visits"), {SHOWN[name] for name in names if name in SHOWN})
        for name in TABLES:
            if name in names and name in SHOWN:
                of_name = uses[SHOWN[name]]
                self._rewrite(name, open_table(self.folder / name), partial(_where_used, Copies(of_name)), of_name)
            elif name in names and name in BY_PAGE and name != "visits":
                self._rewrite(name, open_table(self.folder / name), self._by_page)
        self._rewrite("visits", visits, self._by_page)

    @cached_property
    def _buckets(self) -> PageBuckets:
        urls = self.folder / "urls"
        return PageBuckets(self.n, lambda: row_groups(data_files(open_table(urls), urls)))

    def _by_page(self, rows: pa.Table, _: int | None) -> tuple[Ints, Ints]:
        return np.arange(len(rows)), self._of_pages(rows["page"].to_numpy())

    def _of_pages(self, pages: Ints) -> Ints:
        bucket = self._buckets.of(pages)
        check_urls(self.folder, int((bucket == NOWHERE).sum()), len(pages))
        return bucket

    def _uses(self, files: list[str], columns: Collection[str]) -> dict[str, Uses]:
        """Which buckets use a link set or a text, by the column of visits that points at it."""
        pages = [distinct(read_file(file, columns=["page"])["page"].to_numpy()) for file in files]
        self._of_pages(distinct(np.concatenate([*pages, np.zeros(0, np.int64)])))  # all at once
        del pages
        uses = {column: Uses(self.n) for column in columns}
        for rows, _ in self._slices("visits", files, ["page", *columns]):
            bucket = self._of_pages(rows["page"].to_numpy())
            for column, of_column in uses.items():
                is_known = np.asarray(rows[column].is_valid())
                of_column.add(rows[column].drop_null().to_numpy(), bucket[is_known])
        return uses

    def _rewrite(self, name: str, table: DeltaTable, places: Places, copies: Uses | None = None) -> None:
        files = data_files(table, self.folder / name)
        if files:
            durable = durable_table(self.folder, name)
            durable.rewrite(self._in_buckets(name, files, places, copies), table)

    def _in_buckets(
        self, name: str, files: list[str], places: Places, copies: Uses | None
    ) -> Iterator[tuple[str, list[pa.RecordBatch]]]:
        """The rows of a table, sorted and without repeated rows, and how the names of their files begin."""
        n_rows = dataset(files, TABLES[name]).count_rows()
        bytes_per_row = max(n_bytes_of(files) / max(n_rows, 1), 1.0)
        at_once = max(1, min(self.rows_at_once, int(self.bytes_at_once / bytes_per_row)))
        sort = BucketSort(
            n=self.n,
            n_rows=max(n_rows, 0 if copies is None else len(copies)),
            at_once=at_once,
            key=KEY.get(name, "page"),
            scratch=durable_table(self.folder, name).scratch,
        )
        for bucket, rows in sort.sorted(_placed(self._slices(name, files), places)):
            yield file_prefix(bucket, self.n), batches_of(rows.take(unique_rows(name, rows)))

    def _slices(
        self, name: str, files: list[str], columns: list[str] | None = None
    ) -> Iterator[tuple[pa.Table, int | None]]:
        """The rows of some files, a few at a time, and the bucket that they come from."""
        for file in files:
            laid_out = bucket_in(file)
            own = laid_out[0] if laid_out is not None and laid_out[1] == self.n else None
            rows = dataset([file], TABLES[name])
            for batch in rows.to_batches(columns=columns, batch_size=ROW_GROUP, batch_readahead=2):
                if batch.num_rows:
                    yield pa.Table.from_batches([batch]), own


def _where_used(copies: Copies, rows: pa.Table, own: int | None) -> tuple[Ints, Ints]:
    return copies.of(rows["digest"].to_numpy(), own)


def _placed(slices: Iterable[tuple[pa.Table, int | None]], places: Places) -> Iterator[tuple[pa.Table, Ints]]:
    for rows, own in slices:
        which, bucket = places(rows, own)
        if len(which):
            yield rows.take(pa.array(which)), bucket
