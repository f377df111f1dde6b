"""What HTTP headers mean, for everything that fetches."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

DEFAULT_WAIT = 60.0  #: seconds to wait after 429 or 503 when the server gives no usable Retry-After


def retry_after(value: str | None, now: datetime, default: float = DEFAULT_WAIT) -> float:
    """Seconds that a ``Retry-After`` header asks to wait: a number or a date (RFC 9110, section 10.2.3); else `default`.

    >>> retry_after("7", datetime(2026, 1, 2, tzinfo=UTC))
    7.0
    >>> retry_after("Fri, 02 Jan 2026 00:01:30 GMT", datetime(2026, 1, 2, tzinfo=UTC))
    90.0
    >>> retry_after("soon", datetime(2026, 1, 2, tzinfo=UTC))
    60.0
    """
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return default
    return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - now).total_seconds())
