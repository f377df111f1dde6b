"""Rows sorted by bucket without more of them in memory than fit: the others wait in files, some buckets in each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from recrawl.core.arrays import Ints
from recrawl.history.commits import ROW_GROUP

MOST_FILES = 256  #: that are written at once
_BUCKET = "bucket of a row"
_HOW = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True, kw_only=True)
class BucketSort:
    """How rows are sorted by bucket: of `n` buckets, with about `at_once` rows in memory; `key`: a column of hashes."""

    n: int
    n_rows: int  # about
    at_once: int
    key: str
    scratch: Callable[[], AbstractContextManager[Path]] = field(repr=False)  # a folder for files that wait

    def sorted(self, slices: Iterable[tuple[pa.Table, Ints]]) -> Iterator[tuple[int, pa.Table]]:
        """The rows of some slices, which come with the bucket of each row: bucket by bucket, in any order within.

        A bucket of more rows than fit comes in several parts, in the order of the key.
        """
        n_groups = min(self.n, -(-self.n_rows // self.at_once), MOST_FILES)
        if n_groups < 2:
            rows = [_with_bucket(*each) for each in slices]
            yield from _cut(rows)
            return
        with self.scratch() as folder:
            counts = self._spill(slices, folder, n_groups)
            group = np.arange(self.n) * n_groups // self.n
            for number, (low, high) in enumerate(pairwise(np.searchsorted(group, range(n_groups + 1)).tolist())):
                if counts[low:high].any():
                    yield from self._of_group(folder / str(number), low, counts[low:high])
                    (folder / str(number)).unlink()

    def _spill(self, slices: Iterable[tuple[pa.Table, Ints]], folder: Path, n_groups: int) -> Ints:
        """Write all rows to files, one for each group of buckets; how many rows each bucket has."""
        counts, writers = np.zeros(self.n, np.int64), dict[int, pa.ipc.RecordBatchStreamWriter]()
        with ExitStack() as stack:
            for rows, bucket in slices:
                counts += np.bincount(bucket, minlength=self.n)
                group = bucket * n_groups // self.n
                whole = _with_bucket(rows, bucket)
                for each in np.unique(group).tolist():
                    if each not in writers:
                        file = stack.enter_context(pa.OSFile(str(folder / str(each)), "wb"))
                        writers[each] = stack.enter_context(pa.ipc.new_stream(file, whole.schema, options=_HOW))
                    writers[each].write_table(whole.take(pa.array(np.flatnonzero(group == each))))
        return counts

    def _of_group(self, file: Path, first: int, counts: Ints) -> Iterator[tuple[int, pa.Table]]:
        """The rows in a file: as many buckets at a time as fit, or part of one."""
        for low, high in _ranges(counts, self.at_once):
            n_parts = -(-int(counts[low:high].sum()) // self.at_once) if high == low + 1 else 1
            for part in range(n_parts):
                yield from _cut(list(self._read(file, first + low, first + high, part, n_parts)))

    def _read(self, file: Path, low: int, high: int, part: int, n_parts: int) -> Iterator[pa.Table]:
        with pa.memory_map(str(file)) as source, pa.ipc.open_stream(source) as stream:
            for batch in stream:
                bucket = batch[_BUCKET].to_numpy()
                wanted = (bucket >= low) & (bucket < high)
                if n_parts > 1:
                    wanted &= ((batch[self.key].to_numpy() >> 32) + (1 << 31)) * n_parts >> 32 == part
                if wanted.any():
                    yield pa.Table.from_batches([batch.filter(pa.array(wanted))])


def _with_bucket(rows: pa.Table, bucket: Ints) -> pa.Table:
    return rows.append_column(_BUCKET, pa.array(bucket))


def _cut(parts: list[pa.Table]) -> Iterator[tuple[int, pa.Table]]:
    """Each bucket by itself."""
    if not parts:
        return
    rows = pa.concat_tables(parts)
    parts.clear()
    bucket = rows[_BUCKET].to_numpy()
    order = np.argsort(bucket, kind="stable")
    bucket, rows = bucket[order], rows.drop_columns(_BUCKET).take(pa.array(order))
    starts = np.flatnonzero(np.diff(bucket, prepend=-1))
    for low, high in pairwise([*starts.tolist(), len(bucket)]):
        yield int(bucket[low]), rows.slice(low, high - low)


def _ranges(counts: Ints, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of consecutive buckets that have together no more rows than fit, unless it is one bucket.

    >>> list(_ranges(np.array([2, 3, 9, 1, 1]), 5))
    [(0, 2), (2, 3), (3, 5)]
    """
    low = n = 0
    for at, more in enumerate(counts.tolist()):
        if n and n + more > most:
            yield low, at
            low, n = at, 0
        n += more
    if n:
        yield low, len(counts)


def batches_of(rows: pa.Table) -> list[pa.RecordBatch]:
    """Rows as they are written."""
    batches: list[pa.RecordBatch] = rows.combine_chunks().to_batches(max_chunksize=ROW_GROUP)
    return batches
