"""All visits as a table for people's notebooks: what each showed and what was new, as ``recrawl export visits`` writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recrawl.core.arrays import Ints
from recrawl.core.frames import to_pandas
from recrawl.core.words import count
from recrawl.history.given import given_of, n_links
from recrawl.history.importance import statements
from recrawl.history.novelty import MEANINGS
from recrawl.web.visit import Outcome

if TYPE_CHECKING:
    import pandas as pd

    from recrawl.history.history import History

VISITS_AT_ONCE = 200_000
_STORED = ("content_bytes", "text_bytes", "text_quality", "relevance", "content_type", "title", "note")


class VisitTable:
    """The visits of a history, one row each, ordered by page and time; null where something is unknown or undefined.

    >>> import tempfile
    >>> from datetime import UTC, datetime
    >>> from recrawl import History, Visit
    >>> history = History.create(tempfile.mkdtemp())
    >>> _ = history.add([Visit(url="https://e.org/", at=datetime(2026, 1, 5, tzinfo=UTC), links=["https://e.org/a"])])
    >>> history.visits().to_arrow().select(["url", "status", "n_links"]).to_pylist()
    [{'url': 'https://e.org/', 'status': 200, 'n_links': 1}]
    """

    def __init__(self, history: History) -> None:
        self._history = history

    def __len__(self) -> int:
        return self._history.timeline.n_visits

    def __repr__(self) -> str:
        return f"VisitTable({count(len(self), 'visit')})"

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        return pa.concat_tables(self.parts())

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas data frame."""
        return to_pandas(self.to_arrow())

    def parts(self) -> Iterator[pa.Table]:
        """The same rows a part at a time, for histories whose URLs do not fit into memory; at least one part."""
        rows = self.between()
        for start in range(0, max(len(self), 1), VISITS_AT_ONCE):
            yield rows(start, min(start + VISITS_AT_ONCE, len(self)))

    def between(self) -> Callable[[int, int], pa.Table]:
        """The rows from one to another, as a function of both."""
        timeline, new = self._history.timeline, self._history.novelty
        internal, external = n_links(timeline, given_of(self._history.store, timeline.page, timeline.at))
        stated = statements(self._history)
        outcomes = np.array([outcome.name.lower() for outcome in Outcome])
        totals = {meaning: new.total(meaning) for meaning in MEANINGS}

        def rows(start: int, stop: int) -> pa.Table:
            part = slice(start, stop)
            columns: dict[str, pa.Array] = {
                "url": self._history.urls_of(timeline.page[part]),
                "at": times_column(timeline.at[part]),
                "status": pa.array(timeline.status[part]),
                "outcome": pa.array(outcomes[timeline.outcome[part]]),
                "n_links": counts_column(np.where(internal[part] < 0, -1, internal[part] + external[part])),
                "n_internal": counts_column(internal[part]),
                "n_external": counts_column(external[part]),
            }
            for meaning in MEANINGS:
                columns[f"n_new_{meaning}"] = counts_column(totals[meaning][part])
                for side in ("internal", "external"):
                    columns[f"n_new_{meaning}_{side}"] = counts_column(getattr(new, f"{meaning}_{side}")[part])
            changed = timeline.text_changed[part]
            columns["text_changed"] = pa.array(changed > 0, mask=changed < 0)
            stored = timeline.rows.slice(start, stop - start)
            columns |= {name: stored[name] for name in _STORED}
            weights = None if stated is None else stated.stated_at(timeline.page[part], timeline.at[part])
            columns["importance"] = (
                pa.nulls(stored.num_rows, pa.float64()) if weights is None else pa.array(weights, from_pandas=True)
            )
            return pa.table(columns)

        return rows


def times_column(at: Ints) -> pa.Array:
    """Microseconds since 1970 as times, UTC."""
    return pa.array(at, pa.int64()).cast(pa.timestamp("us", "UTC"))


def counts_column(values: NDArray[np.integer]) -> pa.Array:
    """Counts, null where they are below 0.

    >>> counts_column(np.array([3, -1])).to_pylist()
    [3, None]
    """
    return pa.array(values.astype(np.int64), mask=values < 0)
