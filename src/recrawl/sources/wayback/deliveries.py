"""What a run hands over: visits on their way to the history, and a report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from recrawl.sources.wayback.state import Key, UrlState
from recrawl.web.visit import Visit


@dataclass
class ArchiveReport:
    """What a run did."""

    urls: int = 0  # or prefixes, or domains
    captures: int = 0  # new ones learnt from the index
    visits: int = 0
    mementos: int = 0
    without_links: Counter[str] = field(default_factory=Counter)  # visits with a status and digest only, by reason
    skipped: Counter[str] = field(
        default_factory=Counter
    )  # lines of the index that cannot be used or are not wanted, by reason
    failed: dict[str, str] = field(default_factory=dict)  # URL → why; the next run tries again
    stopped: str | None = None  # why the run ended before its end; the next run goes on
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Delivery:
    """A visit on its way; `Archive.acknowledge` it once it is stored."""

    url: str  # as requested
    visit: Visit
    _key: Key
    _complete: bool
    _state: UrlState = field(repr=False)
