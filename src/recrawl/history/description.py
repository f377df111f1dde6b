"""A history in a few words, for people at a prompt."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from recrawl.core.times import moment
from recrawl.core.words import count
from recrawl.errors import HistoryError
from recrawl.history.row_groups import RowGroup

if TYPE_CHECKING:
    from recrawl.history.history import History

FEW = (
    2_000_000  #: visits whose pages are counted; of more only the number and the time are given, which the files state
)


def describe(history: History) -> str:
    """What a history holds: visits, pages and time, read from the files' metadata and at most two columns."""
    try:
        timeline = history.__dict__.get("timeline")
        if timeline is not None:
            return _text(timeline.n_visits, len(timeline.pages), *_span(timeline.at))
        n_rows, first, last = history.store.scan("visits", _stated)
        if n_rows <= FEW:
            return _counted(history)
        about = _text(n_rows, None, first, last)
        return about if history.until is None else f"up to {history.until.date()} of {about}"
    except HistoryError as error:
        return f"cannot be read: {error}"


def _counted(history: History) -> str:
    rows = history.store.read("visits", ["page", "at"], history._when())
    keys = rows.group_by(["page", "at"]).aggregate([])  # a visit may be stored twice until the history is compacted
    at = keys["at"].cast(pa.int64()).to_numpy()
    return _text(len(at), len(keys["page"].unique()), *_span(at))


def _stated(groups: list[RowGroup]) -> tuple[int, datetime | None, datetime | None]:
    """The number of rows, and the first and the last time, as the files state them."""
    spans: list[Any] = [span for group in groups if (span := group.span("at"))]
    times = [at.replace(tzinfo=at.tzinfo or UTC) for span in spans for at in span]
    return sum(group.n_rows for group in groups), min(times, default=None), max(times, default=None)


def _span(at: Any) -> tuple[datetime | None, datetime | None]:
    return (moment(at.min()), moment(at.max())) if len(at) else (None, None)


def _text(n_visits: int, n_pages: int | None, first: datetime | None, last: datetime | None) -> str:
    if not n_visits:
        return "no visits"
    pages = "" if n_pages is None else f" to {count(n_pages, 'page')}"
    time = f", {first.date()} to {last.date()}" if first and last else ""
    return f"{count(n_visits, 'visit')}{pages}{time}"
