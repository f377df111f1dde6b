"""The rows of a run → its metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from recrawl.core.arrays import Floats, Ints
from recrawl.replay.run import AGE_HOURS, Row
from recrawl.replay.runs import Replayed

_WEIGHTED = ("weighted_coverage", "weighted_freshness")


@dataclass(frozen=True, kw_only=True)
class ReplaySummary:
    """What a policy achieved with a budget; None where there was nothing to divide by."""

    policy: str
    paper: str | None
    budget: int  # pages per cycle
    cycles: int
    fetches: int
    answered: int  # fetches that showed the links of a page
    discovered: int  # distinct links
    discoverable: int  # distinct links that visits to every page in every cycle would have discovered
    coverage: float | None  # discovered / discoverable
    age_1h: float | None  # share of the links discovered: within one hour of their first appearance on any page
    age_4h: float | None
    within_1h: float | None  # the same, as a share of the links discoverable
    within_4h: float | None
    within_4_cycles: float | None
    links_per_fetch: float | None  # distinct new links
    hit_rate: float | None  # share of the fetches that showed a new link
    overlap_wasted: float | None  # share of the new links shown that another page of the same cycle showed as well
    freshness: float | None  # share of the pages whose copy is current, mean over the cycles
    weighted_coverage: float | None  # links by the most important page that showed them; None: all pages are alike
    weighted_freshness: float | None  # copies by the importance of their pages; None: all pages are alike
    changes: int  # fetches that found the page changed
    change_rate: float | None  # the same as a share of the fetches
    most_of_host: int  # maximum number of fetches from one host in a cycle
    mean_of_host: float | None  # fetches per host and cycle, of the hosts that were fetched from
    seconds: float  # the policy's own time, for choosing and learning
    seconds_per_cycle: float | None

    def as_dict(self) -> dict[str, Any]:
        """Its fields by name; weighted ones only where pages differ in importance."""
        return {name: value for name, value in asdict(self).items() if self.is_weighted or name not in _WEIGHTED}

    def judged_by(self, goal: str = "links") -> float | None:
        """What policies are to be compared by: coverage, or freshness for content; weighted where pages differ in importance."""
        if goal == "content":
            return self.weighted_freshness if self.is_weighted else self.freshness
        return self.weighted_coverage if self.is_weighted else self.coverage

    @property
    def is_weighted(self) -> bool:
        """Whether pages differ in importance."""
        return self.weighted_freshness is not None

    @staticmethod
    def columns(is_weighted: bool = False) -> list[pa.Field]:
        """The fields as columns of a table: names and types."""
        types = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}
        return [
            pa.field(each.name, types[str(each.type).partition(" ")[0]])
            for each in fields(ReplaySummary)
            if is_weighted or each.name not in _WEIGHTED
        ]


def summarise(run: Replayed) -> ReplaySummary:
    """The metrics of a run.

    References: Pham, Santos and Freire (2018), sections 3 (coverage) and 5.4 (age).
    """
    total = {name: sum(row[name] for row in run.rows) for name in _SUMMED}
    n_cycles, found, published = len(run.rows), total["found"], total["published"]
    weighted = {name: sum(row.get(name, 0.0) for row in run.rows) for name in _WEIGHTS}
    is_weighted = bool(run.rows) and "current_weight" in run.rows[0]
    early = {hours: _n_within(run.rows, hours) for hours in (1.0, 4.0)}
    return ReplaySummary(
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
        weighted_coverage=share(weighted["found_weight"], weighted["published_weight"]) if is_weighted else None,
        weighted_freshness=share(weighted["current_weight"], n_cycles) if is_weighted else None,
        changes=total["changes"],
        change_rate=share(total["changes"], total["fetches"]),
        most_of_host=max((row["most_of_host"] for row in run.rows), default=0),
        mean_of_host=share(total["fetches"], total["hosts"]),
        seconds=total["seconds"],
        seconds_per_cycle=share(total["seconds"], n_cycles),
    )


_SUMMED = (
    "fetches",
    "answered",
    "published",
    "found",
    "shown_new",
    "hits",
    "changes",
    "soon",
    "hosts",
    "current",
    "seconds",
)


_WEIGHTS = ("published_weight", "found_weight", "current_weight")


def share(part: float, whole: float) -> float | None:
    """A part of a whole; None of nothing.

    >>> share(1, 4), share(0, 0)
    (0.25, None)
    """
    return part / whole if whole else None


def column(rows: Sequence[Row], name: str) -> Floats:
    """One number per cycle."""
    return np.array([row[name] for row in rows], np.float64)


def coverage_over_time(rows: Sequence[Row]) -> Floats:
    """After each cycle the share of the links published so far that was discovered; NaN before the first was published.

    >>> coverage_over_time([{"found": 0, "published": 0}, {"found": 1, "published": 4}, {"found": 3, "published": 1}]).tolist()
    [nan, 0.25, 0.8]
    """
    found, published = np.cumsum(column(rows, "found")), np.cumsum(column(rows, "published"))
    coverage: Floats = np.divide(found, published, out=np.full(len(found), np.nan), where=published > 0)
    return coverage


def all_links(run: Replayed) -> tuple[int, int]:
    """Of a focused run: links found and links published, those that do not count as well."""
    return sum(row["found_all"] for row in run.rows), sum(row["published_all"] for row in run.rows)


def is_focused(run: Replayed) -> bool:
    """Whether only relevant links counted."""
    return bool(run.rows) and "found_all" in run.rows[0]


def age_counts(rows: Sequence[Row]) -> Ints:
    """How many links were discovered within each of `AGE_HOURS`, cumulative; the last entry counts all."""
    counts = np.array([row["ages"] for row in rows], np.int64).reshape(-1, len(AGE_HOURS) + 1)
    return np.cumsum(counts.sum(axis=0))


def _n_within(rows: Sequence[Row], hours: float) -> int:
    return int(age_counts(rows)[AGE_HOURS.index(hours)])
