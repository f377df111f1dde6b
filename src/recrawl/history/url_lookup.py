"""URLs looked up by id in a table of many more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from recrawl.core.arrays import Ints
from recrawl.core.ids import IdFilter
from recrawl.history.keys import distinct
from recrawl.history.row_groups import RowGroup, n_rows_of, side_by_side


def look_up(ids: Ints, groups: Sequence[RowGroup]) -> pa.Array:
    """The URL of each id, null where it is not known.

    Ids are read first, then URLs only of row groups that hold any of them, and only the URLs of these ids are kept.
    """
    wanted = IdFilter(distinct(ids))
    position = np.full(len(wanted.ids), -1, np.int64)  # of each id among the URLs read
    urls, n = [pa.array([], pa.large_string())], 0
    for which, read in side_by_side(lambda group: _urls(wanted, group), groups, n_rows_of(groups)):
        position[which] = n + np.arange(len(which))
        n += len(which)
        urls.append(read)
    place = position[np.searchsorted(wanted.ids, ids)]
    return pa.concat_arrays(urls).take(pa.array(place, mask=place < 0))


def _urls(wanted: IdFilter, group: RowGroup) -> tuple[Ints, pa.Array]:
    """Which of the ids a row group holds, and their URLs."""
    nothing = np.empty(0, np.int64), pa.array([], pa.large_string())
    span = group.span("id")
    if span and np.searchsorted(wanted.ids, span[0]) == np.searchsorted(wanted.ids, span[1], "right"):
        return nothing
    rows, which = wanted.among(group.read(["id"])["id"].to_numpy())
    if not len(rows):
        return nothing
    return which, group.read(["url"])["url"].take(pa.array(rows)).combine_chunks().cast(pa.large_string())
