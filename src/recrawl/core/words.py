"""Numbers, shares, counts and durations for people. Imports nothing, so that every room can use it."""

from __future__ import annotations

HOURS_PER_YEAR = 8_766.0


def number(value: float, sign: str = "") -> str:
    """As many digits as are of use.

    >>> number(174.4), number(4.62), number(0.00234), number(-31.7, "+")
    ('174', '4.6', '0.0023', '-32')
    """
    size = abs(value)
    return f"{value:{sign},.0f}" if size >= 10 else f"{value:{sign}.1f}" if size >= 1 else f"{value:{sign}.2g}"


def count(n: int, noun: str, plural: str | None = None) -> str:
    """A number and its noun.

    >>> count(1, "visit"), count(2_000, "visit"), count(0, "entry", "entries")
    ('1 visit', '2,000 visits', '0 entries')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def percent(share: float) -> str:
    """A share of 1 in percent; small ones with a digit more, none rounded to nothing or to all.

    >>> percent(0.5), percent(0.034), percent(0.0004), percent(0.9999), percent(1.0), percent(0.0)
    ('50%', '3.4%', '0.04%', '99.99%', '100%', '0%')
    """
    if share in (0.0, 1.0) or 0.1 <= share <= 0.99:
        return f"{share:.0%}"
    return (
        f"{100 * share:.1f}%"
        if 0.01 <= share < 0.995
        else f"{100 * share:.2g}%"
        if share < 0.5
        else f"{100 * share:.2f}%"
    )


def small_number(value: float) -> str:
    """A count that is often below 1.

    >>> small_number(14.68), small_number(0.034), small_number(250.3)
    ('14.7', '0.03', '250')
    """
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 0.1 else f"{value:.2f}"


def duration(hours: float) -> str:
    """A length of time in minutes, hours, days or years, whichever reads best.

    >>> duration(2.3), duration(100.0), duration(0.25), duration(30_000.0), duration(0.003), duration(24.0)
    ('2.3 h', '4.2 days', '15 min', '3.4 years', '11 s', '24 h')
    """
    if hours < 1 / 60:
        return f"{3600 * max(hours, 0.0):.0f} s"
    if hours < 1:
        return f"{60 * hours:.0f} min"
    if hours < 48:
        return f"{_short(hours)} h"
    return f"{_short(hours / 24)} days" if hours < 2 * HOURS_PER_YEAR else f"{_short(hours / HOURS_PER_YEAR)} years"


def rate(per_hour: float) -> str:
    """A rate per hour, day or month, whichever reads best.

    >>> rate(25.5), rate(0.1), rate(0.002)
    ('25.5 per hour', '2.4 per day', '1.5 per month')
    """
    if per_hour >= 1:
        return f"{small_number(per_hour)} per hour"
    return (
        f"{small_number(24 * per_hour)} per day"
        if per_hour >= 1 / 24
        else f"{small_number(730.5 * per_hour)} per month"
    )


def _short(value: float) -> str:
    """One digit behind the point, where it is not 0."""
    return f"{value:.1f}".removesuffix(".0")
