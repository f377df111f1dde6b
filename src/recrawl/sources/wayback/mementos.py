"""The captures themselves, as the server of the page sent them ("raw" mementos, RFC 7089)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin

import httpx

from recrawl.errors import ArchiveError, BadRecord, TryAgain
from recrawl.sources.bodies import decoded, too_large
from recrawl.sources.wayback.captures import Capture
from recrawl.sources.wayback.client import Client, content_encoding

MAX_BODY = 32 << 20  # bytes
_MAX_HOPS = 3
_EMPTY = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"  # SHA-1 of no bytes
_PLAYBACK = re.compile(r"/(\d{14})id_/")
_ORIGINAL = "x-archive-orig-"
#: Of the transfer long ago; what arrives here is already unpacked.
_OF_THE_TRANSFER = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection"})


@dataclass(frozen=True, slots=True)
class Memento:
    """A page's body and the headers its own server sent with it, names in lower case."""

    body: bytes
    headers: Mapping[str, str]
    status: int = 200  # of the page's own server, too


class NoMemento(Exception):
    """The archive has no such copy to show; the text is a short stable reason that reports count by."""


def fetch_memento(client: Client, address: str, capture: Capture, max_body: int = MAX_BODY) -> Memento:
    """The raw copy of a capture at an address; raises `NoMemento` when it is not to be had, `ArchiveError` when asking failed.

    The archive shows the nearest copy where it lacks one. That belongs to another time and is never taken for this one.
    """
    shelf = f"{address.partition(f'/{capture.timestamp}id_/')[0]}/"
    for _ in range(_MAX_HOPS):
        answer = client.ask(address, client.memento_pace, lambda response: _read(client, response, capture, max_body))
        if isinstance(answer, Memento):
            return answer
        address = urljoin(address, answer)
        if not address.startswith(shelf):
            raise NoMemento("memento redirects away from the archive")
    raise NoMemento("memento redirects in circles")


def _read(client: Client, response: httpx.Response, capture: Capture, max_body: int) -> Memento | str:
    """The memento, or the place in the archive to look for it."""
    is_copy = "memento-datetime" in response.headers
    if capture.is_bare and is_copy:  # only the copy says what the page's server answered then
        _check_time(response.headers["memento-datetime"], capture)
        body = _body(client, response, capture, max_body) if response.status_code == 200 else b""
        return Memento(body, _headers(response.headers), response.status_code)
    if response.is_redirect:
        return _elsewhere(response, capture)
    if response.status_code in (404, 410):
        raise NoMemento("memento missing")
    if response.status_code in (403, 451):
        raise NoMemento("memento not public")
    if response.status_code != 200:
        complaint = response.headers.get("x-archive-wayback-runtime-error", "")
        raise ArchiveError(f"the archive answered {response.status_code} for a memento {complaint[:160]}".rstrip())
    _check_time(response.headers.get("memento-datetime"), capture)
    return Memento(_body(client, response, capture, max_body), _headers(response.headers))


def _elsewhere(response: httpx.Response, capture: Capture) -> str:
    if "memento-datetime" in response.headers:  # the page itself redirected then, whatever the index says
        raise NoMemento("memento is a redirect")
    location: str = response.headers["location"]
    playback = _PLAYBACK.search(location)
    if playback is None or playback[1] != capture.timestamp:
        raise NoMemento("memento of another time")
    return location


def _check_time(value: str | None, capture: Capture) -> None:
    if value is None:
        raise TryAgain("the archive sent a page of its own instead of a memento")
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        raise TryAgain(f"the archive sent a memento of unreadable time {value[:80]!r}") from None
    if at.replace(tzinfo=at.tzinfo or UTC) != capture.at:
        raise NoMemento("memento of another time")


def _body(client: Client, response: httpx.Response, capture: Capture, max_body: int) -> bytes:
    raw = client.raw_body(response, max_body)
    if raw is None:
        raise NoMemento(too_large(max_body))
    try:
        body = decoded(raw, content_encoding(response), max_body)
    except BadRecord as problem:
        if problem.reason == too_large(max_body):
            raise NoMemento(problem.reason) from None
        raise TryAgain(f"the archive sent a broken memento: {problem}") from problem
    if not body and capture.digest not in (None, _EMPTY):
        raise TryAgain("the archive sent an empty memento for a page that was not empty")
    return body


def _headers(headers: httpx.Headers) -> dict[str, str]:
    """The headers of the page's own server: the archive keeps them under a prefix."""
    kept = {"content-type": headers["content-type"]} if "content-type" in headers else {}
    for name, value in headers.items():
        plain = name.lower().removeprefix(_ORIGINAL)
        if name.lower().startswith(_ORIGINAL) and plain not in _OF_THE_TRANSFER:
            kept[plain] = value
    return kept
