"""Links that pages of several buckets show: a shuffle by link, through files that all workers see.

Every bucket writes its links in one file, a row group for each range of ids. A task per range reads that range of all buckets, and
writes what is known of links of several buckets, a row group for each bucket. So nobody holds the links of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from recrawl.core.arrays import Ints
from recrawl.core.places import Place, located, make_folder, place
from recrawl.engine.packing import packed, unpacked
from recrawl.world.schedule import Schedule

Columns = Mapping[str, NDArray[Any]]
_SHOWN = pa.schema(
    [("link", pa.int64()), ("shown_in", pa.int32()), ("first_at", pa.int64()), ("reread_in", pa.int32())]
)
_SHARED = pa.schema([*_SHOWN, ("is_contested", pa.bool_())])


def write_shown(folder: Place, bucket: int, n: int, columns: Columns) -> None:
    """The links that a bucket shows, in `n` ranges of ids."""
    order = np.argsort(columns["link"], kind="stable")
    link = columns["link"][order]
    bounds = np.linspace(-(2.0**63), 2.0**63, n + 1)[1:-1].astype(np.int64)
    start = np.concatenate([[0], np.searchsorted(link, bounds), [len(link)]])
    ranges = [order[low:high] for low, high in pairwise(start.tolist())]
    _write(folder / f"shown-{bucket:05}.parquet", _SHOWN, [{k: columns[k][r] for k in _SHOWN.names} for r in ranges])


def join_range(task: bytes) -> bytes:
    """Join one range of all buckets' links; returns for each part of the schedule whether it has contested links."""
    folder, number, n, schedule = unpacked(task)
    where = place(folder)
    shown = [_read(where / f"shown-{bucket:05}.parquet", number) for bucket in range(n)]
    shared, is_contested_in = joined_links(shown, schedule)
    _write(where / f"shared-{number:05}.parquet", _SHARED, shared)
    return packed(is_contested_in)


def read_shared(folder: Place, bucket: int, n: int) -> dict[str, NDArray[Any]]:
    """What is known of a bucket's links that other buckets show, too."""
    parts = [_read(folder / f"shared-{number:05}.parquet", bucket) for number in range(n)]
    return {name: np.concatenate([part[name] for part in parts]) for name in _SHARED.names}


def _write(file: Place, schema: pa.Schema, groups: Sequence[Columns]) -> None:
    make_folder(file.parent)
    system, path = located(file)
    with pq.ParquetWriter(path, schema, filesystem=system, compression="lz4", use_dictionary=False) as writer:
        for columns in groups:
            rows = pa.table({name: columns[name] for name in schema.names}, schema=schema)
            writer.write_table(rows, row_group_size=max(rows.num_rows, 1))


def _read(file: Place, group: int) -> dict[str, NDArray[Any]]:
    system, path = located(file)
    with pq.ParquetFile(path, filesystem=system) as opened:
        rows = opened.read_row_group(group)
    return {name: rows[name].to_numpy() for name in rows.column_names}


def joined_links(shown: Sequence[Columns], schedule: Schedule) -> tuple[list[Columns], Ints]:
    """For each bucket its links that others show as well: the first part and moment of all, and whether it is contested.

    And for each part of the schedule whether it has contested links: such as are new on pages of several buckets.
    """
    bucket = np.repeat(np.arange(len(shown)), [len(each["link"]) for each in shown])
    link, part, at, reread = (np.concatenate([each[name] for each in shown]) for name in _SHOWN.names)
    has_contested = np.zeros(len(schedule), np.int64)
    if not len(link):
        none = {"link": link, "shown_in": part, "first_at": at, "reread_in": reread}
        return [{**none, "is_contested": np.zeros(0, np.bool_)}] * len(shown), has_contested
    order = np.argsort(link, kind="stable")
    bucket, link, part, at, reread = bucket[order], link[order], part[order], at[order], reread[order]
    start = np.flatnonzero(np.append(True, link[1:] != link[:-1]))
    size = np.diff(np.append(start, len(link)))
    first, first_at = np.minimum.reduceat(part, start), np.minimum.reduceat(at, start)
    first_reread = np.minimum.reduceat(reread, start)
    is_first = part == np.repeat(first, size)
    # New on pages of several buckets in one part, unless all begins there or a page read in a new way shows it by then.
    is_contested = (np.add.reduceat(is_first.astype(np.int64), start) > 1) & (schedule.batch[first] > 0)
    is_contested &= first_reread > first
    has_contested[first[is_contested]] = 1
    columns = {
        "link": link,
        "shown_in": np.repeat(first, size),
        "first_at": np.repeat(first_at, size),
        "reread_in": np.repeat(first_reread, size),
        "is_contested": np.repeat(is_contested, size) & is_first,
    }
    of_several = np.flatnonzero(np.repeat(size > 1, size))
    of_several = of_several[np.argsort(bucket[of_several], kind="stable")]
    begin = np.searchsorted(bucket[of_several], np.arange(len(shown) + 1))
    mine = [of_several[low:high] for low, high in pairwise(begin.tolist())]
    return [{name: values[which] for name, values in columns.items()} for which in mine], has_contested
