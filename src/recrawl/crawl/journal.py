"""The way of visits into the history: written in batches within seconds, and never lost on the way."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from recrawl.core.arrays import Ints
from recrawl.errors import BadRecord, BadUrl
from recrawl.history import BatchBuilder, History
from recrawl.history.schema import Batch
from recrawl.web import html as parse
from recrawl.web.urls import canonical
from recrawl.web.visit import Visit

MAX_WAITING = 20_000  #: visits kept in memory while the history cannot be written; more go to a file
MAX_RECENT = 500_000  #: new links held in a set before they are merged into an array
_NOT_EXPORTED = ("base", "html")  # links are written in full instead


class Journal:
    """Collects visits and appends them to a history in its own thread.

    The crawl calls only `add` and `flush`, and neither waits for the disk. If the history cannot be written, every flush tries
    again. Visits that still cannot be written at the end go to a file that `recrawl import` reads.

    >>> from datetime import UTC, datetime
    >>> history = History.create(tempfile.mkdtemp())
    >>> journal = Journal(history)
    >>> journal.add(Visit(url="https://e.org/", at=datetime(2026, 1, 5, tzinfo=UTC), links=["https://e.org/a"]))
    True
    >>> journal.close()
    >>> history.timeline.n_visits
    1
    """

    def __init__(
        self, history: History, on_written: Callable[[int, int], None] = lambda n_visits, n_new_links: None
    ) -> None:
        self.history, self.on_written = history, on_written
        self.skipped: Counter[str] = Counter()  # reason → visits that are not valid records
        self.failure: str | None = None  # why the last attempt to write the history failed
        self.spilled: list[Path] = []  # files with visits that could not be written into the history
        self.n_spilled = self.n_lost = 0  # visits in these files; visits that could not be written to any file either
        self._builder = BatchBuilder()
        self._visits: list[Visit] = []  # those in the builder
        self._waiting: list[tuple[Batch, list[Visit]]] = []  # to be appended; used by the thread only
        # A batch went to a file instead of the history: the builder must not count on anything it handed over earlier.
        self._must_rebuild = False
        self.known = KnownLinks(history)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="recrawl-journal")
        self._last: Future[None] | None = None

    @property
    def n_pending(self) -> int:
        """Visits that were not passed to the thread yet."""
        return len(self._visits)

    def add(self, visit: Visit) -> bool:
        """Add a visit; False, and counted, if it is not a valid record."""
        try:
            self._builder.add(visit)
        except BadRecord as error:
            self.skipped[error.reason] += 1
            return False
        except BadUrl as error:
            self.skipped[str(error).partition(":")[0]] += 1
            return False
        self._visits.append(visit)
        return True

    def flush(self) -> None:
        """Pass the collected visits to the thread, unless it is still writing the last batch."""
        if not self._visits or (self._last is not None and not self._last.done()):
            return
        batch, visits = self._take()
        if visits:
            self._last = self._thread.submit(self._write, batch, visits)

    def _take(self) -> tuple[Batch, list[Visit]]:
        """Empty the journal and return its visits."""
        visits, self._visits = self._visits, []
        if not self._must_rebuild:
            try:
                return self._builder.take(), visits
            except Exception:  # one visit that cannot become a row must not hold up the others
                pass
        self._builder, self._must_rebuild, kept = BatchBuilder(), False, []
        for visit in visits:
            if _can_be_written(visit):
                self._builder.add(visit)
                kept.append(visit)
            else:
                self.skipped["cannot be written"] += 1
        return self._builder.take(), kept

    def settle(self) -> None:
        """Write all visits so far, and wait for it."""
        if self._last is not None:
            wait([self._last])
        self.flush()
        if self._last is not None:
            wait([self._last])

    def close(self) -> None:
        """Write all remaining visits and wait for it; those that cannot be written go to a file."""
        if self._last is not None:
            wait([self._last])
        self.flush()
        self._thread.submit(self._finish).result()
        self._thread.shutdown()

    def _write(self, batch: Batch, visits: list[Visit]) -> None:
        self._waiting.append((batch, visits))
        self._retry()
        if sum(len(visits) for _, visits in self._waiting) > MAX_WAITING:
            self._spill()

    def _retry(self) -> None:
        while self._waiting:
            batch, visits = self._waiting[0]
            try:
                self.known.read()
                self.history.append(batch)
            except Exception as error:  # whatever the cause, the visits wait and the crawl goes on
                self.failure = str(error) or type(error).__name__
                return
            self._waiting.pop(0)
            self.failure = None
            self.on_written(len(visits), self.known.add(batch))

    def _finish(self) -> None:
        self._retry()
        self._spill()
        self.n_lost = sum(len(visits) for _, visits in self._waiting)

    def _spill(self) -> None:
        """Write the waiting visits as JSON lines, beside the history or into the directory of temporary files."""
        visits = [visit for _, batch_visits in self._waiting for visit in batch_visits]
        if not visits:
            return
        name = f"recrawl-visits-{visits[0].at:%Y%m%dT%H%M%S}-{os.getpid()}-{id(self):x}.jsonl"
        folder = self.history.folder
        beside = [folder.absolute().parent] if isinstance(folder, Path) else []
        folders = (*beside, Path.cwd(), Path(tempfile.gettempdir()))
        for path in dict.fromkeys([*self.spilled[-1:], *(folder / name for folder in folders)]):
            try:
                _append_lines(path, map(record, visits))
            except OSError:
                continue
            if path not in self.spilled:
                self.spilled.append(path)
            self.n_spilled += len(visits)
            self._waiting.clear()
            self._must_rebuild = True
            return


def _append_lines(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Append all records or none, even if the disk is full in the middle of a line."""
    with path.open("ab") as stream:
        start = stream.tell()
        try:
            stream.writelines(orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE) for fields in records)
            stream.flush()
        except OSError:
            with suppress(OSError):
                os.ftruncate(stream.fileno(), start)
            raise


