"""The item pipeline."""

from __future__ import annotations

from typing import Any

from scrapy.exceptions import DropItem


class OncePerPage:
    """Keeps the first item of each page: a planned page may also be found by its links."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def process_item(self, item: dict[str, Any], spider: Any = None) -> dict[str, Any]:
        """Drop the item of a page that already has one."""
        if item["url"] in self._seen:
            raise DropItem(f"seen before: {item['url']}")
        self._seen.add(item["url"])
        return item
