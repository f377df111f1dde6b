"""Readers of files that others wrote: visits in every format, bodies, labels, plans."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, cast

import zstandard

import recrawl.sources
from fuzz import seeds
from fuzz.seeds import words
from fuzz.target import MAX_BODY, NOW, Target, written
from recrawl.crawl.planned import read_plan
from recrawl.errors import BadRecord, BadUrl
from recrawl.history import BatchBuilder
from recrawl.sources import Context, Cut, Source
from recrawl.sources.bodies import decoded
from recrawl.sources.labels import read_labels
from recrawl.sources.streams import HEAD, decompressed, line_blocks, plain
from recrawl.web.visit import Visit

JSON_LINES = ("jsonl", "ache", "lbla-crawls", "cdxj")


def all_targets() -> Iterator[Target]:
    """Every source, and what is read before and beside it."""
    samples = seeds.of_sources()
    every = [data for each in samples.values() for data in each]
    for source in recrawl.sources.ALL:
        of_format = words("json") if source.name in JSON_LINES else words("http", "url", "zip")
        yield Target(name=source.name, run=_read_source(source), seeds=samples.get(source.name, every), words=of_format)
    yield Target(name="detect", run=_detect, seeds=every, words=words("html", "json"))
    yield Target(name="decompress", run=_decompress, seeds=[*samples["jsonl"], *samples["warc"][:3]])
    yield Target(name="body", run=_body, seeds=[bytes([i]) + data for i, data in enumerate(_bodies())])
    rows = [b"text,label\nsome words,yes\n", b'{"url": "https://e.org/", "label": 1}\n']
    yield Target(name="labels", run=_labels, seeds=rows, words=words("json"))
    plans = [b"https://e.org/\nhttps://e.org/b\n", b'{"url": "https://e.org/", "rank": 1}\n']
    yield Target(name="plan-file", run=_plan_file, seeds=plans, words=words("url", "json"))


def _read_source(source: Source) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        source.detects(plain(data[:HEAD]), "input")
        stream = cast(BinaryIO, io.BytesIO(data))
        if not source.raw:
            stream = io.BytesIO(decompressed(stream).read(MAX_BODY))
        first = stream.getvalue().lstrip().partition(b"\n")[0] if isinstance(stream, io.BytesIO) else b""
        context = Context(max_body=MAX_BODY, now=NOW, first_line=first if source.cut is Cut.LINES else b"")
        _take(source.read(stream, context))

    return run


def _take(items: Iterable[Visit | BadRecord]) -> None:
    """As an import does it."""
    builder = BatchBuilder()
    for item in items:
        if not isinstance(item, BadRecord):
            try:
                builder.add(item)
            except (BadRecord, BadUrl):
                continue
    builder.take()


def _detect(data: bytes) -> None:
    recrawl.sources.detect(plain(data[:HEAD]), "input")


def _decompress(data: bytes) -> None:
    for block in line_blocks(decompressed(cast(BinaryIO, io.BytesIO(data))), block=1 << 12, max_line=1 << 14):
        assert isinstance(block, bytes)


ENCODINGS = ("gzip", "deflate", "br", "zstd", "gzip, br", "identity", "x", "")


def _body(data: bytes) -> None:
    """The first byte says how it is encoded."""
    how = data[0] if data else 0
    headers = {"content-encoding": ENCODINGS[how % 8], **({"transfer-encoding": "chunked"} if how & 8 else {})}
    assert len(decoded(data[1:], headers, MAX_BODY)) <= MAX_BODY


def _labels(data: bytes) -> None:
    for row in read_labels(str(written("labels", data))):
        assert row is None or (isinstance(row[0], str) and isinstance(row[1], bool))


def _plan_file(data: bytes) -> None:
    plan = read_plan(written("plan", data))
    assert len(set(plan.urls)) == len(plan.urls)


def _bodies() -> list[bytes]:
    chunked = b"5\r\nhello\r\n0\r\n\r\n"
    packed = [gzip.compress(b"hello", mtime=0), zlib.compress(b"hello"), b"\x0b\x02\x80hello\x03"]
    return [*packed, zstandard.ZstdCompressor().compress(b"hello"), *[chunked] * 12]
