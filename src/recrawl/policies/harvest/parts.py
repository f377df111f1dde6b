"""Which parts of the stock model are used, and how long the past counts."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Parts:
    """Which parts of the stock model are used, and how long the past counts.

    half_life_days, half_life_visits: a page's past counts half after that many days or visits, whichever is longer. rhythm: links
    arrive faster in some hours of the week. lifetimes: how long links stay is learnt. overlap: siblings show the same links. alone:
    some links are on no other page, however much pages share. discount: a page picked lowers the value of its siblings. failures:
    pages may not answer. around: pages without much of a past are judged by others like them: of their size and site, with
    `folders` of their folder and name, with `related` of similar text. levels: how much pages differ from what is expected is
    learnt.

    >>> Parts(rhythm=False).rhythm, Parts().half_life_days
    (False, 60.0)
    """

    half_life_days: float = 60.0
    half_life_visits: float = 30.0
    rhythm: bool = True
    lifetimes: bool = True
    overlap: bool = True
    alone: bool = True
    discount: bool = True
    failures: bool = True
    around: bool = True
    folders: bool = True
    related: bool = True
    levels: bool = True

    def __post_init__(self) -> None:
        for name in ("half_life_days", "half_life_visits"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0")
