"""Responses → WARC/1.1 files, each record a gzip member of its own.

Written by hand, like the reader: what a server sent goes into the file byte by byte, and what is in the file is whole, whenever
the process ends. A file is named ``….warc.gz.open`` until it is finished.

References: ISO 28500:2017, https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import zlib
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self
from urllib.parse import quote
from uuid import uuid4

from recrawl import __version__

Headers = Sequence[tuple[bytes, bytes]]  # name, value
Fields = Sequence[tuple[str, str | None]]  # of a WARC record; None is left out

NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
TRUNCATED = ("length", "time", "disconnect", "unspecified")  #: why a body may be cut off
SPECIFICATION = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
_LEVEL = 6  # of gzip: its own default
_RESPONSE, _REQUEST = "application/http; msgtype=response", "application/http; msgtype=request"


class WarcWriter:
    """Writes to ``<prefix>-<UTC time>-<serial>.warc.gz`` in a folder, and to the next file before one passes `max_bytes`.

    No file is made before there is something to write. A write that fails (a full disk) raises its `OSError` and leaves the file
    as it was before.
    """

    def __init__(self, folder: Path, prefix: str = "recrawl", operator: str = "", max_bytes: int = 1 << 30) -> None:
        self.folder, self.operator, self.max_bytes = Path(folder), operator, max_bytes
        self.prefix = re.sub(r"[^A-Za-z0-9._-]+", "-", prefix)
        self._serial = 0
        self._file: io.FileIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def response(
        self,
        url: str,
        at: datetime,
        status: int,
        reason: str,
        headers: Headers,
        body: bytes,
        request: bytes | None = None,
        truncated: str | None = None,
        *,
        ip: str | None = None,
    ) -> None:
        """Write a response, and the request as it was sent; `body` as received, but without transfer encoding."""
        if truncated is not None and truncated not in TRUNCATED:
            raise ValueError(f"truncated is {truncated!r}; it must be None or one of {', '.join(TRUNCATED)}")
        block = _head(status, reason, _with_length(headers, len(body))) + body
        fields = (
            ("WARC-IP-Address", ip),
            ("WARC-Payload-Digest", _digest(body)),
            ("WARC-Truncated", truncated),
        )
        self._exchange("response", url, at, fields, block, request)

    def not_modified(
        self,
        url: str,
        at: datetime,
        headers: Headers,
        refers_to_at: datetime | None,
        request: bytes | None = None,
        *,
        payload_digest: str | None = None,
        ip: str | None = None,
    ) -> None:
        """Write that the server said the page is as it was at `refers_to_at` (status 304), when it had that digest."""
        fields = (
            ("WARC-IP-Address", ip),
            ("WARC-Profile", NOT_MODIFIED),
            ("WARC-Refers-To-Target-URI", _escaped(url)),
            ("WARC-Refers-To-Date", None if refers_to_at is None else _date(refers_to_at)),
            ("WARC-Payload-Digest", payload_digest),
        )
        # Content-Length stays as received: in a 304 it is that of the page, which is not here.
        self._exchange("revisit", url, at, fields, _head(304, "Not Modified", headers), request)

    def _exchange(self, kind: str, url: str, at: datetime, fields: Fields, block: bytes, request: bytes | None) -> None:
        shared = (("WARC-Date", _date(at)), ("WARC-Target-URI", _escaped(url)))
        record_id = _new_id()
        data = _record(kind, record_id, (*shared, *fields), _RESPONSE, block)
        if request is not None:
            data += _record("request", _new_id(), (*shared, ("WARC-Concurrent-To", record_id)), _REQUEST, request)
        self._write(data)

    # -- files --------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Finish the file that is being written."""
        if self._file is None:
            return
        file, self._file = self._file, None
        with file:
            os.fsync(file.fileno())  # a name without .open promises that all is there
        os.rename(file.name, str(file.name).removesuffix(".open"))

    def _write(self, data: bytes) -> None:
        if self._file is not None and self._file.tell() + len(data) > self.max_bytes:
            self.close()
        if self._file is None:
            self._file = self._begun()
        _append(self._file, data)

    def _begun(self) -> io.FileIO:
        """A new file that holds its first record."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self._created()
        try:
            _append(file, self._warcinfo(Path(str(file.name)).name.removesuffix(".open")))
        except BaseException:
            file.close()
            os.unlink(file.name)
            raise
        return file

    def _created(self) -> io.FileIO:
        while True:
            name = f"{self.prefix}-{datetime.now(UTC):%Y%m%d%H%M%S}-{self._serial:05d}.warc.gz"
            self._serial += 1
            if (self.folder / name).exists():
                continue
            with suppress(FileExistsError):  # another writer was here in the same second
                # Without a buffer, so that every record is the system's as soon as it is written.
                return io.FileIO(self.folder / (name + ".open"), "x")

    def _warcinfo(self, name: str) -> bytes:
        told = {
            "software": f"recrawl/{__version__}",
            "format": "WARC File Format 1.1",
            "conformsTo": SPECIFICATION,
            "operator": " ".join(self.operator.split()),
        }
        block = "".join(f"{key}: {value}\r\n" for key, value in told.items() if value).encode()
        fields = (("WARC-Date", _date(datetime.now(UTC))), ("WARC-Filename", name))
        return _record("warcinfo", _new_id(), fields, "application/warc-fields", block)


def _append(file: io.FileIO, data: bytes) -> None:
    """All of the data or nothing."""
    start, rest = file.tell(), memoryview(data)
    try:
        while rest:  # an almost full disk takes a part and says so only the next time
            rest = rest[file.write(rest) :]
    except BaseException:
        with suppress(OSError):
            file.seek(start)
            file.truncate()
        raise


# -- records ----------------------------------------------------------------------------------------------------------


def _record(kind: str, record_id: str, fields: Fields, content_type: str, block: bytes) -> bytes:
    """One record, compressed."""
    lines = [
        "WARC/1.1",
        f"WARC-Type: {kind}",
        f"WARC-Record-ID: {record_id}",
        *(f"{name}: {value}" for name, value in fields if value is not None),
        f"WARC-Block-Digest: {_digest(block)}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(block)}",
    ]
    member = zlib.compressobj(_LEVEL, wbits=31)
    head = "\r\n".join(lines).encode() + b"\r\n\r\n"
    return b"".join((member.compress(head), member.compress(block), member.compress(b"\r\n\r\n"), member.flush()))


def _new_id() -> str:
    return f"<{uuid4().urn}>"


def _digest(data: bytes) -> str:
    return "sha1:" + base64.b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()


def _date(at: datetime) -> str:
    """In UTC, as exactly as it is known.

    >>> _date(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    '2026-01-02T03:04:05Z'
    """
    if at.tzinfo is None:
        raise ValueError(f"{at} has no time zone; give it in UTC")
    return at.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _escaped(url: str) -> str:
    """A URL that ends where its line does: no blanks, no brackets around it, nothing but ASCII.

    >>> _escaped("https://e.org/a b?é")
    'https://e.org/a%20b?%C3%A9'
    """
    return re.sub(r"[^!-;=?-~]+", lambda odd: quote(odd[0], safe="", errors="replace"), url)


# -- HTTP -------------------------------------------------------------------------------------------------------------


def _head(status: int, reason: str, headers: Headers) -> bytes:
    lines = [_line(f"HTTP/1.1 {status} {reason}".encode("latin-1", "replace"))]
    for name, value in headers:
        # The body is stored as one piece, however it came.
        if name.strip().lower() != b"transfer-encoding":
            lines.append(_line(name) + b": " + _line(value))
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _line(text: bytes) -> bytes:
    """One line, so that no value can end the headers or begin another one."""
    return re.sub(rb"[\r\n]+", b" ", text).strip()


def _with_length(headers: Headers, length: int) -> Headers:
    """The headers with one Content-Length, the right one."""
    right, made = (b"Content-Length", str(length).encode()), []
    for name, value in headers:
        if name.strip().lower() != b"content-length":
            made.append((name, value))
        elif right not in made:
            made.append(right)
    return made if right in made else [*made, right]
