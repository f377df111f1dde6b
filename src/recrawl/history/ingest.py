"""Files of any kind → a history: cut into pieces, read in parallel, appended in few commits, every skip counted by reason."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa

from recrawl.errors import BadRecord, BadSource, BadUrl
from recrawl.history import Appended, BatchBuilder, History
from recrawl.history.schema import Batch
from recrawl.sources import Shape, Source, named, streams
from recrawl.sources.chunks import Piece, pieces
from recrawl.web.html import MAX_BODY
from recrawl.web.visit import Visit

WORTH_WORKERS = 24 << 20  #: bytes of input from which starting processes pays
RARELY = (
    200_000,
    50,
    100,
)  #: collect garbage: an import makes hardly any cycles, and remembers much that would be looked through
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
    _ended_at: int = 0  # of a piece of a WARC file: where the first record behind it begins

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
        self._ended_at = piece._ended_at

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
    paths = list(dict.fromkeys(paths))  # a file named twice holds nothing new
    report = Report()
    pending = _Pending(history, report, on_commit)
    n_workers = workers or _worth(paths)
    with ExitStack() as spools:
        spools.callback(gc.set_threshold, *gc.get_threshold())
        gc.set_threshold(*RARELY)
        for piece_report, batches in _read_all(pieces(paths, options.format, spools), options, n_workers, on_read):
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


def _worth(paths: list[str]) -> int:
    """Processes to read with: starting them takes a second, which a small input does not pay back."""
    size = sum(os.path.getsize(path) if os.path.isfile(path) else WORTH_WORKERS if path == "-" else 0 for path in paths)
    return (os.cpu_count() or 1) if size >= WORTH_WORKERS else 1


# -- reading ----------------------------------------------------------------------------------------------------------

Result = tuple[Report, list[Batch]]


def _read_all(
    found: Iterator[Piece], options: Options, n_workers: int, on_read: Callable[[int], None]
) -> Iterator[Result]:
    for piece, results in (_read_here if n_workers <= 1 else _read_in_workers)(found, options, n_workers):
        yield from results
        on_read(piece.n_bytes)


def _read_here(found: Iterator[Piece], options: Options, n_workers: int) -> Iterator[tuple[Piece, Iterator[Result]]]:
    builder = BatchBuilder(keep_tracking=options.keep_tracking)
    ends = _Ends()
    for piece in found:
        yield piece, ends.noted(piece, _read_piece(ends.continued(piece), options, builder))


def _read_in_workers(
    found: Iterator[Piece], options: Options, n_workers: int
) -> Iterator[tuple[Piece, Iterator[Result]]]:
    ends = _Ends()
    builder = BatchBuilder(keep_tracking=options.keep_tracking)
    # The table engine's threads do not survive a fork.
    with ProcessPoolExecutor(n_workers, get_context("spawn"), initializer=_start_worker, initargs=(options,)) as pool:
        waiting: deque[tuple[Piece, Future[Result]]] = deque()
        try:
            for piece in found:
                if piece.source and named(piece.source).shape is Shape.WHOLE:
                    # Handed on as it is read: a worker could only return all of it at once.
                    yield piece, _read_piece(piece, options, builder)
                    continue
                waiting.append((piece, pool.submit(_work, piece)))
                while len(waiting) > 2 * n_workers or (waiting and waiting[0][1].done()):
                    yield _result(*waiting.popleft(), ends, options)
            while waiting:
                yield _result(*waiting.popleft(), ends, options)
        except KeyboardInterrupt:
            for process in list(pool._processes.values()):  # nobody wants to wait for the pieces they are at
                process.terminate()
            raise
        except BrokenProcessPool as error:
            raise BadSource(
                "a process that read the input was killed, perhaps for want of memory. All visits reported so far are safe; "
                "run the same command again with --workers 1"
            ) from error


def _result(piece: Piece, future: Future[Result], ends: _Ends, options: Options) -> tuple[Piece, Iterator[Result]]:
    report, batches = future.result()
    onward = ends.continued(piece)
    if onward is piece:
        return piece, ends.noted(piece, iter([(report, batches)]))
    # The piece was cut inside a record that looks like several. What its worker has sent besides visits it will not send again.
    kept = [{**batch, "visits": batch["visits"].slice(0, 0)} for batch in batches]
    anew = _read_piece(onward, options, BatchBuilder(keep_tracking=options.keep_tracking))
    return piece, ends.noted(piece, chain([(Report(), kept)], anew))


class _Ends:
    """Where the pieces of a WARC file really ended: a place that looks like a record may lie within one."""

    def __init__(self) -> None:
        self._at: dict[str, int] = {}

    def continued(self, piece: Piece) -> Piece:
        """The piece from where the one before it ended."""
        ended_at = self._at.get(piece.path or "", 0)
        return replace(piece, start=ended_at) if ended_at > piece.start else piece

    def noted(self, piece: Piece, results: Iterator[Result]) -> Iterator[Result]:
        """The same results; where they end is remembered."""
        for result in results:
            if piece.stop is not None:
                self._at[cast(str, piece.path)] = result[0]._ended_at
            yield result


_worker: dict[str, Any] = {}


def _start_worker(options: Options) -> None:
    gc.set_threshold(*RARELY)
    _worker["options"] = options
    _worker["builder"] = BatchBuilder(keep_tracking=options.keep_tracking)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one will tell it to stop
    Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(piece: Piece) -> Result:
    report, batches = Report(), []
    for part, more in _read_piece(piece, _worker["options"], _worker["builder"]):
        report.merge(part)
        batches += more
    return report, batches


@dataclass
class _Reading:
    """How far a piece has been read, and what was met on the way."""

    label: str
    unit: str  # line or record
    n: int
    unknown_fields: Counter[str] = field(default_factory=Counter)
    ended_at: int = 0

    @property
    def where(self) -> str:
        return f"{self.label} {self.unit} {self.n:,}"

    def end(self, position: int) -> None:
        self.ended_at = position

    def finish(self, report: Report, builder: BatchBuilder) -> Result:
        """What was read since the last time."""
        report.dropped_links, builder.dropped_links = builder.dropped_links, Counter()
        report.traps, builder.traps = builder.traps, 0
        report.unknown_fields += self.unknown_fields
        self.unknown_fields.clear()
        report._ended_at = self.ended_at
        return report, [builder.take()]


def _read_piece(piece: Piece, options: Options, builder: BatchBuilder) -> Iterator[Result]:
    """Read one piece; hand on what was collected whenever it is worth a commit, so that memory stays bounded."""
    report = Report()
    if piece.failure:
        report.failed_inputs.append(piece.failure)
        yield report, []
        return
    reading = _Reading(piece.label, "line" if piece.first_line else "record", piece.n_lines_before)
    try:
        for item in _visits(piece, options, reading):
            _take(item, builder, report, reading.where)
            if builder.n_visits >= COMMIT_VISITS or builder.n_links >= COMMIT_LINKS:
                yield reading.finish(report, builder)
                report = Report()
    except BadSource as error:
        report.failed_inputs.append(f"{piece.label}: {error}")
    except OSError as error:
        report.failed_inputs.append(f"{piece.label}: cannot read on: {error.strerror or error}")
    yield reading.finish(report, builder)


def _take(item: Visit | BadRecord, builder: BatchBuilder, report: Report, where: str) -> None:
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


def _visits(piece: Piece, options: Options, reading: _Reading) -> Iterator[Visit | BadRecord]:
    source = named(piece.source)
    read = cast(Callable[..., Iterator[Visit | BadRecord]], source.read)
    if source.shape is Shape.LINES:
        extra = {"unknown": reading.unknown_fields} if source.name == "jsonl" else {}
        yield from read(_lines(cast(bytes, piece.data), reading), piece.first_line, now=options.now, **extra)
        return
    with open(cast(str, piece.path), "rb") as stream:
        for item in _of_file(piece, source, stream, options, reading):
            reading.n += 1
            yield item


def _lines(data: bytes, reading: _Reading) -> Iterator[bytes]:
    for line in data.split(b"\n"):
        reading.n += 1
        if line.strip():
            yield line


def _of_file(
    piece: Piece, source: Source, stream: BinaryIO, options: Options, reading: _Reading
) -> Iterator[Visit | BadRecord]:
    read = cast(Callable[..., Iterator[Visit | BadRecord]], source.read)
    if source.shape is Shape.RECORDS:
        span = {"start": piece.start, "stop": piece.stop, "on_end": reading.end}
        return read(stream, limit=options.max_body, now=options.now, **span)
    if source.name == "wacz":
        return read(stream, limit=options.max_body, now=options.now)
    if source.name == "parquet":
        return read(stream, unknown=reading.unknown_fields, now=options.now)
    unpacked = streams.decompressed(stream)
    if source.name == "timemap":
        return read(_all(unpacked, options.max_body), now=options.now)
    if source.name == "lbla":
        return read(unpacked)
    return read(unpacked, unknown=reading.unknown_fields, now=options.now)


def _all(stream: BinaryIO, limit: int) -> bytes:
    data = stream.read(limit + 1)
    if len(data) > limit:
        raise BadSource(f"it is larger than {limit >> 20} MiB; --max-body takes a larger number")
    return data
