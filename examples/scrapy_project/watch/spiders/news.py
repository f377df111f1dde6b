"""An ordinary spider, without any code for recrawl."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import scrapy
from scrapy.http import HtmlResponse, Response


class News(scrapy.Spider):
    """Scrapes the title of every page of some sites, and follows their links: ``-a sites=https://a.org/,https://b.org/``."""

    name = "news"

    def __init__(self, sites: str = "https://example.org/", **more: Any) -> None:
        super().__init__(**more)
        self.start_urls = sites.split(",")
        self.allowed_domains = [urlsplit(url).hostname for url in self.start_urls]

    def parse(self, response: Response) -> Iterator[Any]:
        """One item per page, and a request for each of its links."""
        if isinstance(response, HtmlResponse):
            yield {"url": response.url, "title": response.css("title::text").get()}
            yield from response.follow_all(css="a")
