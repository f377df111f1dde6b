"""Many rounds as a few rows: by day, week, month, quarter or year, or else in equal groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

MAX_ROWS = 20  #: of a table that a reader can take in


@dataclass(frozen=True)
class RoundGroup:
    """Rounds that share a row of a table."""

    name: str
    rounds: tuple[int, ...]


def grouped_rounds(ends: Sequence[str], rounds: Sequence[int], most: int = MAX_ROWS) -> tuple[str, list[RoundGroup]]:
    """Rounds in at most `most` groups by the calendar, and what the groups are; `ends` has the end of every round there is.

    >>> ends = [f"2025-03-{day:02d}T{hour:02d}:00" for day in (1, 2) for hour in range(24)]
    >>> unit, groups = grouped_rounds(ends, range(48))
    >>> unit, [(group.name, len(group.rounds)) for group in groups]
    ('day', [('2025-03-01', 24), ('2025-03-02', 24)])
    """
    if len(rounds) <= most:
        return "round", [RoundGroup(str(number), (number,)) for number in rounds]
    days = np.array([ends[number][:10] for number in rounds], "datetime64[D]")
    for unit, names in _calendar(days):
        if len(set(names)) <= most:
            return unit, _by_name(names, rounds)
    parts = np.array_split(np.array(rounds), most)
    return "rounds until", [RoundGroup(ends[part[-1]][:10], tuple(part.tolist())) for part in parts]


def _calendar(days: np.ndarray) -> Iterator[tuple[str, list[str]]]:
    """The name of each day's day, week, month, quarter and year."""
    months = days.astype("datetime64[M]")
    yield "day", [str(day) for day in days]
    # 1970-01-05, day 4, is a Monday.
    mondays = (days.astype(np.int64) - 4) // 7 * 7 + 4
    yield "week from", [str(day) for day in mondays.astype("datetime64[D]")]
    yield "month", [str(month) for month in months]
    yield "quarter", [f"{str(month)[:4]} Q{(int(str(month)[5:]) + 2) // 3}" for month in months]
    yield "year", [str(month)[:4] for month in months]


def _by_name(names: Sequence[str], rounds: Sequence[int]) -> list[RoundGroup]:
    members: dict[str, list[int]] = {}
    for name, number in zip(names, rounds, strict=True):
        members.setdefault(name, []).append(number)
    return [RoundGroup(name, tuple(group)) for name, group in members.items()]
