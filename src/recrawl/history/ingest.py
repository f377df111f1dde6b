"""Files of any format → a history: cut into chunks, read in parallel, appended in few commits, every skip counted by reason."""

from __future__ import annotations

import gc
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Any

import pyarrow as pa

from recrawl.core.workers import Workers, cores
from recrawl.errors import BadRecord, BadSource, BadUrl
from recrawl.history import Appended, BatchBuilder, History
from recrawl.history.import_report import ImportReport, InputTally
from recrawl.history.schema import Batch
from recrawl.sources.base import MAX_BODY, Context, Cut
from recrawl.sources.chunks import Chunk, chunks
from recrawl.web.visit import Visit

__all__ = ["ImportOptions", "ImportReport", "import_files"]

WORTH_WORKERS = 24 << 20  #: bytes of input from which starting processes pays
COMMIT_VISITS, COMMIT_LINKS, COMMIT_SECONDS = 50_000, 5_000_000, 5.0  #: whichever comes first
#: How often garbage is collected: an import makes hardly any cycles, and keeps much that a collection would look through.
RARELY = (200_000, 50, 100)


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """How records are read."""

    format: str | None = None  # None: detected from the content
    keep_tracking: bool = False
    max_body: int = MAX_BODY
    strict: bool = False  # fail on the first record that would be skipped
    now: datetime | None = None  # what counts as the future; None: the clock


def import_files(
    history: History,
    paths: Iterable[str | os.PathLike[str]],
    options: ImportOptions | None = None,
    *,
    workers: int | None = None,
    commit_seconds: float = COMMIT_SECONDS,
    on_read: Callable[[int], None] = lambda n_bytes: None,
    on_commit: Callable[[Appended], None] = lambda receipt: None,
) -> ImportReport:
    """Import files (``-``: standard input) into a history.

    An input that cannot be read is named in the report and does not keep the others from being read. `on_commit` is called after
    visits are safely on disk. `workers`: processes that read; None: as many as there are cores, if the input is large enough.
    `commit_seconds`: how long visits that were read may wait for a commit; many importers at once should make few.

    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "visits.csv").write_text("url,at\\nhttps://e.org/,2026-01-02T03:04:05Z\\n")
    >>> report = import_files(History.create(folder / "history"), [folder / "visits.csv", folder / "missing.csv"])
    >>> report.added, len(report.failed_inputs)
    (1, 1)
    """
    options = options or ImportOptions()
    names = list(dict.fromkeys(os.fspath(path) for path in paths))  # a file named twice holds nothing new
    report = ImportReport()
    pending = _Pending(history, report, on_commit, commit_seconds)
    n_workers = workers or _worth(names)
    with ExitStack() as spools:
        spools.callback(gc.set_threshold, *gc.get_threshold())
        gc.set_threshold(*RARELY)
        for part in _read_all(chunks(names, options.format, spools), options, n_workers, on_read):
            report.merge(part.report)
            if options.strict and (report.skipped or report.failed_inputs):
                raise BadSource(_strict_message(report))
            if part.batch is not None:
                pending.add(part.batch)
    pending.commit()
    report.end()
    return report


def _strict_message(report: ImportReport) -> str:
    if report.failed_inputs:
        return report.failed_inputs[0]
    reason = next(iter(report.skipped))
    return f"--strict: {reason} ({report.examples[reason]}). {report.added:,} visits before it were added."


