"""How the stream of a whole collection is cut, for those who follow a part of it: the same batches for all parts.

A batch only says what a crawler could know when it chose, and that is the same for all pages. So whoever follows some of a
collection's pages must know when each batch began and ended, how many visits and pages it had, and which links pages elsewhere
showed first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.core.arrays import Ints, Ints32

NEVER_SHOWN = np.iinfo(np.int32).max  #: the number of a batch


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Batches of a collection, and parts of batches in which no page is visited twice: one entry per part.

    Visits are in the order of time, those of one moment in the order of their pages: by the batch in which each became known, and
    then by URL.
    """

    batch: Ints  # since the stream began
    is_last: Ints  # 1: the last part of its batch
    began_at: Ints  # microseconds: its first visit
    ended_at: Ints  # its last visit
    n_visits: Ints
    n_pages: Ints  # known by the end of its batch
    # The page of its first visit.
    known_in: Ints  # the batch in which it became known
    url: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.batch)

    def part_of(self, at: Ints, known_in: Ints, url: list[str] | None = None) -> Ints:
        """The part of each visit. `url`: of the pages of visits made at the very moment when a part begins, see `at_cuts`."""
        part = np.searchsorted(self.began_at, at, side="right") - 1
        for number, place in enumerate(self.at_cuts(at).tolist()):
            i = int(part[place])
            # Parts that begin at one moment: the last one whose first page is not behind this one.
            assert url is not None
            key = (int(known_in[place]), url[number])
            while self.began_at[i] == at[place] and key < (int(self.known_in[i]), self.url[i]):
                i -= 1
            part[place] = i
        return part

    def at_cuts(self, at: Ints) -> Ints:
        """Visits made at the moment when a part begins, so that their pages decide whether they belong to it."""
        place = np.minimum(np.searchsorted(self.began_at, at), max(len(self) - 1, 0))
        return np.flatnonzero(self.began_at[place] == at) if len(self) else np.empty(0, np.int64)


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """What other parts of a collection show of links that are new here: one entry per link, by their numbers here, ascending.

    Parts of batches are numbered as in the schedule.
    """

    link: Ints32
    shown_in: Ints32  # the first part in which a page elsewhere shows it; -1: known before
    first_at: Ints  # microseconds: when, first
    reread_in: Ints32  # the first part in which a page elsewhere shows it that is read in a new way
    #: Links that are new on pages here and elsewhere in the same part, and which part that is.
    contested: Ints32
    contested_in: Ints32
    is_contested_in: Ints  # one entry per part: whether there is any such link in the collection
