"""HTTP bodies decoded: chunks joined, compression undone, never beyond a limit."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping

import zstandard

from recrawl.errors import BadRecord
from recrawl.sources.base import MAX_BODY

_TEXT = re.compile(rb"\s*<[!a-zA-Z?]|$")
GZIP, DEFLATE, RAW_DEFLATE = 31, 15, -15  # zlib's window codes


def decoded(body: bytes, headers: Mapping[str, str], limit: int = MAX_BODY) -> bytes:
    """The body without transfer and content encoding; a wrong encoding header does no harm, a decompression bomb is refused.

    >>> decoded(b"3\\r\\nabc\\r\\n0\\r\\n\\r\\n", {"transfer-encoding": "chunked"})
    b'abc'
    """
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = unchunked(body)
    encodings = [name.strip() for name in headers.get("content-encoding", "").lower().split(",")]
    for encoding in reversed(encodings):
        body = _decompressed(body, encoding, limit)
    return checked(body, limit)


def checked(body: bytes, limit: int) -> bytes:
    """The body, if it is within the limit."""
    if len(body) > limit:
        raise BadRecord(too_large(limit))
    return body


def too_large(limit: int) -> str:
    """The reason that reports count oversized bodies by."""
    return f"body over {limit >> 20} MiB" if limit >= 1 << 20 else f"body over {limit:,} bytes"


def unchunked(body: bytes) -> bytes:
    """Join the chunks of a body; one that was never chunked, or is cut off, is used as far as possible.

    >>> unchunked(b"<html>not chunked"), unchunked(b"5\\r\\nhel")
    (b'<html>not chunked', b'hel')
    """
    parts: list[bytes] = []
    at = 0
    while at < len(body):
        end = body.find(b"\r\n", at, at + 1024)
        size = _chunk_size(body[at:end]) if end > at else None
        if size is None:
            # Archives often keep the header of a body that they stored joined.
            return body if not parts else b"".join(parts) + body[at:]
        if size == 0:
            break
        parts.append(body[end + 2 : end + 2 + size])
        at = end + 2 + size
        if body[at : at + 2] == b"\r\n":
            at += 2
    return b"".join(parts)


def _chunk_size(line: bytes) -> int | None:
    digits = line.partition(b";")[0].strip()
    try:
        return int(digits, 16) if digits and not digits.startswith((b"-", b"+")) and b"_" not in digits else None
    except ValueError:
        return None


def _decompressed(body: bytes, encoding: str, limit: int) -> bytes:
    if encoding in ("gzip", "x-gzip") and body[:2] == b"\x1f\x8b":
        return _inflated(body, GZIP, limit)
    if encoding == "zstd" and body[:4] == b"\x28\xb5\x2f\xfd":
        return _unzstd(body, limit)
    if encoding in ("deflate", "br") and not _TEXT.match(body):  # neither has a mark of its own
        unpack = _unbrotli if encoding == "br" else _undeflated
        return unpack(body, limit)
    return body  # identity, unknown, or a header that lies


def _undeflated(body: bytes, limit: int) -> bytes:
    return _inflated(body, DEFLATE if body[:1] == b"\x78" else RAW_DEFLATE, limit)


def _inflated(body: bytes, window: int, limit: int) -> bytes:
    parts, size = [], 0
    while body:
        stream = zlib.decompressobj(window)
        try:
            part = stream.decompress(body, limit + 1 - size)
        except zlib.error as error:
            raise BadRecord("broken compression", str(error)) from None
        parts.append(part)
        size += len(part)
        if size > limit:
            raise BadRecord(too_large(limit))
        if not stream.eof:
            raise BadRecord("broken compression", "the body ends too early")
        body = stream.unused_data if stream.unused_data[:2] == b"\x1f\x8b" else b""
    return b"".join(parts)


def _unzstd(body: bytes, limit: int) -> bytes:
    stream = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
    parts, size = [], 0
    try:
        for at in range(0, len(body), 512):  # little at a time: the library has no limit on what one call returns
            parts.append(stream.decompress(body[at : at + 512]))
            size += len(parts[-1])
            if size > limit:
                raise BadRecord(too_large(limit))
            if stream.eof:
                break
        if not stream.eof:
            raise BadRecord("broken compression", "the body ends too early")
    except zstandard.ZstdError as error:
        raise BadRecord("broken compression", str(error)) from None
    return b"".join(parts)


def _unbrotli(body: bytes, limit: int) -> bytes:
    from io import BytesIO

    from fastwarc.stream_io import BrotliReader

    try:
        unpacked: bytes = BrotliReader(BytesIO(body)).read(limit + 1)
    except (OSError, ValueError, EOFError) as error:
        raise BadRecord("broken compression", str(error)) from None
    return checked(unpacked, limit)  # not above: what is too large is not broken
