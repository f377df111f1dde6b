"""Files of any kind → a history: cut into pieces, read in parallel, appended in few commits, every skip counted by reason."""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from multiprocessing import get_context
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa

from recrawl.errors import BadRecord, BadSource, BadUrl
from recrawl.history import Appended, BatchBuilder, History
from recrawl.history.schema import Batch
from recrawl.parse import MAX_BODY
from recrawl.sources import Shape, Source, detect, framing, named, streams
from recrawl.visits import Visit

PIECE = 32 << 20  #: bytes of a WARC file read by one worker at a time
WORTH_WORKERS = 24 << 20  #: bytes of input from which starting processes pays
COMMIT_VISITS, COMMIT_LINKS, COMMIT_SECONDS = 50_000, 5_000_000, 5.0  #: whichever comes first
Reason = str


@dataclass(frozen=True)
class Options:
    """How records are read."""

    format: str | None = None  # None: told from the content
    keep_tracking: bool = False
    max_body: int = MAX_BODY
    strict: bool = False  # fail on the first record that would be skipped
    now: datetime | None = None  # what counts as the future; None: the clock


@dataclass
class Report:
    """What an import did: ``read == added + duplicates + sum(skipped)``."""

    read: int = 0
    added: int = 0
    duplicates: int = 0
    replaced: int = 0  # duplicates that told more than the row already there
    skipped: Counter[Reason] = field(default_factory=Counter)
    examples: dict[Reason, str] = field(default_factory=dict)
    unknown_fields: Counter[str] = field(default_factory=Counter)
    dropped_links: Counter[Reason] = field(default_factory=Counter)
    traps: int = 0
    failed_inputs: list[str] = field(
        default_factory=list
    )  # inputs that could not be read (to the end), with the reason
    _pages: list[Any] = field(default_factory=list, repr=False)

    @property
    def pages(self) -> int:
        """Distinct pages among the visits read."""
        return len(np.unique(np.concatenate(self._pages))) if self._pages else 0

    def skip(self, error: BadRecord, where: str) -> None:
        """Count one record that cannot be used, and keep the first of each reason as an example."""
        self.read += 1
        self.skipped[error.reason] += 1
        self.examples.setdefault(error.reason, f"{where}: {error.detail}" if error.detail else where)

    def merge(self, piece: Report) -> None:
        """Add what reading one piece found."""
        self.read += piece.read
        self.traps += piece.traps
        for name in ("skipped", "unknown_fields", "dropped_links"):
            getattr(self, name).update(getattr(piece, name))
        for reason, example in piece.examples.items():
            self.examples.setdefault(reason, example)
        self.failed_inputs += piece.failed_inputs

    def as_dict(self) -> dict[str, Any]:
        """What ``recrawl import --json`` prints."""
        return {
            "read": self.read,
            "added": self.added,
            "duplicates": self.duplicates,
            "replaced": self.replaced,
            "skipped": dict(self.skipped.most_common()),
            "pages": self.pages,
            "examples": self.examples,
            "unknown_fields": dict(self.unknown_fields.most_common()),
            "dropped_links": dict(self.dropped_links.most_common()),
            "traps": self.traps,
            "failed_inputs": self.failed_inputs,
        }


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


def import_files(
    history: History,
    paths: Iterable[str],
    options: Options | None = None,
    *,
    workers: int | None = None,
    on_read: Callable[[int], None] = lambda n_bytes: None,
    on_commit: Callable[[Appended], None] = lambda receipt: None,
) -> Report:
    """Import files (``-``: standard input) into a history.

    An input that cannot be read is named in the report and does not keep the others from being read. `on_commit` is called after
    visits are safely on disk. `workers`: processes that read; None: as many as there are cores, if the input is large enough.
    """
    options = options or Options()
    paths = list(paths)
    report = Report()
    pending = _Pending(history, report, on_commit)
    n_workers = workers or _worth(paths)
    for piece_report, batches in _read_all(_pieces(paths, options), options, n_workers, on_read):
        report.merge(piece_report)
        if options.strict and (report.skipped or report.failed_inputs):
            raise BadSource(_strict_message(report))
        for batch in batches:
            pending.add(batch)
    pending.commit()
    return report


def _strict_message(report: Report) -> str:
    if report.failed_inputs:
        return report.failed_inputs[0]
    reason = next(iter(report.skipped))
    return f"--strict: {reason} ({report.examples[reason]}). {report.added:,} visits before it were added."


