"""How much pages matter, as the records of their visits state it: a statement holds until the next one.

It comes with visits (`Visit.importance`), but it is the user's word, not what the page showed: it counts whether the visit
succeeded or not, and a visit without one leaves what was said before. Most histories state nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from recrawl.core.arrays import Floats, Ints

if TYPE_CHECKING:
    from recrawl.history.history import History


@dataclass(frozen=True, kw_only=True)
class Statements:
    """What was stated up to a moment, ordered by page and time; one statement per page and moment.

    >>> said = Statements(page=np.array([1, 1, 4]), at=np.array([10, 30, 20]), importance=np.array([5.0, 2.0, 0.0]))
    >>> said.in_force(np.array([1, 1, 1, 4, 7]), np.array([9, 10, 99, 20, 20]))
    array([1., 5., 2., 0., 1.])
    >>> said.newest(np.array([7, 4, 1]))
    array([1., 0., 2.])
    >>> said.stated_at(np.array([1, 1]), np.array([10, 11]))
    array([ 5., nan])
    """

    page: Ints
    at: Ints  # microseconds, UTC
    importance: Floats

    def in_force(self, page: Ints, at: Ints) -> Floats:
        """The importance of pages at moments: what was stated last, up to and including each moment; 1 before that."""
        place = self._last_until(page, at)
        return np.where(place >= 0, self.importance[place], 1.0)

    def newest(self, page: Ints) -> Floats:
        """The same after the last statement."""
        place = np.searchsorted(self.page, page, side="right") - 1
        return np.where((place >= 0) & (self.page[place] == page), self.importance[place], 1.0)

    def stated_at(self, page: Ints, at: Ints) -> Floats:
        """What was stated at just these moments; NaN where nothing was."""
        place = self._last_until(page, at)
        return np.where((place >= 0) & (self.at[place] == at), self.importance[place], np.nan)

    def _last_until(self, page: Ints, at: Ints) -> Ints:
        """The last statement on each page up to each moment; -1 where there is none."""
        n = len(self.page)
        pages, times = np.concatenate([self.page, page]), np.concatenate([self.at, at])
        is_asked = np.arange(len(pages)) >= n
        order = np.lexsort((is_asked, times, pages))
        newest = np.maximum.accumulate(np.where(is_asked[order], -1, order))  # statements are in this order already
        place = np.full(len(pages), -1, np.int64)
        place[order] = np.where((newest >= 0) & (pages[newest] == pages[order]), newest, -1)
        return place[n:]


def statements(history: History) -> Statements | None:
    """All that a history states up to its moment; None where it states nothing.

    Of several statements for one visit the greatest counts, whatever the order of imports.
    """
    if not history.store.files("importance"):
        return None
    rows = history.store.read("importance", ["page", "at", "importance"], history._when())
    if not rows.num_rows:
        return None
    page, at = rows["page"].to_numpy(), rows["at"].cast(pa.int64()).to_numpy()
    importance = rows["importance"].to_numpy()
    order = np.lexsort((importance, at, page))
    page, at, importance = page[order], at[order], importance[order]
    is_last = np.append((page[1:] != page[:-1]) | (at[1:] != at[:-1]), True)
    return Statements(page=page[is_last], at=at[is_last], importance=importance[is_last])


def importance_of(history: History, page: Ints) -> Floats | None:
    """How much each of some pages matters now; None where all matter alike, which is 1."""
    stated = statements(history)
    importance = None if stated is None else stated.newest(page)
    return None if importance is None or (importance == 1.0).all() else importance
