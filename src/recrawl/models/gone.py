"""Pages that are gone: since when, and how often such pages came back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints, Times
from recrawl.history import Timeline
from recrawl.web.visit import Outcome

#: Prior for the chance of return: as if of this many gone pages that were fetched again, one had come back.
IMAGINED = 20


@dataclass(frozen=True)
class GonePages:
    """Which pages answered 404 or 410 when they last answered at all."""

    since: Times  # one entry per page: since when it has been gone; NaT where it is not
    chance_of_return: float  # that a page that was gone in one round is back in the next one that fetches it

    @property
    def is_gone(self) -> Flags:
        """The pages that are gone."""
        return ~np.isnat(self.since)

    @property
    def chance(self) -> Floats:
        """One entry per page: the chance that it exists at all."""
        return np.where(self.is_gone, self.chance_of_return, 1.0)


def gone_pages(timeline: Timeline, pages: Ints, rounds: Times, until: int | None = None) -> GonePages:
    """Which of some pages (ids, ascending) are gone, by the visits up to the end of round `until` if it is given.

    A failed visit shows nothing. In a round the last visit that shows anything counts.
    """
    ends = rounds.astype("datetime64[us]").astype(np.int64)
    latest = np.iinfo(np.int64).max if until is None else ends[until]
    answered = np.flatnonzero((timeline.outcome != Outcome.FAILED) & (timeline.at <= latest))
    page, at, is_gone = timeline.page[answered], timeline.at[answered], timeline.outcome[answered] == Outcome.GONE
    return GonePages(_since(page, at, is_gone, pages), _chance(page, np.searchsorted(ends, at), is_gone))


def _since(page: Ints, at: Ints, is_gone: Flags, pages: Ints) -> Times:
    """When the last series of visits to each page that all found it gone began."""
    since = np.full(len(pages), np.datetime64("NaT", "us"))
    again = np.append(False, is_gone[:-1] & (np.diff(page) == 0))[: len(page)]
    begun = np.maximum.accumulate(np.where(is_gone & ~again, np.arange(len(page)), 0)) if len(page) else page
    gone = np.flatnonzero(_last(page) & is_gone)
    gone = gone[np.isin(page[gone], pages)]
    since[np.searchsorted(pages, page[gone])] = at[begun[gone]].view("datetime64[us]")
    return since


def _chance(page: Ints, of_round: Ints, is_gone: Flags) -> float:
    """The share of pages gone in a round that are back in the next one in which they answer, shrunk towards one in `IMAGINED`."""
    at_end = _last(page) | np.append(np.diff(of_round) != 0, True)[: len(page)]
    page, is_gone = page[at_end], is_gone[at_end]
    fetched_again = is_gone[:-1] & (np.diff(page) == 0)
    return (int((fetched_again & ~is_gone[1:]).sum()) + 1) / (int(fetched_again.sum()) + IMAGINED)


def _last(page: Ints) -> Flags:
    """The last visit of each page."""
    return np.append(np.diff(page) != 0, True)[: len(page)]
