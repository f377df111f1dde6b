"""Times as whole microseconds since 1970, UTC, and periods as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

NEVER = -(2**63)  #: a time that has not been; in arrays of int64
US_PER_HOUR = 3_600_000_000
US_PER_DAY = 24 * US_PER_HOUR
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST = 365_000 * 86400.0  # seconds: a thousand years, so that now and a period make a moment
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def microseconds(moment: datetime) -> int:
    """An aware time as microseconds since 1970, exactly.

    >>> microseconds(datetime(1970, 1, 2, tzinfo=UTC))
    86400000000
    """
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment(us: int) -> datetime:
    """The time that many microseconds after 1970.

    >>> moment(86_400_000_000).isoformat()
    '1970-01-02T00:00:00+00:00'
    """
    return _EPOCH + timedelta(microseconds=int(us))


def iso_text(at: datetime) -> str:
    """A time as people and machines read it.

    >>> iso_text(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    '2026-01-02T03:04:05Z'
    """
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_moment(text: str) -> datetime:
    """A time in ISO 8601; one without a zone is UTC, and a date means its midnight.

    >>> parse_moment("2020-07-20").isoformat(), parse_moment("2020-07-20T02:00+02:00").isoformat()
    ('2020-07-20T00:00:00+00:00', '2020-07-20T00:00:00+00:00')
    """
    try:
        at = datetime.fromisoformat(text.strip())
        return at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):  # overflow: in UTC it is before the year 1 or after 9999
        raise ValueError(f"{text!r} is not a time; write e.g. 2020-07-20 or 2020-07-20T12:00:00Z") from None


def parse_period(text: str) -> timedelta:
    """A length of time such as ``1h``, ``7d`` or ``2w``: from a second to a thousand years.

    >>> parse_period("7d")
    datetime.timedelta(days=7)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", text.strip())
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not 1.0 <= seconds <= _LONGEST:
        raise ValueError(f"{text!r} is not a period; write a number and s, m, h, d or w, e.g. 1h, 7d, 2w")
    return timedelta(seconds=seconds)
