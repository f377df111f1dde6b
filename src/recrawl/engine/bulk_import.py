"""``recrawl import --engine``: groups of files are tasks; workers read them as a laptop does, and append to the history themselves.

A commit is what makes visits safe, as everywhere: a worker that is killed has either committed or not, and running the import
again adds what is missing. Several importers at once are safe (`recrawl.history.commits`); few and large commits keep them out of
each other's way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

from recrawl.core.places import Place
from recrawl.engine.inputs import InputFile, groups, input_files
from recrawl.engine.processes import in_own_process
from recrawl.engine.reports import report_bytes, report_from
from recrawl.engine.session import Engine
from recrawl.errors import BadSource, HistoryError
from recrawl.history import History
from recrawl.history.ingest import ImportOptions, ImportReport, import_files

COMMIT_SECONDS = 600.0  #: that a worker may wait for more visits; it commits at the end of a group in any case


def import_with(
    engine: Engine,
    history: History,
    names: Sequence[str],
    options: ImportOptions | None = None,
    *,
    n_parallel: int | None = None,
    on_start: Callable[[int, int], None] = lambda n_files, n_bytes: None,
    on_group: Callable[[list[InputFile], ImportReport], None] = lambda files, report: None,
) -> ImportReport:
    """Import files, folders, patterns and URLs into a history that all workers see; the same report as on one machine.

    `on_start` hears how much there is to read, `on_group` which files a worker has read to the end, and what came of them.
    """
    options = options or ImportOptions()
    if not engine.is_here:
        history.store.make_if_missing()  # so that a worker which cannot see it says so
    parts = list(groups(input_files(names, absolute=not engine.is_here)))
    on_start(sum(map(len, parts)), sum(file.n_bytes for file in chain.from_iterable(parts)))
    where = _absolute(history.folder)
    about = {"history": where, "options": _plain(options), "is_here": engine.is_here, "run": uuid4().hex}
    tasks = [json.dumps({**about, "files": [file.name for file in part]}).encode() for part in parts]
    total = ImportReport()
    for part, done in zip(parts, engine.map(import_group, tasks, n_parallel), strict=True):
        report = report_from(done)
        total.merge(report)
        on_group(part, report)
        if options.strict and report.failed_inputs:
            raise BadSource(report.failed_inputs[0])
    history.release()
    return _ended(total)


def import_group(task: bytes) -> bytes:
    """On a worker: import the files of one group."""
    return in_own_process(_import_group, task)


def _import_group(task: bytes) -> bytes:
    about = json.loads(task)
    given = about["options"]
    options = ImportOptions(**{**given, "now": given["now"] and datetime.fromisoformat(given["now"])})
    try:
        history = _opened(about["history"], about["is_here"], about["run"])
    except HistoryError as error:
        if about["is_here"] or "no history at" not in str(error):
            raise
        raise HistoryError(
            f"a worker does not see the history {about['history']}: keep it where all workers do, in a shared folder or an "
            "object store"
        ) from None
    report = import_files(history, about["files"], options, workers=1, commit_seconds=COMMIT_SECONDS)
    return report_bytes(report)


@lru_cache(maxsize=2)
def _opened(where: str, missing_ok: bool, run: str) -> History:
    """A history that stays open for all tasks of one import: each worker reads the keys of its files once.

    Not for longer: workers may live for days, and another history may be at the same place by then.
    """
    return History.open(where, missing_ok=missing_ok)


def _plain(options: ImportOptions) -> dict[str, Any]:
    return {**asdict(options), "now": options.now and options.now.isoformat()}


def _absolute(folder: Place) -> str:
    return str(folder.absolute() if isinstance(folder, Path) else folder)


def _ended(report: ImportReport) -> ImportReport:
    """The report with its notes in the order in which one process would have made them: those about whole inputs last."""
    last = set(_about_inputs(report))
    report.notes = [note for note in report.notes if note not in last]
    report.end()
    return report


def _about_inputs(report: ImportReport) -> Iterator[str]:
    return (note for name, tally in report.inputs.items() if (note := tally.note(name)) is not None)
