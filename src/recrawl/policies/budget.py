"""How much may be fetched, and why a page was not picked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from recrawl.core.arrays import Ints, Ints8

if TYPE_CHECKING:
    from recrawl.policies.choice import Choice


class Cause(IntEnum):
    """Why a page was not picked."""

    PICKED = 0
    BELOW_CUT = 1
    HOST_CAP = 2
    SITE_CAP = 3
    OVERLAP = 4
    TOO_SOON = 5
    GONE = 6
    EXCLUDED = 7
    UNPROMISING = 8
    NOT_WATCHED = 9
    UNIMPORTANT = 10

    @property
    def words(self) -> str:
        """For people.

        >>> Cause.BELOW_CUT.words
        'below cut'
        """
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True)
class Budget:
    """How many pages may be fetched, in all and per host or site, and which not at all.

    >>> Budget(500, per_host=20)
    Budget(500 pages, at most 20 per host)
    """

    pages: int
    per_host: int | None = None
    per_site: int | None = None
    barred: Ints8 | None = None  # one `Cause` per page: why it must not be picked; 0 where it may
    taken: Ints | None = None  # pages that were picked already and count for the caps
    per_cycle: int | None = None  # pages per cycle, where `pages` is more: to rank beyond what will be fetched

    def __post_init__(self) -> None:
        for name in ("pages", "per_host", "per_site"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"{name} is {value}: a budget cannot be negative")

    def __repr__(self) -> str:
        caps = [
            f"at most {cap} per {of}"
            for cap, of in ((self.per_host, "host"), (self.per_site, "site"))
            if cap is not None
        ]
        barred = [] if self.barred is None else [f"{int((self.barred > 0).sum())} barred"]
        return f"Budget({', '.join([f'{self.pages} pages', *caps, *barred])})"

    def rest(self, choice: Choice, n_pages: int) -> Budget:
        """What is left of the budget after a choice: its pages are barred, and count for the caps."""
        barred = np.zeros(n_pages, np.int8) if self.barred is None else self.barred.copy()
        barred[choice.page] = Cause.BELOW_CUT
        taken = choice.page if self.taken is None else np.concatenate([self.taken, choice.page])
        return replace(self, pages=max(self.pages - len(choice), 0), barred=barred, taken=taken)
