"""Inputs of any kind as byte streams: files, standard input, gzip and zstd seen through."""

from __future__ import annotations

import gzip
import io
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from recrawl.errors import BadSource

HEAD = 64 << 10  #: bytes that are looked at to tell the kind of an input
BLOCK = 8 << 20  #: bytes of lines handed on at a time
MAX_LINE = 256 << 20  #: a longer line is no record
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_BROKEN = (OSError, EOFError, zlib.error, zstandard.ZstdError)


def open_seekable(path: str) -> BinaryIO:
    """A file, or a temporary copy of standard input for ``-``, to be read at any position."""
    if path == "-":
        spool = cast(BinaryIO, tempfile.TemporaryFile(prefix="recrawl-"))
        shutil.copyfileobj(sys.stdin.buffer, spool)
        spool.seek(0)
        return spool
    if Path(path).is_dir():
        raise BadSource(f"{path} is a folder; name the files in it, e.g. {path.rstrip('/')}/*.warc.gz")
    try:
        return open(path, "rb")
    except OSError as error:
        raise BadSource(f"cannot read {path}: {error.strerror or error}") from error


def peek(stream: BinaryIO) -> tuple[bytes, bytes]:
    """The first bytes of a seekable stream: as they are, and without compression."""
    stream.seek(0)
    raw = stream.read(HEAD)
    stream.seek(0)
    try:
        if raw.startswith(_GZIP):
            return raw, zlib.decompressobj(31).decompress(raw, HEAD)
        if raw.startswith(_ZSTD):
            return raw, zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(raw).read(HEAD)
    except _BROKEN:
        pass  # whoever reads on will meet the damage and name it
    return raw, raw


def decompressed(stream: BinaryIO) -> BinaryIO:
    """The stream, with gzip or zstd undone if its first bytes say so."""
    head = stream.peek(4)[:4] if isinstance(stream, io.BufferedReader) else _look(stream)
    if head.startswith(_GZIP):
        return cast(BinaryIO, gzip.GzipFile(fileobj=stream))
    if head.startswith(_ZSTD):
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(stream, read_across_frames=True)
        return cast(BinaryIO, reader)
    return stream


def _look(stream: BinaryIO) -> bytes:
    head = stream.read(4)
    stream.seek(-len(head), io.SEEK_CUR)
    return head


def line_blocks(stream: BinaryIO, block: int = BLOCK, max_line: int = MAX_LINE) -> Iterator[bytes]:
    """Blocks of whole lines; a line longer than `max_line` is cut into a piece that no reader takes for a record.

    Damage in the middle of a compressed stream raises `BadSource` after all that could be read was handed on.
    """
    rest = b""
    while True:
        try:
            more = stream.read(block)
        except _BROKEN as error:
            yield rest
            raise BadSource(f"the compressed stream is damaged: {error}") from error
        if not more:
            break
        whole, newline, tail = more.rpartition(b"\n")
        if newline:
            yield rest + whole + newline
            rest = tail
        else:
            rest += tail
            if len(rest) > max_line:
                yield rest[:1024] + b"\n"
                rest = _skip_line(stream, block)
    if rest:
        yield rest


def _skip_line(stream: BinaryIO, block: int) -> bytes:
    while more := stream.read(block):
        _, newline, tail = more.partition(b"\n")
        if newline:
            return tail
    return b""
