"""The crawls that the table of Dang et al. (2022) was made from: JSON lines, one object per fetch, with all its links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, BinaryIO

from recrawl.errors import BadRecord
from recrawl.sources.base import Context, Cut, Source
from recrawl.sources.json_objects import json_object
from recrawl.sources.lbla.numbers import NumberReader
from recrawl.web.visit import Given, Visit, parse_at

_MARKS = (b'"internalLinks"', b'"externalLinks"', b'"urlViewInfo"', b'"semanticVector"')
_TOP = frozenset({"url", "fetch", "history", "urlViewInfo"})
_FETCH = frozenset(
    {"fetchDate", "contentDigest", "contentLength", "textSize", "textQuality", "semanticVector", "internalLinks",
     "externalLinks"}
)  # fmt: skip
_NO_ZONE = "fetchDate has no time zone; it is taken as UTC"


class LblaCrawls(Source):
    r"""The authors' crawls. Links, sizes, digest and vector are in ``fetch``, inlinks and TrustRank in ``urlViewInfo``.

    >>> from io import BytesIO
    >>> fetch = b'{"fetchDate": "2020-07-13 08:15", "internalLinks": [{"targetUrl": "https://e.org/a"}], "textSize": 7}'
    >>> [visit] = LblaCrawls().read(BytesIO(b'{"url": "https://e.org/", "fetch": %b}\n' % fetch), Context())
    >>> visit.links, visit.text_bytes, str(visit.at)
    (['https://e.org/a'], 7, '2020-07-13 08:15:00+00:00')
    """

    name = "lbla-crawls"
    cut = Cut.LINES

    def detects(self, head: bytes, filename: str = "") -> bool:
        """Whether a file begins with a JSON object that describes a fetch as these crawls do."""
        is_json = head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
        return is_json and b'"fetch"' in head and any(mark in head for mark in _MARKS)

    def read(self, stream: BinaryIO, context: Context) -> Iterator[Visit | BadRecord]:
        """A visit per line; fields that are not used are counted."""
        numbers = NumberReader(context.not_numbers)
        for line in context.lines(stream):
            try:
                yield _visit(json_object(line), numbers, context)
            except BadRecord as error:
                yield error


def _visit(record: Mapping[str, Any], numbers: NumberReader, context: Context) -> Visit:
    url, fetch = record.get("url"), record.get("fetch")
    if not isinstance(url, str) or not url:
        raise BadRecord("no url", repr(url)[:80])
    if not isinstance(fetch, dict):
        raise BadRecord("no fetch", repr(fetch)[:80])
    context.unknown_fields.update(record.keys() - _TOP)
    context.unknown_fields.update(f"fetch.{name}" for name in fetch.keys() - _FETCH)
    digest = fetch.get("contentDigest")
    return Visit(
        url=url,
        at=_at(fetch.get("fetchDate"), context),
        links=[*_links(fetch, "internalLinks"), *_links(fetch, "externalLinks")],
        content_bytes=numbers.whole("contentLength", fetch.get("contentLength")),
        text_bytes=numbers.whole("textSize", fetch.get("textSize")),
        text_quality=numbers.number("textQuality", fetch.get("textQuality")),
        text_digest=digest if isinstance(digest, str) and digest else None,  # of the content without its links
        vector=numbers.vector("semanticVector", fetch.get("semanticVector")),
        given=_given(record.get("urlViewInfo"), numbers),
    )


def _at(value: Any, context: Context) -> datetime:
    """When the page was fetched; the authors write "2020-07-13 08:15"."""
    if isinstance(value, str):
        try:
            at = datetime.fromisoformat(value.strip())
        except ValueError:
            return parse_at(value, now=context.now)
        if at.tzinfo is None:
            value = at.replace(tzinfo=UTC)
            if _NO_ZONE not in context.notes:
                context.notes.append(_NO_ZONE)
    return parse_at(value, now=context.now)


def _links(fetch: Mapping[str, Any], name: str) -> list[str]:
    """The targets of a list of links; as in the authors' program, a list that is not there has none."""
    links = fetch.get(name) or []
    if not isinstance(links, list):
        raise BadRecord("links is not a list", f"{name} is {links!r}"[:80])
    targets = (link.get("targetUrl") if isinstance(link, dict) else link for link in links)
    return [target for target in targets if isinstance(target, str)]


def _given(info: Any, numbers: NumberReader) -> Given | None:
    """Inlinks and TrustRank, where they are stated."""
    if not isinstance(info, dict):
        return None
    given = Given(
        n_inlinks_internal=numbers.whole("numInLinksInt", info.get("numInLinksInt")),
        n_inlinks_external=numbers.whole("numInLinksExt", info.get("numInLinksExt")),
        trustrank=numbers.number("TrustValue", _trust(info)),
    )
    return given if given != Given() else None


def _trust(info: Mapping[str, Any]) -> Any:
    """The metric TrustValue, in the first entry of the metrics."""
    for entry in _entries(next(iter(_entries(info)), None)):
        if isinstance(entry, dict) and entry.get("id") == "TrustValue":
            return entry.get("value")
    return None


def _entries(holder: Any) -> list[Any]:
    metrics = holder.get("metrics") if isinstance(holder, dict) else None
    entries = metrics.get("entries") if isinstance(metrics, dict) else None
    return entries if isinstance(entries, list) else []
