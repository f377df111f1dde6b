"""HTTP/1.1 as far as a made-up server needs it: read a request, send a response, whole or broken on purpose."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from enum import StrEnum
from http import HTTPStatus

_NO_LINGER = struct.pack("ii", 1, 0)
_EXTRA = b"<p>and more than was announced</p>"
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class Fault(StrEnum):
    """What a response does wrong on purpose."""

    NONE = ""
    SERVER_ERROR = "server error"
    RESET = "reset"
    SHORT = "short"
    LONG = "long"
    SLOW = "slow"
    LYING_ETAG = "lying etag"  # 304 by a tag that stayed the same while the page changed
    THROTTLED = "throttled"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request without its body; the names of headers are in lower case."""

    method: str
    path: str  # with the query
    headers: Mapping[str, str]
    version: str = "HTTP/1.1"

    @property
    def has_validators(self) -> bool:
        """Whether the client has a copy and wants a newer one."""
        return "if-none-match" in self.headers or "if-modified-since" in self.headers

    @property
    def wants_close(self) -> bool:
        """Whether the connection ends with the response."""
        return self.version != "HTTP/1.1" or self.headers.get("connection", "").lower() == "close"

    def has_copy(self, etag: str | None, modified: datetime | None) -> bool:
        """Whether the client's copy has this tag or, if it sends no tag, is not older than this date."""
        if (tags := self.headers.get("if-none-match")) is not None:
            known = [tag.strip().removeprefix("W/") for tag in tags.split(",")]
            return etag is not None and (etag.removeprefix("W/") in known or "*" in known)
        seen = _date(self.headers.get("if-modified-since"))
        return seen is not None and modified is not None and modified <= seen


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What a server sends back."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    fault: Fault = Fault.NONE

    def sent(self, request: HttpRequest) -> bytes:
        """The part of the body that is sent to the client, or more than the body."""
        if request.method == "HEAD" or not self.body:
            return b""
        if self.fault in (Fault.SHORT, Fault.RESET):
            return self.body[: len(self.body) // 2]
        return self.body + _EXTRA if self.fault is Fault.LONG else self.body


class Wire:
    """One connection of a client, and what was sent on it since the last `begin`."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.begin()

    def begin(self) -> None:
        """Get ready for the next response."""
        self.status, self.n_bytes, self.is_over = 0, 0, False

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the first part of a response."""
        self._writer.write(_head(status, headers))
        self.status = status

    async def body(self, data: bytes) -> None:
        """Send a part of the body, and wait while the client is slower than we are."""
        self._writer.write(data)
        self.n_bytes += len(data)
        await self._writer.drain()

    def close(self) -> None:
        """End the connection after the response."""
        self.is_over = True

    def reset(self) -> None:
        """End the connection at once, with a reset."""
        self.is_over = True
        self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self._writer.transport.abort()

    async def send(self, response: HttpResponse, request: HttpRequest) -> None:
        """Send a whole response, or one with its fault."""
        body, headers = response.sent(request), dict(response.headers)
        if response.status != HTTPStatus.NOT_MODIFIED:
            headers["Content-Length"] = str(len(response.body))
        # One write: a head and a body in two packets would take twice the time.
        self._writer.write(_head(response.status, headers) + body)
        self.status, self.n_bytes = response.status, len(body)
        await self._writer.drain()
        if response.fault is Fault.RESET and body:
            self.reset()
        elif len(body) not in (0, len(response.body)) or request.wants_close:
            self.close()


async def read_request(reader: asyncio.StreamReader) -> HttpRequest | None:
    """The next request of a connection; None where there is none, or where it cannot be parsed."""
    try:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, version = first.split(" ")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        return None
    pairs = (line.partition(":") for line in lines if line)
    return HttpRequest(method, path, {name.lower(): value.strip() for name, _, value in pairs}, version)


def http_date(at: datetime) -> str:
    """A moment as in HTTP headers.

    >>> http_date(datetime(2020, 7, 13, tzinfo=UTC))
    'Mon, 13 Jul 2020 00:00:00 GMT'
    """
    return format_datetime(at.astimezone(UTC), usegmt=True)


def _date(text: str | None) -> datetime | None:
    try:
        return parsedate_to_datetime(text) if text else None
    except ValueError:
        return None


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, '')}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
