"""What the pages of a world said in each cycle, and versions of which only some kind of change makes a new one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from recrawl.change import Notion, Shingles, changes, sketches_of
from recrawl.contents import Contents, contents_of
from recrawl.errors import NotEnoughData
from recrawl.history import History

Ints = NDArray[np.int64]


def worded(history: History, every: str | timedelta | Sequence[datetime], needed: bool) -> Contents | None:
    """What the pages said, in the same rounds; None where the words of no page are known, unless they are needed."""
    try:
        return contents_of(history, every)
    except NotEnoughData:
        if needed:
            raise
        return None


def shown_texts(contents: Contents, page: Ints, first: int) -> NDArray[np.int32]:
    """Which text each page was seen to show in each cycle [cycle, page]; -1 where it was not seen, or its words are not known.

    Cycle 0 is round `first` with all that was seen before it, as in the world.
    """
    seen = contents.seen[:, first:].copy()
    seen[:, 0] = contents.text[:, first] >= 0
    text = np.full((seen.shape[1], len(page)), -1, np.int32)
    row, known = _rows(contents, page)
    text[:, known] = np.where(seen, contents.text[:, first:], -1)[row].T
    return text


def versions_by(notion: Notion, history: History, contents: Contents, version: Ints, page: Ints, first: int) -> Ints:
    """Versions [cycle, page] that count the changes of a kind; -1 before a page's words are known.

    Pages whose words are never known keep the `version` that they have.
    """
    sketches = sketches_of(history, contents) if isinstance(notion, Shingles) else None
    n_changes = np.cumsum(changes(contents, notion, sketches) == 1, axis=1)
    counted = np.where(contents.text >= 0, n_changes, -1)[:, first:]
    row, known = _rows(contents, page)
    result = version.copy()
    result[:, known] = counted[row].T
    return result


def _rows(contents: Contents, page: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Where the pages whose words are known stand in the contents, and which they are; contents are ordered by id."""
    at = np.minimum(np.searchsorted(contents.page, page), len(contents.page) - 1)
    known = contents.page[at] == page
    return at[known], known
