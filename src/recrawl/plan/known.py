"""Is a page in the history at all? Asked before the past is read and before anything heavy is loaded."""

from __future__ import annotations

from recrawl.errors import RecrawlError
from recrawl.history import History
from recrawl.web.urls import canonical


def known_page(history: History, url: str) -> str:
    """The page's URL as the history spells it; raises an error if it was never visited."""
    known = history.visited(url)
    if known is None:
        raise RecrawlError(
            f"{canonical(url)} was never visited, so it cannot be in a plan. Import a visit of it first; "
            "recrawl predict --explain URL says what to expect of a page that was never visited"
        )
    return known
