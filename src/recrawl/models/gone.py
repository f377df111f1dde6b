"""Pages that are gone: since when, and how often such pages came back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints, Times
from recrawl.history import Timeline
from recrawl.web.visit import Outcome

#: Imagined cases that the chance of return is drawn to: of so many gone pages that were asked for again, one had come back.
IMAGINED = 20


@dataclass(frozen=True)
class GonePages:
    """Which pages answered 404 or 410 when they last answered at all."""

    since: Times  # one entry a page: the first time in a row that it was gone; NaT where it is not
    chance_of_return: float  # that a page that was gone in one round is there in the next one that asks for it

    @property
    def is_gone(self) -> Flags:
        """The pages that are gone."""
        return ~np.isnat(self.since)

    @property
    def chance(self) -> Floats:
        """One entry a page: the chance that there is anything to see at all."""
        return np.where(self.is_gone, self.chance_of_return, 1.0)


def gone_pages(timeline: Timeline, pages: Ints, rounds: Times, until: int | None = None) -> GonePages:
    """What the visits say of some pages (ids, ascending), those up to the end of round `until` if it is given.

    A failed visit says nothing. What counts in a round is its last visit that says anything.
    """
    ends = rounds.astype("datetime64[us]").astype(np.int64)
    latest = np.iinfo(np.int64).max if until is None else ends[until]
    told = np.flatnonzero((timeline.outcome != Outcome.FAILED) & (timeline.at <= latest))
    page, at, is_gone = timeline.page[told], timeline.at[told], timeline.outcome[told] == Outcome.GONE
    return GonePages(_since(page, at, is_gone, pages), _chance(page, np.searchsorted(ends, at), is_gone))


def _since(page: Ints, at: Ints, is_gone: Flags, pages: Ints) -> Times:
    """When the last row of visits to each page that all found it gone began."""
    since = np.full(len(pages), np.datetime64("NaT", "us"))
    again = np.append(False, is_gone[:-1] & (np.diff(page) == 0))[: len(page)]
    begun = np.maximum.accumulate(np.where(is_gone & ~again, np.arange(len(page)), 0)) if len(page) else page
    gone = np.flatnonzero(_last(page) & is_gone)
    gone = gone[np.isin(page[gone], pages)]
    since[np.searchsorted(pages, page[gone])] = at[begun[gone]].view("datetime64[us]")
    return since


def _chance(page: Ints, of_round: Ints, is_gone: Flags) -> float:
    """The share of pages gone in a round that are there in the next one in which they answer, drawn to one in `IMAGINED`."""
    at_end = _last(page) | np.append(np.diff(of_round) != 0, True)[: len(page)]
    page, is_gone = page[at_end], is_gone[at_end]
    asked_again = is_gone[:-1] & (np.diff(page) == 0)
    return (int((asked_again & ~is_gone[1:]).sum()) + 1) / (int(asked_again.sum()) + IMAGINED)


def _last(page: Ints) -> Flags:
    """The last visit of each page."""
    return np.append(np.diff(page) != 0, True)[: len(page)]
