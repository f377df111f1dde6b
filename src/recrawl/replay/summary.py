"""The rows of a run → its metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from recrawl.core.arrays import Floats, Ints
from recrawl.replay.run import AGE_HOURS, Row
from recrawl.replay.runs import Replayed


@dataclass(frozen=True)
class Summary:
    """What a policy achieved with a budget; None where there was nothing to divide by."""

    policy: str
    paper: str | None
    budget: int  # pages a cycle
    cycles: int
    fetches: int
    answered: int  # fetches that showed the links of a page
    discovered: int  # distinct links
    discoverable: int  # distinct links that visiting every page in every cycle discovers
    coverage: float | None  # discovered of discoverable
    age_1h: float | None  # of the links discovered: within one hour of first being on any page
    age_4h: float | None
    within_1h: float | None  # the same, of the links discoverable
    within_4h: float | None
    within_4_cycles: float | None
    links_per_fetch: float | None  # new links, every one counted once
    hit_rate: float | None  # of the fetches: those that showed a new link
    overlap_wasted: float | None  # of the new links shown: those that another page of the same cycle showed as well
    freshness: float | None  # of the pages: those whose copy is current, mean over the cycles
    most_of_host: int  # fetches from one host in a cycle
    mean_of_host: float | None  # fetches from a host in a cycle, where there were any
    seconds: float  # the policy's own time: choosing and learning
    seconds_per_cycle: float | None

    def as_dict(self) -> dict[str, Any]:
        """Its fields by name."""
        return asdict(self)


def summarise(run: Replayed) -> Summary:
    """The metrics of a run.

    References: Pham, Santos and Freire (2018), sections 3 (coverage) and 5.4 (age).
    """
    total = {name: sum(row[name] for row in run.rows) for name in _SUMMED}
    n_cycles, found, published = len(run.rows), total["found"], total["published"]
    early = {hours: _n_within(run.rows, hours) for hours in (1.0, 4.0)}
    return Summary(
        policy=run.policy,
        paper=run.paper,
        budget=run.budget,
        cycles=n_cycles,
        fetches=total["fetches"],
        answered=total["answered"],
        discovered=found,
        discoverable=published,
        coverage=share(found, published),
        age_1h=share(early[1.0], found),
        age_4h=share(early[4.0], found),
        within_1h=share(early[1.0], published),
        within_4h=share(early[4.0], published),
        within_4_cycles=share(total["soon"], published),
        links_per_fetch=share(found, total["fetches"]),
        hit_rate=share(total["hits"], total["fetches"]),
        overlap_wasted=share(total["shown_new"] - found, total["shown_new"]),
        freshness=share(total["current"], n_cycles),
        most_of_host=max((row["most_of_host"] for row in run.rows), default=0),
        mean_of_host=share(total["fetches"], total["hosts"]),
        seconds=total["seconds"],
        seconds_per_cycle=share(total["seconds"], n_cycles),
    )


_SUMMED = ("fetches", "answered", "published", "found", "shown_new", "hits", "soon", "hosts", "current", "seconds")


def share(part: float, whole: float) -> float | None:
    """One number of another, if that is any.

    >>> share(1, 4), share(0, 0)
    (0.25, None)
    """
    return part / whole if whole else None


def column(rows: Sequence[Row], name: str) -> Floats:
    """One number of every cycle."""
    return np.array([row[name] for row in rows], np.float64)


def coverage_over_time(rows: Sequence[Row]) -> Floats:
    """After each cycle: the links discovered so far, of those that could have been; NaN before the first one could.

    >>> coverage_over_time([{"found": 0, "published": 0}, {"found": 1, "published": 4}, {"found": 3, "published": 1}]).tolist()
    [nan, 0.25, 0.8]
    """
    found, published = np.cumsum(column(rows, "found")), np.cumsum(column(rows, "published"))
    coverage: Floats = np.divide(found, published, out=np.full(len(found), np.nan), where=published > 0)
    return coverage


def age_counts(rows: Sequence[Row]) -> Ints:
    """How many links were discovered within each of `AGE_HOURS`, summed up; the last entry: all."""
    counts = np.array([row["ages"] for row in rows], np.int64).reshape(-1, len(AGE_HOURS) + 1)
    return np.cumsum(counts.sum(axis=0))


def _n_within(rows: Sequence[Row], hours: float) -> int:
    return int(age_counts(rows)[AGE_HOURS.index(hours)])
