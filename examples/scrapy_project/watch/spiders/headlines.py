"""A spider that leaves it to recrawl which pages to fetch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.http import HtmlResponse, Response


class Headlines(scrapy.Spider):
    """Scrapes the links of the planned pages with their texts: what is on the pages that are worth looking at tonight.

    Pages that did not change since the last visit do not come here: there is nothing new on them.
    """

    name = "headlines"

    async def start(self) -> AsyncIterator[Any]:
        """Nothing of its own: the plan comes first, and there is nothing after it."""
        nothing: list[Any] = []
        for request in nothing:
            yield request

    def parse(self, response: Response) -> Iterator[dict[str, Any]]:
        """One item a link."""
        if isinstance(response, HtmlResponse):
            for link in response.css("a[href]"):
                yield {"url": response.urljoin(link.attrib["href"]), "headline": link.xpath("string()").get()}
