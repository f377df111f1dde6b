"""Responses → WARC/1.1 files, each record its own gzip member.

warcio's writer (1.8.1) was tried and is not used, for three reasons. It does not store headers as received: it percent-encodes
what is not ASCII, and a line break in a value or URL ends the header block. It refuses requests whose first line it cannot parse.
It compresses at a fixed level 9: 3,000 pages of HTML with their requests took it 1.32 times the CPU time, for a file of the same
size. What it would replace, `_record` with its digest, is 20 lines; names, rotation and crash safety of files would stay here.

What is in a file is whole, whenever the process ends. A file is named ``….warc.gz.open`` until it is finished.

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

from recrawl.core.version import __version__

Headers = Sequence[tuple[bytes, bytes]]  # name, value
Fields = Sequence[tuple[str, str | None]]  # of a WARC record; None is left out

NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
TRUNCATED = ("length", "time", "disconnect", "unspecified")  #: reasons for which a body may be incomplete
SPECIFICATION = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
_LEVEL = 6  # gzip's own default
_RESPONSE, _REQUEST = "application/http; msgtype=response", "application/http; msgtype=request"


class WarcWriter:
    """Writes to ``<prefix>-<UTC time>-<serial>.warc.gz`` in a folder, and starts a new file before one exceeds `max_bytes`.

    The first file is created with the first record. A write that fails (a full disk) raises its `OSError` and leaves the file as
    it was before.

    >>> from tempfile import mkdtemp
    >>> with WarcWriter(Path(mkdtemp())) as writer:
    ...     at = datetime(2026, 1, 2, tzinfo=UTC)
    ...     writer.response("https://e.org/", at, status=200, reason="OK", headers=[], body=b"<p>text")
    >>> [path.name for path in writer.folder.iterdir()]
    ['recrawl-...-00000.warc.gz']
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
        *,
        status: int,
        reason: str,
        headers: Headers,
        body: bytes,
        request: bytes | None = None,
        truncated: str | None = None,
        ip: str | None = None,
    ) -> None:
        """Write a response, and the request as it was sent. `body` is as received, but without transfer encoding."""
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
        *,
        headers: Headers,
        refers_to_at: datetime | None = None,
        request: bytes | None = None,
        payload_digest: str | None = None,
        ip: str | None = None,
    ) -> None:
        """Write a response with status 304: the page is as it was at `refers_to_at`, when its body had `payload_digest`."""
        fields = (
            ("WARC-IP-Address", ip),
            ("WARC-Profile", NOT_MODIFIED),
            ("WARC-Refers-To-Target-URI", _escaped(url)),
            ("WARC-Refers-To-Date", None if refers_to_at is None else _date(refers_to_at)),
            ("WARC-Payload-Digest", payload_digest),
        )
        # Content-Length stays as received: in a 304 it is the length of the page, which is not in this record.
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
            os.fsync(file.fileno())  # a name without .open guarantees that the file is complete
        os.rename(file.name, str(file.name).removesuffix(".open"))

    def _write(self, data: bytes) -> None:
        if self._file is not None and self._file.tell() + len(data) > self.max_bytes:
            self.close()
        if self._file is None:
            self._file = self._new_file()
        _append(self._file, data)

    def _new_file(self) -> io.FileIO:
        """A new file with its first record."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self._create()
        try:
            _append(file, self._warcinfo(Path(str(file.name)).name.removesuffix(".open")))
        except BaseException:
            file.close()
            os.unlink(file.name)
            raise
        return file

    def _create(self) -> io.FileIO:
        while True:
            name = f"{self.prefix}-{datetime.now(UTC):%Y%m%d%H%M%S}-{self._serial:05d}.warc.gz"
            self._serial += 1
            if (self.folder / name).exists():
                continue
            with suppress(FileExistsError):  # another writer took the name in the same second
                # Unbuffered, so that a record is safe from a crash of this process as soon as it is written.
                return io.FileIO(self.folder / (name + ".open"), "x")

    def _warcinfo(self, name: str) -> bytes:
        info = {
            "software": f"recrawl/{__version__}",
            "format": "WARC File Format 1.1",
            "conformsTo": SPECIFICATION,
            "operator": " ".join(self.operator.split()),
        }
        block = "".join(f"{key}: {value}\r\n" for key, value in info.items() if value).encode()
        fields = (("WARC-Date", _date(datetime.now(UTC))), ("WARC-Filename", name))
        return _record("warcinfo", _new_id(), fields, "application/warc-fields", block)


def _append(file: io.FileIO, data: bytes) -> None:
    """Append all of the data or nothing."""
    start, rest = file.tell(), memoryview(data)
    try:
        while rest:  # an almost full disk accepts a part and fails only at the next write
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
    """A time in UTC, with microseconds if it has any.

    >>> _date(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    '2026-01-02T03:04:05Z'
    """
    if at.tzinfo is None:
        raise ValueError(f"{at} has no time zone; pass an aware time")
    return at.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _escaped(url: str) -> str:
    """A URL that cannot break its header line: without spaces, angle brackets and anything that is not ASCII.

    >>> _escaped("https://e.org/a b?é")
    'https://e.org/a%20b?%C3%A9'
    """
    return re.sub(r"[^!-;=?-~]+", lambda match: quote(match[0], safe="", errors="replace"), url)


# -- HTTP -------------------------------------------------------------------------------------------------------------


def _head(status: int, reason: str, headers: Headers) -> bytes:
    lines = [_line(f"HTTP/1.1 {status} {reason}".encode("latin-1", "replace"))]
    for name, value in headers:
        # The body is stored without transfer encoding.
        if name.strip().lower() != b"transfer-encoding":
            lines.append(_line(name) + b": " + _line(value))
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _line(text: bytes) -> bytes:
    """A text without line breaks, so that no value can end the headers or begin another one."""
    return re.sub(rb"[\r\n]+", b" ", text).strip()


def _with_length(headers: Headers, length: int) -> Headers:
    """The headers with exactly one Content-Length, the actual one."""
    actual, result = (b"Content-Length", str(length).encode()), []
    for name, value in headers:
        if name.strip().lower() != b"content-length":
            result.append((name, value))
        elif actual not in result:
            result.append(actual)
    return result if actual in result else [*result, actual]
