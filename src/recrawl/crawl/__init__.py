"""recrawl inside Scrapy: the plan goes in, the visits come back. Needs the extra ``recrawl[crawl]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recrawl.crawl.addon import Addon

__all__ = ["Addon"]


def __getattr__(name: str) -> Any:
    """Import the add-on on first use, because other modules of this package work without Scrapy."""
    if name != "Addon":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from recrawl.crawl.addon import Addon

    return Addon
