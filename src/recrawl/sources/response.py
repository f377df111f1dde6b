"""A fetched HTTP response → a visit; what archives and crawlers have in common."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from recrawl.web.visit import Outcome, Visit


def response_visit(
    url: str, at: datetime, status: int, headers: Mapping[str, str], body: bytes, payload_digest: str | None = None
) -> Visit:
    """The visit that a response shows; `headers` has lower-case names.

    >>> from datetime import UTC
    >>> seen = response_visit("https://e.org/", datetime(2026, 1, 2, tzinfo=UTC), 301, {"location": "/new"}, b"")
    >>> seen.links, seen.base
    (['/new'], 'https://e.org/')
    """
    validators: dict[str, Any] = {
        "etag": headers.get("etag"),
        "last_modified": headers.get("last-modified"),
        "content_type": headers.get("content-type"),
    }
    if Outcome.of(status) is not Outcome.OK:
        return Visit(url=url, at=at, status=status, **validators)
    from recrawl.web import html as parse  # loads a compiler: formats without HTML are read without it

    location = headers.get("location") if 300 <= status < 400 else None
    page = parse.page(body, validators["content_type"], url, location)
    return Visit(
        url=url,
        at=at,
        status=status,
        links=page.hrefs,
        base=page.base,
        text=page.text,
        title=page.title,
        text_digest=page.text_digest,
        content_bytes=page.content_bytes,
        text_bytes=page.text_bytes,
        payload_digest=payload_digest,
        **validators,
    )
