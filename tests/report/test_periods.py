"""Rounds in groups that a table can show."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from recrawl.report.stats.periods import MAX_ROWS, grouped_rounds


def ends(n: int, hours: float) -> list[str]:
    return [(datetime(2025, 3, 1) + timedelta(hours=hours * i)).isoformat(timespec="minutes") for i in range(n)]


@pytest.mark.parametrize(
    ("n", "hours", "unit", "first"),
    [
        (20, 1, "round", "0"),
        (300, 1, "day", "2025-03-01"),
        (716, 1, "week from", "2025-02-24"),
        (104, 24, "week from", "2025-02-24"),
        (60, 168, "month", "2025-03"),
        (104, 168, "quarter", "2025 Q1"),
        (400, 168, "year", "2025"),
        (400, 24 * 365, "rounds until", "2044-02-25"),
    ],
)
def test_the_shortest_period_with_few_enough_rows_is_taken(n: int, hours: float, unit: str, first: str) -> None:
    rounds = list(range(n))
    found, groups = grouped_rounds(ends(n, hours), rounds)
    assert (found, groups[0].name) == (unit, first)
    assert len(groups) <= MAX_ROWS
    assert [number for group in groups for number in group.rounds] == rounds


def test_weeks_begin_on_mondays() -> None:
    _, groups = grouped_rounds(ends(716, 1), list(range(716)))
    assert {datetime.fromisoformat(group.name).weekday() for group in groups} == {0}
