"""Scrapy's responses in WARC files, as received."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.http import Request, Response
from scrapy.utils.python import to_bytes
from twisted.web.http import RESPONSES

from recrawl.crawl.session import Session, logger
from recrawl.crawl.warc import WarcWriter


class WarcMiddleware:
    """Downloader middleware next to the network: sees bodies as they were sent, only without transfer encoding."""

    def __init__(self, crawler: Any) -> None:
        self.session = Session.of(crawler)
        folder = self.session.options.warc
        if not folder:
            raise NotConfigured
        self.writer: WarcWriter | None = WarcWriter(Path(folder), operator=str(crawler.settings["USER_AGENT"]))
        crawler.signals.connect(self.closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Any) -> Self:
        """Scrapy's constructor."""
        return cls(crawler)

    def process_response(self, request: Request, response: Response, spider: Any = None) -> Response:
        """Write the response. A full disk ends the archiving, not the crawl."""
        if self.writer is None:
            return response
        try:
            self._write(self.writer, request, response)
            self.session.stats.inc_value("recrawl/archived")
        except OSError as error:
            message = f"stopped writing WARC files: {error}"
            logger.error("%s", message)
            self.session.stats.inc_value("recrawl/archive_failed")
            self.session.note(message)
            self.closed("failed")
            self.writer = None
        return response

    def _write(self, writer: WarcWriter, request: Request, response: Response) -> None:
        at = self.session.now()
        headers = [(name, value) for name, values in response.headers.items() for value in values]
        if response.status == 304:
            writer.not_modified(response.url, at, headers=headers, request=_request_bytes(request))
            return
        writer.response(
            response.url,
            at,
            status=response.status,
            reason=to_bytes(RESPONSES.get(response.status, b"")).decode("latin-1"),
            headers=headers,
            body=response.body,
            request=_request_bytes(request),
            truncated="disconnect" if "dataloss" in response.flags else None,
        )

    def closed(self, reason: str) -> None:
        """Finish the last file."""
        if self.writer is not None:
            with suppress(OSError):
                self.writer.close()


def _request_bytes(request: Request) -> bytes:
    """The request as it was sent, as far as Scrapy knows it."""
    target = "/" + request.url.partition("//")[2].partition("/")[2].partition("#")[0]
    host = request.url.partition("//")[2].partition("/")[0]
    head = [f"{request.method} {target} HTTP/1.1", f"Host: {host}"]
    lines = "\r\n".join(head).encode("latin-1", "replace")
    for name, values in request.headers.items():
        for value in values:
            lines += b"\r\n" + name + b": " + value
    return lines + b"\r\n\r\n" + request.body
