"""Inputs of any kind as byte streams: files, pipes, standard input; gzip, zstd and zlib are decompressed on the fly."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, cast

import zstandard

from recrawl.core.places import ObjectPath, object_at
from recrawl.errors import BadSource

HEAD = 256 << 10  #: bytes from which the format of an input is detected; more than the largest block of zstd
BLOCK = 8 << 20  #: bytes of lines handed on at a time
MAX_LINE = 256 << 20  #: a longer line is not a record
MAX_WINDOW = 1 << 27  #: the most memory that a zstd stream may ask for
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_ZLIB = (b"\x78\x01", b"\x78\x9c", b"\x78\xda")  # DEFLATE as ACHE writes it; by level
#: Beginnings of compressed streams, and bytes unpacked at a time: little, since zstd has no limit on what one call returns.
_FEED = {_GZIP: 4096, _ZSTD: 512, **dict.fromkeys(_ZLIB, 4096)}
_UNPACKED_AT_ONCE = 1 << 20


def open_input(path: str) -> BinaryIO:
    """A file, a named pipe, an object of a store by its URL, or standard input for ``-``."""
    if path == "-":
        if sys.stdin is None:
            raise BadSource("standard input is closed")
        return cast(BinaryIO, sys.stdin.buffer)
    if (stored := object_at(path)) is not None:
        return cast(BinaryIO, io.BufferedReader(_Downloaded(stored), HEAD))
    if os.path.isdir(path):
        raise BadSource(f"{path} is a folder; name the files in it, e.g. {path.rstrip('/')}/*.warc.gz")
    try:
        return open(path, "rb")
    except (OSError, ValueError) as error:
        raise BadSource(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


class _Downloaded(io.RawIOBase):
    """An object of a store, as it comes."""

    def __init__(self, stored: ObjectPath) -> None:
        self._chunks, self._left = stored.chunks(), memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._left:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._left = memoryview(chunk)
        n = min(len(buffer), len(self._left))
        buffer[:n] = self._left[:n]
        self._left = self._left[n:]
        return n


def first_bytes(stream: BinaryIO) -> tuple[bytes, BinaryIO]:
    """The first bytes of a stream, and the stream from its beginning, also where one cannot go back."""
    start = stream.tell() if stream.seekable() else 0
    head = b""
    while len(head) < HEAD and (more := stream.read(HEAD - len(head))):
        head += more  # a pipe gives what it has
    if stream.seekable():
        stream.seek(start)
        return head, stream
    return head, cast(BinaryIO, io.BufferedReader(_Rejoined(head, stream)))


class _Rejoined(io.RawIOBase):
    """Bytes already read, and the stream they were read from."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head, self._stream = memoryview(head), stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._head[: len(buffer)] if self._head else self._stream.read(len(buffer))
        self._head = self._head[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


def spooled(stream: BinaryIO, folder: str) -> str:
    """The path of a copy of a stream, for readers that need positions."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as copy:
            shutil.copyfileobj(stream, copy, 1 << 20)
            return copy.name
    except OSError as error:
        hint = "; a folder with more space can be named by the environment variable TMPDIR"
        raise BadSource(f"cannot copy the input to {folder}: {error.strerror or error}{hint}") from error


def plain(head: bytes) -> bytes:
    """The first bytes of an input without compression."""
    try:
        if head.startswith((_GZIP, *_ZLIB)):
            member = zlib.decompressobj(_window(head[:2]))
            data = member.decompress(head, HEAD)
            return data if data or member.eof else head
        if head.startswith(_ZSTD):
            return zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).stream_reader(head).read(HEAD) or head
    except (zlib.error, zstandard.ZstdError):
        pass  # reading on will report the damage
    return head


def decompressed(stream: BinaryIO) -> io.BufferedReader:
    """The stream, with gzip, zstd or zlib undone if its first bytes say so."""
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, stream))
    head = buffered.peek(4)
    for magic in _FEED:
        if head.startswith(magic):
            return io.BufferedReader(_Unpacked(cast(BinaryIO, buffered), magic))
    return buffered


class _Unpacked(io.RawIOBase):
    """A gzip, zstd or zlib stream of any number of members, unpacked.

    Raises `BadSource` where the stream is damaged, but only after all that could be read before was handed on.
    """

    def __init__(self, stream: BinaryIO, magic: bytes) -> None:
        self._stream, self._magic = stream, magic
        self._packed, self._ready = b"", memoryview(b"")
        self._error: BadSource | None = None
        self._in_member, self._ended = False, False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._ready and not self._ended:
            try:
                self._unpack()
            except (zlib.error, zstandard.ZstdError, OSError) as error:
                self._fail(str(error))
        if not self._ready and self._error:
            raise self._error
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n

    def _fail(self, why: str) -> None:
        self._error, self._ended = BadSource(f"the compressed stream is damaged: {why}"), True

    def _unpack(self) -> None:
        self._packed = self._packed or self._stream.read(_FEED[self._magic])
        if not self._packed:
            self._ended = True
            if self._in_member:
                self._fail("it ends too early")
        elif not self._in_member and not self._packed.startswith(self._magic[: len(self._packed)]):
            self._after_members()
        else:
            self._step()

    def _after_members(self) -> None:
        self._packed = self._packed.lstrip(b"\0")  # padding, as tapes and some tools leave it
        if self._packed and not self._packed.startswith(self._magic[: len(self._packed)]):
            self._fail("something else follows the compressed data")

    def _step(self) -> None:
        if not self._in_member:
            self._member = _start(self._magic)
            self._in_member = True
        unpacked, self._packed, eof = self._member(self._packed)
        self._ready, self._in_member = memoryview(unpacked), not eof


def _start(magic: bytes) -> Callable[[bytes], tuple[bytes, bytes, bool]]:
    """A new member: packed bytes → unpacked ones, packed ones not used yet, and whether the member has ended."""
    if magic == _ZSTD:
        zstd = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).decompressobj()
        return lambda packed: (zstd.decompress(packed), zstd.unused_data, zstd.eof)
    member = zlib.decompressobj(_window(magic))
    return lambda packed: (
        member.decompress(packed, _UNPACKED_AT_ONCE),
        member.unused_data if member.eof else member.unconsumed_tail,
        member.eof,
    )


def _window(magic: bytes) -> int:
    """What zlib calls the format: 31 is gzip, 15 its own."""
    return 31 if magic == _GZIP else 15


def line_blocks(stream: io.BufferedReader, block: int = BLOCK, max_line: int = MAX_LINE) -> Iterator[bytes]:
    """Blocks of whole lines; of a line longer than `max_line` only the beginning, which no reader takes for a record.

    Damage in a compressed stream raises `BadSource` after all whole lines before it were handed on.
    """
    rest, skipping = bytearray(), False
    try:
        while more := stream.read1(block):
            if skipping:
                _, newline, more = more.partition(b"\n")
                skipping = not newline
            rest += more
            if len(rest) >= block:
                end = rest.rfind(b"\n") + 1
                if end:
                    yield bytes(rest[:end])
                    del rest[:end]
                elif len(rest) > max_line:
                    yield bytes(rest[:1024]) + b"\n"
                    rest, skipping = bytearray(), True
    except BadSource:
        yield bytes(rest[: rest.rfind(b"\n") + 1])
        raise
    except OSError as error:
        yield bytes(rest[: rest.rfind(b"\n") + 1])
        raise BadSource(f"cannot read on: {error.strerror or error}") from error
    if rest:
        yield bytes(rest)


def text_lines(stream: BinaryIO, max_length: int = 64 << 20) -> Iterator[str]:
    """Lines of text with their ends; one that is longer is cut, so that no line can fill the memory."""
    text = io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline="")
    while line := text.readline(max_length):
        yield line.replace("\0", "\ufffd")
