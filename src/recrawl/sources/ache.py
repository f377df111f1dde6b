"""What the focused crawler ACHE stores: pages as JSON (files, Kafka) and as Elasticsearch documents; and its marks in WARC files.

ACHE's documentation ("Data Formats") names the fields. It stores no HTTP status: what it keeps was received, so 200 is assumed.
A page that was reached by a redirect becomes two visits, one of the requested URL (assumed 302) and one of the page itself.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, BinaryIO

from recrawl.errors import BadRecord, BadUrl
from recrawl.sources.base import Context, Cut, Source
from recrawl.sources.bodies import decoded, too_large
from recrawl.sources.json_objects import json_object
from recrawl.sources.response import response_visit
from recrawl.web.urls import canonical
from recrawl.web.visit import Visit, parse_at

#: Keys that no visit record has, as they stand in JSON: in a text of a page their quotes are escaped.
_KEYS = re.compile(
    rb'(?<!\\)"(redirected_url|response_body|fetch_time|crawler_id|topPrivateDomain|wordsMeta|retrieved)"\s*:'
)
_AT = re.compile(rb'(?<!\\)"at"\s*:')  # a visit record has it, and may have any other field besides
_MILLISECONDS = 1e11  # a greater number of seconds is a year after 5000
_WARC_MARK = "ache-"


class Ache(Source):
    r"""Pages stored by ACHE: JSON lines or one JSON object (FILES, FILESYSTEM_JSON, KAFKA), or documents of ELASTICSEARCH.

    >>> from io import BytesIO
    >>> page = b'{"url": "https://e.org/", "content": "PGEgaHJlZj0iYSI+YTwvYT4=", "content_type": "text/html", '
    >>> page += b'"fetch_time": 1767312000000, "relevance": {"relevance": 0.75, "isRelevant": true}}'
    >>> [(visit.at.isoformat(), visit.links, visit.relevance) for visit in Ache().read(BytesIO(page), Context())]
    [('2026-01-02T00:00:00+00:00', ['a'], 0.75)]
    """

    name = "ache"
    cut = Cut.LINES

    def detects(self, head: bytes, filename: str = "") -> bool:
        """Whether a file begins with a JSON object that has keys of ACHE."""
        line = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
        return line.startswith(b"{") and bool(_KEYS.search(line)) and not _AT.search(line)

    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        """The visits of each line."""
        for line in context.lines(stream):
            try:
                yield from list(_visits(_record(line), context))
            except BadRecord as error:
                yield error
            except BadUrl as error:
                yield BadRecord("not a URL", str(error)[:200])


def _record(line: bytes) -> Mapping[str, Any]:
    record = json_object(line)
    inner = record.get("_source")  # as Elasticsearch and its dump tools give documents
    return inner if isinstance(inner, dict) else record


def _visits(record: Mapping[str, Any], context: Context) -> Iterator[Visit]:
    url = _url(record.get("url"))
    at = _moment(record["fetch_time"] if "fetch_time" in record else record.get("retrieved"), context.now)
    final = _url(record["redirected_url"]) if record.get("redirected_url") else url
    if final != url:
        yield _redirect(url, at, final)
    headers = _headers(record)
    body = _body(record, context.max_body)
    if body is None:
        page = Visit(
            url=final, at=at, content_type=headers.get("content-type"), text=_text(record), title=_title(record)
        )
    else:
        page = response_visit(final, at, 200, headers, decoded(body, headers, context.max_body))
    yield replace(page, relevance=relevance_of(record.get("relevance"), record.get("isRelevant")))


def _url(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise BadRecord("no url", repr(value)[:80])
    return canonical(value, keep_tracking=True)


def _moment(value: Any, now: datetime | None) -> datetime:
    """Milliseconds since 1970, as Java counts them; seconds and ISO 8601 are read, too. ACHE writes 0 where it does not know."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not value:
            raise BadRecord("no time", "fetch_time is 0")
        value = value / 1000 if value > _MILLISECONDS else value
    return parse_at(value, now=now)


def _headers(record: Mapping[str, Any]) -> dict[str, str]:
    """The response headers by lower-case names, the first value of each; the content type also from its own field."""
    given = record.get("response_headers", record.get("responseHeaders"))
    headers: dict[str, str] = {}
    for name, values in given.items() if isinstance(given, dict) else ():
        value = values[0] if isinstance(values, list) and values else values
        if isinstance(value, str):
            headers.setdefault(name.lower(), value)
    if isinstance(record.get("content_type"), str):
        headers.setdefault("content-type", record["content_type"])
    if isinstance(record.get("html"), str):  # a text now, whatever its bytes were
        headers["content-type"] = "text/html; charset=utf-8"
    return headers


def _body(record: Mapping[str, Any], limit: int) -> bytes | None:
    """The page: Base64, or a text in documents of Elasticsearch and of versions before 0.8; None: not stored."""
    text = record.get("html", record.get("response_body"))
    if isinstance(text, str):
        return text.encode("utf-8", "replace")
    content = record.get("content")
    if not isinstance(content, str):
        return None
    if len(content) > limit * 3 // 2:
        raise BadRecord(too_large(limit))
    try:
        return b64decode(content)
    except (NotBase64, ValueError) as error:
        raise BadRecord("content is not Base64", str(error)[:80]) from None


def _text(record: Mapping[str, Any]) -> str | None:
    text = record.get("text")
    return text if isinstance(text, str) and text else None


def _title(record: Mapping[str, Any]) -> str | None:
    title = record.get("title")
    return title if isinstance(title, str) and title else None


def relevance_of(value: Any, is_relevant: Any = None) -> float | None:
    """The relevance that ACHE's page classifier gave, from 0 to 1; where there is no such number, 1 or 0 by its verdict.

    >>> relevance_of({"relevance": 0.25, "isRelevant": False}), relevance_of("0,7500000000"), relevance_of(None, "relevant")
    (0.25, 0.75, 1.0)
    >>> relevance_of(-3.0, False), relevance_of(None)
    (0.0, None)
    """
    if isinstance(value, dict):
        value, is_relevant = value.get("relevance"), value.get("isRelevant")
    try:
        number = float(
            value.replace(",", ".") if isinstance(value, str) else value
        )  # Java writes it as the locale does
        if 0 <= number <= 1:
            return number
    except (TypeError, ValueError):
        pass
    verdicts = {"true": 1.0, "relevant": 1.0, "false": 0.0, "irrelevant": 0.0}
    return verdicts.get(str(is_relevant).lower())


def _redirect(url: str, at: datetime, target: str) -> Visit:
    return Visit(url=url, at=at, status=302, links=[target])


# -- WARC files -------------------------------------------------------------------------------------------------------


def is_in_warc(headers: Mapping[str, str]) -> bool:
    """Whether ACHE wrote a record: it then begins with the HTTP headers, without a status line."""
    return any(name.startswith(_WARC_MARK) for name in headers)


def from_warc(visit: Visit, headers: Mapping[str, str]) -> Iterator[Visit]:
    """The visits of such a record: with the relevance that ACHE gave, and the redirect that led to it."""
    requested = headers.get("ache-requested-url")
    if requested:
        try:
            if (asked := canonical(requested, keep_tracking=True)) != visit.url:
                yield _redirect(asked, visit.at, visit.url)
        except BadUrl:
            pass  # the page itself has a usable URL
    yield replace(visit, relevance=relevance_of(headers.get("ache-relevance"), headers.get("ache-isrelevant")))
