"""What sources stated of pages at their visits instead of showing it: numbers of links, inlinks, ranks.

Most histories have none of it. Where it is there, it counts instead of what could be worked out from the links: those may be
stand-ins (see `recrawl.sources.lbla`), of which only the number of new ones is true.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.history.keys import best_rows
from recrawl.history.schema import GIVEN
from recrawl.history.store import Store
from recrawl.history.timeline import Timeline

#: The numbers that can be given, by their column.
NAMES = tuple(field.name for field in GIVEN if field.name not in ("digest", "page", "at", "stand_ins"))
_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class GivenOfVisits:
    """What is given with each of some visits."""

    values: dict[str, Floats]  # by name; NaN where not stated
    is_given: Flags  # whether anything is stated of the visit
    stand_ins: Flags  # whether its links are made up


def given_of(store: Store, page: Ints, at: Ints) -> GivenOfVisits | None:
    """What is given with these visits (page and microseconds); None where nothing is."""
    if not store.files("given"):
        return None
    rows = store.read("given", where=pc.is_in(ds.field("page"), pa.array(np.unique(page))))
    if not rows.num_rows:
        return None
    rows = rows.take(pa.array(_best(rows)))
    row = _find(rows["page"].to_numpy(), _times(rows), page, at)
    known = row >= 0
    values = {name: np.where(known, _floats(rows[name])[row], np.nan) for name in NAMES}
    stand_ins = known & rows["stand_ins"].fill_null(False).to_numpy(zero_copy_only=False)[row]
    return GivenOfVisits(values, known, stand_ins)


def n_links(timeline: Timeline, given: GivenOfVisits | None) -> tuple[Ints, Ints]:
    """Internal and external links at each visit, -1 where not known: as stated, else as shown, unless they are stand-ins."""
    internal, external = timeline.n_links()
    if given is None:
        return internal, external
    return _counted(internal, "n_internal", given), _counted(external, "n_external", given)


def _counted(shown: Ints, name: str, given: GivenOfVisits) -> Ints:
    stated = np.nan_to_num(given.values[name], nan=-1).astype(np.int64)
    return np.where(stated >= 0, stated, np.where(given.stand_ins, -1, shown))


def _best(rows: pa.Table) -> Ints:
    """Of several rows for a visit the one that states most; between equals their digest decides, not the order of imports."""
    n_known = sum(np.asarray(rows[name].is_valid()).astype(np.int64) for name in NAMES)
    rank = (n_known << 48) | (rows["digest"].to_numpy().view(np.uint64) >> np.uint64(16)).astype(np.int64)
    return best_rows(rows["page"].to_numpy(), _times(rows), lambda: rank)


def _times(rows: pa.Table) -> Ints:
    times: Ints = rows["at"].cast(pa.int64()).to_numpy()
    return times


def _floats(column: pa.ChunkedArray) -> Floats:
    return np.asarray(column.cast(pa.float64()).to_numpy(), np.float64)


def _find(pages: Ints, times: Ints, page: Ints, at: Ints) -> Ints:
    """The row of each page and time, -1 where there is none."""
    keys = _mixed(pages, times)
    order = np.argsort(keys)
    near = order[np.minimum(np.searchsorted(keys, _mixed(page, at), sorter=order), len(order) - 1)]
    return np.where((pages[near] == page) & (times[near] == at), near, -1)


def _mixed(page: Ints, at: Ints) -> NDArray[np.uint64]:
    """One number for a page and a time; pages are hashes already."""
    return page.view(np.uint64) ^ (at.view(np.uint64) * _ODD)
