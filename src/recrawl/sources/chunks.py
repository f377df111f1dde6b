"""Inputs cut into pieces that can be read apart, by several processes at once."""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import BinaryIO

from recrawl.errors import BadSource
from recrawl.sources import Shape, Source, detect, framing, named, streams

PIECE, SMALL_PIECE = 32 << 20, 1 << 20  #: bytes of a WARC file read by one process at a time, at most and at least


@dataclass(frozen=True)
class Piece:
    """A part of one input that can be read by itself."""

    label: str
    source: str
    path: str | None = None  # read [start, stop) of this file
    start: int = 0
    stop: int | None = None
    data: bytes | None = None  # or read these lines
    first_line: bytes = b""
    n_lines_before: int = 0
    failure: str | None = None  # or tell that the input could not be read (on)
    n_bytes: int = 0


def pieces(paths: list[str], format: str | None, spools: ExitStack) -> Iterator[Piece]:
    """The pieces of all inputs, in order; copies that readers need last as long as `spools`."""
    for path in paths:
        label = "standard input" if path == "-" else path
        try:
            yield from _cut(path, label, format, spools)
        except BadSource as error:
            yield Piece(label, "", failure=str(error) if label in str(error) else f"{label}: {error}")
        except OSError as error:
            yield Piece(label, "", failure=f"cannot read {label}: {error.strerror or error}")


def _cut(path: str, label: str, format: str | None, spools: ExitStack) -> Iterator[Piece]:
    opened = streams.open_input(path)
    try:
        head, stream = streams.first_bytes(opened)
        source = _source(streams.plain(head), label, format)
        if source.shape is Shape.LINES:
            yield from _cut_lines(label, stream, source, opened.tell if opened.seekable() else None)
            return
        if path == "-" or not opened.seekable():
            # Whoever reads needs positions, and may be another process: it gets a copy that lasts as long as the import.
            path = streams.spooled(stream, spools.enter_context(TemporaryDirectory(prefix="recrawl-")))
    finally:
        if path != "-":
            opened.close()
    if source.shape is Shape.RECORDS:
        yield from _cut_records(path, label, source)
    else:
        yield Piece(label, source.name, path=path, n_bytes=os.path.getsize(path))


def _source(head: bytes, label: str, format: str | None) -> Source:
    if format and head.strip():
        return named(format)
    return detect(head, label)


def _cut_lines(label: str, stream: BinaryIO, source: Source, position: Callable[[], int] | None) -> Iterator[Piece]:
    first_line, n_lines, read_to = b"", 0, 0
    for block in streams.line_blocks(streams.decompressed(stream)):
        data = block if n_lines else block.removeprefix(BOM_UTF8)
        first_line = first_line or data.lstrip().partition(b"\n")[0]
        # Progress is told in bytes of the file, which may be compressed.
        n_bytes = position() - read_to if position else len(block)
        yield Piece(label, source.name, data=data, first_line=first_line, n_lines_before=n_lines, n_bytes=n_bytes)
        n_lines += block.count(b"\n")
        read_to += n_bytes


def _cut_records(path: str, label: str, source: Source) -> Iterator[Piece]:
    with open(path, "rb") as stream:
        size, start = os.path.getsize(path), 0
        piece = min(PIECE, max(size // 16, SMALL_PIECE))  # enough of them to keep all workers busy to the end
        while start < size:
            target = start + piece
            stop = framing.next_record(stream, target) if target < size else None
            stop = size if stop is None else stop
            yield Piece(label, source.name, path=path, start=start, stop=stop, n_bytes=stop - start)
            start = stop