def _can_be_written(visit: Visit) -> bool:
    try:
        builder = BatchBuilder()
        builder.add(visit)
        builder.take()
        orjson.dumps(record(visit))
    except Exception:
        return False
    return True


def record(visit: Visit) -> dict[str, Any]:
    """A visit as a record that `recrawl import` reads: its links in full.

    >>> from datetime import UTC, datetime
    >>> record(Visit(url="https://e.org/a/", at=datetime(2026, 1, 5, tzinfo=UTC), links=["b"], base="https://e.org/a/"))["links"]
    ['https://e.org/a/b']
    """
    fields = {name: value for name, value in asdict(visit).items() if value is not None and name not in _NOT_EXPORTED}
    if visit.html is not None:
        page = parse.html_page(visit.html, visit.url)
        fields |= {"links": page.hrefs, "text": page.text, "text_digest": page.text_digest, "title": page.title}
        visit = Visit(url=visit.url, at=visit.at, base=page.base)
    if fields.get("links") is not None and visit.base:
        fields["links"] = [link for href in fields["links"] if (link := _resolved(href, visit.base))]
    return fields


def _resolved(href: str, base: str) -> str | None:
    try:
        return canonical(href, base)
    except BadUrl:
        return None


class KnownLinks:
    """All links that any page ever showed, to count those of a batch that are new."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._known: Ints | None = None  # ascending; read when first needed
        self._recent: set[int] = set()

    def read(self) -> Ints:
        """The ids of the links of the history, ascending; read once and before anything is appended to it."""
        if self._known is None:
            stored = self.history.store.read("link_sets", ["links"])["links"].combine_chunks().flatten()
            self._known = np.unique(stored.to_numpy(zero_copy_only=False))
        return self._known

    def add(self, batch: Batch) -> int:
        """Add the links of a batch, and return how many of them are new."""
        assert self._known is not None
        shown = np.unique(batch["link_sets"]["links"].combine_chunks().flatten().to_numpy(zero_copy_only=False))
        at = np.minimum(np.searchsorted(self._known, shown), max(len(self._known) - 1, 0))
        new = shown[self._known[at] != shown] if len(self._known) else shown
        before = len(self._recent)
        self._recent.update(new.tolist())
        n_new = len(self._recent) - before
        if len(self._recent) > MAX_RECENT:  # an array takes a tenth of the memory
            self._known = np.union1d(self._known, np.fromiter(self._recent, np.int64, len(self._recent)))
            self._recent.clear()
        return n_new
