"""What the size of a page shows where nothing else does: whether its content changed, and whether there is any."""

from __future__ import annotations

import numpy as np

from recrawl.core.arrays import Flags, Ints, Ints8
from recrawl.history import Timeline

SIZES = ("content_bytes", "text_bytes")  #: the first that is known counts


def changed(seen: Timeline) -> Ints8:
    """Whether each visit showed a content of another size than the last visit with a known size: 1 or 0, -1 where not known.

    The size of the content counts, and where that is not known the size of the text.
    """
    content, text = (_changed(seen, *_sizes(seen, name)) for name in SIZES)
    return np.where(content >= 0, content, text)


def _changed(seen: Timeline, size: Ints, known: Flags) -> Ints8:
    visits = np.arange(seen.n_visits)
    parts = np.zeros(seen.n_visits, np.bool_)  # where a visit must not be compared with those before it
    parts[seen.page_start[:-1]] = True
    since = np.maximum.accumulate(np.where(parts | seen.baseline, visits, 0))
    last_known = np.maximum.accumulate(np.where(known, visits, -1))
    before = np.append(-1, last_known[:-1])[: seen.n_visits]
    comparable = known & (before >= since)
    return np.where(comparable, size != size[before], -1).astype(np.int8)


def has_content(timeline: Timeline) -> Flags:
    """Whether each visit found a page with content: its size, or where that is not known the size of its text, is not 0.

    Where no size is known, there may be content.
    """
    copy = np.where(timeline.latest >= 0, timeline.latest, np.arange(timeline.n_visits))
    is_empty = np.zeros(timeline.n_visits, np.bool_)
    for name in reversed(SIZES):
        size, known = _sizes(timeline, name)
        is_empty = np.where(known, size == 0, is_empty)
    return np.asarray(~is_empty[copy])


def _sizes(timeline: Timeline, name: str) -> tuple[Ints, Flags]:
    column = timeline.rows[name]
    return column.fill_null(0).to_numpy(), np.asarray(column.is_valid())