class _Pending:
    """Batches that wait until there are enough of them for a commit."""

    def __init__(
        self, history: History, report: ImportReport, on_commit: Callable[[Appended], None], seconds: float
    ) -> None:
        self.history, self.report, self.on_commit, self.seconds = history, report, on_commit, seconds
        self.batches: list[Batch] = []
        self.n_visits = self.n_links = 0
        self.since = time.monotonic()

    def add(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.n_visits += batch["visits"].num_rows
        self.n_links += sum(len(links.flatten()) for links in batch["link_sets"]["links"].chunks)
        waited = time.monotonic() - self.since
        if self.n_visits >= COMMIT_VISITS or self.n_links >= COMMIT_LINKS or waited >= self.seconds:
            self.commit()

    def commit(self) -> None:
        if self.batches:
            merged = {name: pa.concat_tables([batch[name] for batch in self.batches]) for name in self.batches[0]}
            receipt = self.history.append(merged)
            self.report.note(receipt, merged["visits"]["page"].to_numpy())
            self.on_commit(receipt)
        self.batches, self.n_visits, self.n_links, self.since = [], 0, 0, time.monotonic()


def _worth(paths: list[str]) -> int:
    """Processes to read with: starting them takes a second, which a small input does not pay back."""
    size = sum(os.path.getsize(path) if os.path.isfile(path) else WORTH_WORKERS if path == "-" else 0 for path in paths)
    return cores() if size >= WORTH_WORKERS else 1


# -- all chunks, here or in workers -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """What was read since the part before."""

    report: ImportReport
    batch: Batch | None = None
    end: int = 0  # of a file cut at records: where the first record behind the chunk begins


def _read_all(
    of: Iterator[Chunk], options: ImportOptions, n_workers: int, on_read: Callable[[int], None]
) -> Iterator[_Part]:
    for chunk, parts in _read_here(of, options) if n_workers <= 1 else _read_in_workers(of, options, n_workers):
        yield from parts
        on_read(chunk.n_bytes)


def _read_here(of: Iterator[Chunk], options: ImportOptions) -> Iterator[tuple[Chunk, Iterator[_Part]]]:
    reader, ends = _Reader(options), _Ends()
    for chunk in of:
        yield chunk, ends.noted(chunk, reader.read(ends.continued(chunk)))


def _read_in_workers(
    of: Iterator[Chunk], options: ImportOptions, n_workers: int
) -> Iterator[tuple[Chunk, Iterator[_Part]]]:
    reader, ends = _Reader(options), _Ends()
    waiting: deque[tuple[Chunk, Future[list[_Part]]]] = deque()
    try:
        with Workers(n_workers, _start_worker, options) as workers:
            for chunk in of:
                if chunk.source is not None and chunk.source.cut is Cut.NOWHERE:
                    # Handed on as it is read: a worker could only return all of it at once.
                    yield chunk, reader.read(chunk)
                    continue
                waiting.append((chunk, workers.submit(_work, chunk)))
                while len(waiting) > 2 * n_workers or (waiting and waiting[0][1].done()):
                    yield _result(*waiting.popleft(), ends, options)
            while waiting:
                yield _result(*waiting.popleft(), ends, options)
    except BrokenProcessPool as error:
        raise BadSource(
            "a process that read the input was killed, perhaps because memory ran out. All visits reported so far are safe; "
            "run the same command again with --workers 1"
        ) from error


def _result(
    chunk: Chunk, future: Future[list[_Part]], ends: _Ends, options: ImportOptions
) -> tuple[Chunk, Iterator[_Part]]:
    parts = future.result()
    onward = ends.continued(chunk)
    if onward is chunk:
        return chunk, ends.noted(chunk, iter(parts))
    # The chunk was cut inside a record that looks like several. What its worker has sent besides visits it will not send again.
    kept = [
        _Part(ImportReport(), {**part.batch, "visits": part.batch["visits"].slice(0, 0)})
        for part in parts
        if part.batch is not None
    ]
    return chunk, ends.noted(chunk, chain(kept, _Reader(options).read(onward)))


class _Ends:
    """Where the chunks of a file really ended: a place that looks like the beginning of a record may lie within one."""

    def __init__(self) -> None:
        self._at: dict[str, int] = {}

    def continued(self, chunk: Chunk) -> Chunk:
        """The chunk from where the one before it ended."""
        ended_at = self._at.get(chunk.path or "", 0)
        return replace(chunk, start=ended_at) if ended_at > chunk.start else chunk

    def noted(self, chunk: Chunk, parts: Iterator[_Part]) -> Iterator[_Part]:
        """The same parts; where they end is remembered."""
        for part in parts:
            if chunk.path is not None and chunk.stop is not None:
                self._at[chunk.path] = part.end
            yield part


_worker: dict[str, Any] = {}


def _start_worker(options: ImportOptions) -> None:
    gc.set_threshold(*RARELY)
    _worker["reader"] = _Reader(options)


def _work(chunk: Chunk) -> list[_Part]:
    return list(_worker["reader"].read(chunk))


# -- one chunk --------------------------------------------------------------------------------------------------------


class _Reader:
    """Reads chunks into batches; what it has sent with one batch it does not send again with the next."""

    def __init__(self, options: ImportOptions) -> None:
        self.options = options
        self.builder = BatchBuilder(keep_tracking=options.keep_tracking)

    def read(self, chunk: Chunk) -> Iterator[_Part]:
        """What is in a chunk; handed on whenever it is worth a commit, so that memory stays bounded."""
        report = ImportReport()
        if chunk.source is None:
            report.failed_inputs.append(chunk.failure or chunk.label)
            yield _Part(report)
            return
        context = chunk.context(max_body=self.options.max_body, now=self.options.now)
        n_records = 0
        try:
            with chunk.opened() as stream:
                for item in chunk.source.read(stream, context):
                    n_records += 1
                    by_lines = chunk.source.cut is Cut.LINES
                    where = f"line {context.n_lines:,}" if by_lines else f"record {n_records:,}"
                    self._take(item, report, f"{chunk.label} {where}")
                    if self.builder.n_visits >= COMMIT_VISITS or self.builder.n_links >= COMMIT_LINKS:
                        yield self._part(report, context, chunk)
                        report = ImportReport()
        except BadSource as error:
            report.failed_inputs.append(f"{chunk.label}: {error}")
        except OSError as error:
            report.failed_inputs.append(f"{chunk.label}: cannot read on: {error.strerror or error}")
        yield self._part(report, context, chunk)

    def _take(self, item: Visit | BadRecord, report: ImportReport, where: str) -> None:
        if isinstance(item, BadRecord):
            report.skip(item, where)
            return
        try:
            self.builder.add(item)
            report.read += 1
        except BadRecord as error:
            report.skip(error, where)
        except BadUrl as error:
            reason, _, detail = str(error).partition(": ")
            report.skip(BadRecord(reason, detail), where)

    def _part(self, report: ImportReport, context: Context, chunk: Chunk) -> _Part:
        """What was read since the last time."""
        builder = self.builder
        if chunk.source is not None:
            passed_over = Counter(context.passed_over)
            report.inputs[chunk.label] = InputTally(chunk.source.visits_are, report.read, passed_over)
            context.passed_over.clear()
        report.dropped_links, builder.dropped_links = builder.dropped_links, Counter()
        report.traps, builder.traps = builder.traps, 0
        report.unknown_fields += context.unknown_fields
        context.unknown_fields.clear()
        report.not_numbers += context.not_numbers
        context.not_numbers.clear()
        report.add_notes(context.notes)
        return _Part(report, builder.take(), context.end)