class _Pending:
    """Batches that wait until a commit is worth its while."""

    def __init__(self, history: History, report: Report, on_commit: Callable[[Appended], None]) -> None:
        self.history, self.report, self.on_commit = history, report, on_commit
        self.batches: list[Batch] = []
        self.n_visits = self.n_links = 0
        self.since = time.monotonic()

    def add(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.n_visits += batch["visits"].num_rows
        self.n_links += (
            len(batch["link_sets"]["links"].combine_chunks().flatten()) if batch["link_sets"].num_rows else 0
        )
        waited = time.monotonic() - self.since
        if self.n_visits >= COMMIT_VISITS or self.n_links >= COMMIT_LINKS or waited >= COMMIT_SECONDS:
            self.commit()

    def commit(self) -> None:
        if self.batches:
            merged = {name: pa.concat_tables([batch[name] for batch in self.batches]) for name in self.batches[0]}
            receipt = self.history.append(merged)
            self.report.added += receipt.added
            self.report.duplicates += receipt.duplicates
            self.report.replaced += receipt.replaced
            self.report._pages.append(np.unique(merged["visits"]["page"].to_numpy()))
            self.on_commit(receipt)
        self.batches, self.n_visits, self.n_links, self.since = [], 0, 0, time.monotonic()


# -- cutting ----------------------------------------------------------------------------------------------------------


def _worth(paths: list[str]) -> int:
    """Processes to read with: starting them takes a second, which a small input does not pay back."""
    size = sum(os.path.getsize(path) if os.path.isfile(path) else WORTH_WORKERS if path == "-" else 0 for path in paths)
    return (os.cpu_count() or 1) if size >= WORTH_WORKERS else 1


def _pieces(paths: list[str], options: Options) -> Iterator[Piece]:
    for path in paths:
        label = "standard input" if path == "-" else path
        try:
            with _open(path, options) as (stream, source):
                yield from _cut(path, label, stream, source)
        except BadSource as error:
            message = str(error) if label in str(error) else f"{label}: {error}"
            yield Piece(label, "", failure=message)


class _open:
    """An input and its kind. Lines on standard input are streamed; whatever needs positions is copied to a file first."""

    def __init__(self, path: str, options: Options) -> None:
        self.path, self.options = path, options

    def __enter__(self) -> tuple[BinaryIO, Source]:
        import sys

        if self.path == "-":
            head = sys.stdin.buffer.peek(streams.HEAD)[: streams.HEAD] if hasattr(sys.stdin.buffer, "peek") else b""
            raw, plain = streams.peek(BytesIO(head))
            source = self._source(plain)
            if source.shape is Shape.LINES:
                self.stream = cast(BinaryIO, sys.stdin.buffer)
                return self.stream, source
        self.stream = streams.open_seekable(self.path)
        raw, plain = streams.peek(self.stream)
        return self.stream, self._source(plain)

    def _source(self, head: bytes) -> Source:
        label = "standard input" if self.path == "-" else self.path
        return named(self.options.format) if self.options.format else detect(head, label)

    def __exit__(self, *_: object) -> None:
        if self.path != "-":
            self.stream.close()


def _cut(path: str, label: str, stream: BinaryIO, source: Source) -> Iterator[Piece]:
    if source.shape is Shape.LINES:
        yield from _cut_lines(label, stream, source)
    elif path == "-":
        # Only this process has the copy of standard input; it is handed on in one piece.
        yield Piece(label, source.name, data=stream.read())
    elif source.shape is Shape.RECORDS:
        yield from _cut_records(path, label, stream, source)
    else:
        yield Piece(label, source.name, path=path, n_bytes=os.path.getsize(path))


def _cut_lines(label: str, stream: BinaryIO, source: Source) -> Iterator[Piece]:
    first_line, n_lines = b"", 0
    for block in streams.line_blocks(streams.decompressed(stream)):
        first_line = first_line or block.partition(b"\n")[0]
        yield Piece(label, source.name, data=block, first_line=first_line, n_lines_before=n_lines, n_bytes=len(block))
        n_lines += block.count(b"\n")


def _cut_records(path: str, label: str, stream: BinaryIO, source: Source) -> Iterator[Piece]:
    size, start = os.path.getsize(path), 0
    while start < size:
        target = start + PIECE
        stop = framing.next_record(stream, target) if target < size else None
        stop = size if stop is None else stop
        yield Piece(label, source.name, path=path, start=start, stop=stop, n_bytes=stop - start)
        start = stop


# -- reading ----------------------------------------------------------------------------------------------------------

Result = tuple[Report, list[Batch]]


def _read_all(
    pieces: Iterator[Piece], options: Options, n_workers: int, on_read: Callable[[int], None]
) -> Iterator[Result]:
    if n_workers <= 1:
        builder = BatchBuilder(keep_tracking=options.keep_tracking)
        for piece in pieces:
            yield from _read_piece(piece, options, builder)
            on_read(piece.n_bytes)
        return
    # The table engine's threads do not survive a fork.
    with ProcessPoolExecutor(n_workers, get_context("spawn"), initializer=_start_worker, initargs=(options,)) as pool:
        waiting: deque[tuple[Piece, Future[Result]]] = deque()
        for piece in pieces:
            waiting.append((piece, pool.submit(_work, piece)))
            while len(waiting) > 2 * n_workers or (waiting and waiting[0][1].done()):
                done, future = waiting.popleft()
                yield future.result()
                on_read(done.n_bytes)
        for done, future in waiting:
            yield future.result()
            on_read(done.n_bytes)


_worker: dict[str, Any] = {}


def _start_worker(options: Options) -> None:
    _worker["options"] = options
    _worker["builder"] = BatchBuilder(keep_tracking=options.keep_tracking)


def _work(piece: Piece) -> Result:
    report, batches = Report(), []
    for part, more in _read_piece(piece, _worker["options"], _worker["builder"]):
        report.merge(part)
        batches += more
    return report, batches


def _read_piece(piece: Piece, options: Options, builder: BatchBuilder) -> Iterator[Result]:
    """Read one piece; hand on what was collected whenever it is worth a commit, so that memory stays bounded."""
    report = Report()
    if piece.failure:
        report.failed_inputs.append(piece.failure)
        yield report, []
        return
    try:
        for n, item in enumerate(_visits(piece, options, report), 1):
            _take(item, builder, report, piece, n)
            if builder.n_visits >= COMMIT_VISITS or builder.n_links >= COMMIT_LINKS:
                yield _finish(report, builder), [builder.take()]
                report = Report()
    except BadSource as error:
        report.failed_inputs.append(f"{piece.label}: {error}")
    yield _finish(report, builder), [builder.take()]


def _take(item: Visit | BadRecord, builder: BatchBuilder, report: Report, piece: Piece, n: int) -> None:
    where = f"{piece.label} line {piece.n_lines_before + n:,}" if piece.first_line else f"{piece.label} record {n:,}"
    if isinstance(item, BadRecord):
        report.skip(item, where)
        return
    try:
        builder.add(item)
        report.read += 1
    except BadRecord as error:
        report.skip(error, where)
    except BadUrl as error:
        reason, _, detail = str(error).partition(": ")
        report.skip(BadRecord(reason, detail), where)


def _finish(report: Report, builder: BatchBuilder) -> Report:
    report.dropped_links, builder.dropped_links = builder.dropped_links, Counter()
    report.traps, builder.traps = builder.traps, 0
    return report


def _visits(piece: Piece, options: Options, report: Report) -> Iterator[Visit | BadRecord]:
    source = named(piece.source)
    read = cast(Callable[..., Iterator[Visit | BadRecord]], source.read)
    if source.shape is Shape.LINES:
        lines = (line for line in cast(bytes, piece.data).split(b"\n") if line.strip())
        extra = {"unknown": report.unknown_fields} if source.name == "jsonl" else {}
        return read(lines, piece.first_line, now=options.now, **extra)
    stream = BytesIO(piece.data) if piece.data is not None else open(cast(str, piece.path), "rb")
    if source.shape is Shape.RECORDS:
        return read(_Window(cast(BinaryIO, stream), piece.start, piece.stop), limit=options.max_body, now=options.now)
    if source.name == "wacz":
        return read(stream, limit=options.max_body, now=options.now)
    if source.name == "timemap":
        return read(streams.decompressed(cast(BinaryIO, stream)).read(options.max_body))
    if source.name == "lbla":
        return read(streams.decompressed(cast(BinaryIO, stream)))
    opened = stream if source.name == "parquet" else streams.decompressed(cast(BinaryIO, stream))
    return read(opened, unknown=report.unknown_fields, now=options.now)


class _Window:
    """The bytes [start, stop) of a stream, as a stream."""

    def __init__(self, stream: BinaryIO, start: int, stop: int | None) -> None:
        self._stream, self._start = stream, start
        self._stop = stop if stop is not None else 1 << 62
        self.seek(0)

    def seek(self, position: int, whence: int = 0) -> int:
        return self._stream.seek(position + (self._start if whence == 0 else 0), whence) - self._start

    def tell(self) -> int:
        return self._stream.tell() - self._start

    def read(self, size: int = -1) -> bytes:
        left = max(self._stop - self._stream.tell(), 0)
        return self._stream.read(min(size, left) if size >= 0 else left)
