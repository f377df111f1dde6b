"""What a policy thinks of one page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class ExpertOnPage:
    """One of the pages that a page is judged by."""

    page: int
    weight: float  # of its vote, as a share of all votes
    right: float | None  # how often it was right so far; None: not known
    is_lost: bool  # it disappeared, so it has no vote


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What a policy thinks of one page, whether it would pick it or not."""

    page: int
    rank: int | None  # place in a choice without limit; None: it would not be picked with any budget
    score: float | None
    reason: str  # why it would be picked; empty without a rank
    factors: Mapping[str, float] = field(default_factory=dict)  # numbers that its score was multiplied with
    #: Pages that showed the same new links, and what share of them, the greatest first.
    overlaps: tuple[tuple[int, float], ...] = ()
    experts: tuple[ExpertOnPage, ...] = ()  # pages that it is judged by beside itself, the nearest first
