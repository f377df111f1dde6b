"""Pages that are gone: since when, and how often such pages came back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.history import Timeline
from recrawl.visits import Outcome

Ints = NDArray[np.int64]
#: Imagined cases that the chance of return is drawn to: of so many gone pages that were asked for again, one had come back.
IMAGINED = 20


@dataclass(frozen=True)
class Gone:
    """Which pages answered 404 or 410 when they last answered at all."""

    since: NDArray[np.datetime64]  # one entry a page: the first time in a row that it was gone; NaT where it is not
    chance_of_return: float  # that a page that was gone in one round is there in the next one that asks for it

    @property
    def is_gone(self) -> NDArray[np.bool_]:
        """The pages that are gone."""
        return ~np.isnat(self.since)

    @property
    def chance(self) -> NDArray[np.float64]:
        """One entry a page: the chance that there is anything to see at all."""
        return np.where(self.is_gone, self.chance_of_return, 1.0)


def gone_pages(timeline: Timeline, pages: Ints, rounds: NDArray[np.datetime64], until: int | None = None) -> Gone:
    """What the visits say of some pages (ids, ascending), those up to the end of round `until` if it is given.

    A failed visit says nothing. What counts in a round is its last visit that says anything.
    """
    ends = rounds.astype("datetime64[us]").astype(np.int64)
    latest = np.iinfo(np.int64).max if until is None else ends[until]
    told = np.flatnonzero((timeline.outcome != Outcome.FAILED) & (timeline.at <= latest))
    of_round = np.searchsorted(ends, timeline.at[told])
    page = timeline.page[told]
    told = told[np.append((np.diff(page) != 0) | (np.diff(of_round) != 0), True)[: len(told)]]
    page, at, is_gone = timeline.page[told], timeline.at[told], timeline.outcome[told] == Outcome.GONE
    asked_again = is_gone[:-1] & (np.diff(page) == 0)
    n_back = int((asked_again & ~is_gone[1:]).sum())
    begins = is_gone & ~np.append(False, asked_again)[: len(told)]
    begun = np.maximum.accumulate(np.where(begins, np.arange(len(told)), 0)) if len(told) else told
    last = np.append(np.diff(page) != 0, True)[: len(told)] & is_gone
    since = np.full(len(pages), np.datetime64("NaT", "us"))
    row = np.minimum(np.searchsorted(pages, page[last]), len(pages) - 1)
    wanted = pages[row] == page[last] if len(pages) else row < 0
    since[row[wanted]] = at[begun[last]][wanted].view("datetime64[us]")
    return Gone(since, (n_back + 1) / (int(asked_again.sum()) + IMAGINED))
