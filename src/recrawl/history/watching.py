"""Which known pages plans leave out. Kept beside the visits, as decisions in the order of time, so that each can be undone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from recrawl.core.arrays import Ints
from recrawl.history.side_tables import SideTable

if TYPE_CHECKING:
    from recrawl.history.history import History

#: One row per decision about a page; the newest counts. A page without any is watched.
WATCHING = SideTable(
    "watching",
    pa.schema(
        [
            ("page", pa.int64()),
            ("at", pa.timestamp("us", "UTC")),
            ("is_watched", pa.bool_()),
            ("new_links", pa.int64()),  # that the page itself brought; null: not looked at
            ("relevance", pa.float64()),  # null: not known
            ("why", pa.string()),
        ]
    ),
)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Whether a page is watched from a moment on: a candidate of plans, or only known and kept."""

    page: int  # id
    at: datetime  # UTC, aware
    is_watched: bool
    new_links: int | None = None
    relevance: float | None = None
    why: str = ""


def decide(history: History, decisions: Iterable[Decision]) -> None:
    """Keep decisions, all in one commit."""
    rows = list(map(astuple, decisions))
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in WATCHING.schema]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, WATCHING.schema, strict=True)]
    WATCHING.append(history.beside, pa.Table.from_arrays(arrays, schema=WATCHING.schema))


def decisions(history: History, since: datetime) -> pa.Table:
    """All decisions from a moment on, in the order in which they were made."""
    rows = WATCHING.read(history.beside, ds.field("at") >= pa.scalar(since, pa.timestamp("us", "UTC")))
    return rows.take(pc.array_sort_indices(rows["at"]))


def newest(history: History) -> pa.Table:
    """The decision that counts for each page, ordered by page; of two at one moment, the one to watch it."""
    where = None if history.until is None else ds.field("at") <= pa.scalar(history.until, pa.timestamp("us", "UTC"))
    rows = WATCHING.read(history.beside, where)
    rows = rows.sort_by([("page", "ascending"), ("at", "ascending"), ("is_watched", "ascending")])
    page = rows["page"].to_numpy()
    return rows.take(np.flatnonzero(np.append(np.diff(page) != 0, True)[: len(page)]))


def unwatched(history: History) -> Ints:
    """The ids of the pages that are not watched, ascending, as of the moment of the history.

    >>> import tempfile
    >>> from datetime import UTC
    >>> from recrawl.history import History
    >>> history, monday = History.create(tempfile.mkdtemp()), datetime(2026, 1, 5, tzinfo=UTC)
    >>> decide(history, [Decision(page=page, at=monday, is_watched=page == 7) for page in (3, 7)])
    >>> unwatched(history)
    array([3])
    """
    rows = newest(history)
    ids: Ints = rows.filter(pc.invert(rows["is_watched"]))["page"].to_numpy()
    return ids
