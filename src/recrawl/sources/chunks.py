"""Inputs cut into chunks that can be read independently, by several processes at once."""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BytesIO
from tempfile import TemporaryDirectory
from typing import BinaryIO, cast

from recrawl.errors import BadSource
from recrawl.sources import streams
from recrawl.sources.base import Context, Cut, Source
from recrawl.sources.registry import detect, named

LARGEST, SMALLEST = 32 << 20, 1 << 20  #: bytes of a file cut at records that one process reads at a time


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A part of one input that can be read by itself; or why the input could not be read, or not to its end."""

    label: str
    source: Source | None = None  # None: `failure` says why
    path: str | None = None  # read [start, stop) of this file
    start: int = 0
    stop: int | None = None
    data: bytes | None = None  # or read these lines
    first_line: bytes = b""
    n_lines_before: int = 0
    failure: str | None = None
    n_bytes: int = 0

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """The stream that the source reads."""
        if self.data is not None:
            yield BytesIO(self.data)
            return
        with open(cast(str, self.path), "rb") as file:
            yield file if self.source and self.source.raw else cast(BinaryIO, streams.decompressed(file))

    def context(self, **settings: object) -> Context:
        """What the source is given with it; `settings` as in `Context`."""
        place = {"first_line": self.first_line, "start": self.start, "stop": self.stop, "n_lines": self.n_lines_before}
        return Context(**place, **settings)  # type: ignore[arg-type]


def chunks(paths: list[str], format: str | None, spools: ExitStack) -> Iterator[Chunk]:
    """The chunks of all inputs, in order; copies that readers need last as long as `spools`."""
    for path in paths:
        label = "standard input" if path == "-" else path
        try:
            yield from _cut(path, label, format, spools)
        except BadSource as error:
            yield Chunk(label=label, failure=str(error) if label in str(error) else f"{label}: {error}")
        except OSError as error:
            yield Chunk(label=label, failure=f"cannot read {label}: {error.strerror or error}")


def _cut(path: str, label: str, format: str | None, spools: ExitStack) -> Iterator[Chunk]:
    opened = streams.open_input(path)
    try:
        head, stream = streams.first_bytes(opened)
        source = _source(streams.plain(head), label, format)
        if source.cut is Cut.LINES:
            yield from _cut_lines(label, stream, source, opened.tell if opened.seekable() else None)
            return
        if path == "-" or not opened.seekable():
            # Readers need positions and may be other processes: they get a copy that lasts as long as the import.
            path = streams.spooled(stream, spools.enter_context(TemporaryDirectory(prefix="recrawl-")))
    finally:
        if path != "-":
            opened.close()
    if source.cut is Cut.RECORDS:
        yield from _cut_records(path, label, source)
    else:
        yield Chunk(label=label, source=source, path=path, n_bytes=os.path.getsize(path))


def _source(head: bytes, label: str, format: str | None) -> Source:
    if format and head.strip():
        return named(format)
    return detect(head, label)


def _cut_lines(label: str, stream: BinaryIO, source: Source, position: Callable[[], int] | None) -> Iterator[Chunk]:
    first_line, n_lines, read_to = b"", 0, 0
    for block in streams.line_blocks(streams.decompressed(stream)):
        data = block if n_lines else block.removeprefix(BOM_UTF8)
        first_line = first_line or data.lstrip().partition(b"\n")[0]
        # Progress is counted in bytes of the file, which may be compressed.
        n_bytes = position() - read_to if position else len(block)
        yield Chunk(
            label=label, source=source, data=data, first_line=first_line, n_lines_before=n_lines, n_bytes=n_bytes
        )
        n_lines += block.count(b"\n")
        read_to += n_bytes


def _cut_records(path: str, label: str, source: Source) -> Iterator[Chunk]:
    with open(path, "rb") as stream:
        size, start = os.path.getsize(path), 0
        step = min(LARGEST, max(size // 16, SMALLEST))  # enough of them to keep all workers busy to the end
        while start < size:
            target = start + step
            stop = source.next_record(stream, target) if target < size else None
            stop = size if stop is None else stop
            yield Chunk(label=label, source=source, path=path, start=start, stop=stop, n_bytes=stop - start)
            start = stop
