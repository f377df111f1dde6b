"""How visits are cut into rounds, as people write it; without the rounds themselves, which take a while to load."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from recrawl.core.times import parse_period
from recrawl.web.visit import parse_at

Every = str | timedelta | Sequence[datetime]  #: how rounds are cut: "crawl", a period, or the times at which they end


def parse_rounds(text: str) -> str | timedelta | list[datetime]:
    """Rounds as written on the command line: ``crawl``, a period, or the times at which they end, separated by commas.

    ``auto`` is for batches (see `recrawl.world.batches`): crawls where there are pauses, else a period that suits the data.

    >>> parse_rounds("2025-03-01T00:00Z,2025-03-08T00:00Z")[1].isoformat()
    '2025-03-08T00:00:00+00:00'
    """
    if text in ("auto", "crawl"):
        return text
    if "," in text or "T" in text:
        return [parse_at(time) for time in text.split(",") if time.strip()]
    return parse_period(text)
