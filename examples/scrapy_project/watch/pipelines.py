"""What becomes of the items."""

from __future__ import annotations

from typing import Any

from scrapy.exceptions import DropItem


class OncePerPage:
    """Lets the first item of each page pass: one that was planned may be linked to as well."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def process_item(self, item: dict[str, Any], spider: Any = None) -> dict[str, Any]:
        """Drop an item whose page was seen."""
        if item["url"] in self._seen:
            raise DropItem(f"seen before: {item['url']}")
        self._seen.add(item["url"])
        return item
