"""A spider that fetches only the pages that recrawl plans."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.http import HtmlResponse, Response


class Headlines(scrapy.Spider):
    """Scrapes the links of the planned pages, with their texts.

    Pages that did not change since the last visit do not reach `parse`: there is nothing new on them.
    """

    name = "headlines"

    async def start(self) -> AsyncIterator[Any]:
        """No start requests of its own: only the planned pages are fetched."""
        no_requests: list[Any] = []
        for request in no_requests:
            yield request

    def parse(self, response: Response) -> Iterator[dict[str, Any]]:
        """One item per link."""
        if isinstance(response, HtmlResponse):
            for link in response.css("a[href]"):
                yield {"url": response.urljoin(link.attrib["href"]), "headline": link.xpath("string()").get()}
