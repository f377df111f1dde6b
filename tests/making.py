"""Made-up records and files for the tests of the import, and what the tests ask of a history."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import zstandard

from patience import patience
from recrawl.history import History, LinkSets
from recrawl.history.ingest import ImportOptions, ImportReport, import_files

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RECRAWL = [sys.executable, "-m", "recrawl.cli"]


def http(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """A stored HTTP response; ``content_type`` is Content-Type."""
    headers = {"content_type": "text/html; charset=utf-8", **headers}
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items() if value)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def record(
    url: str,
    block: bytes,
    kind: str = "response",
    at: str = "2026-01-02T03:04:05Z",
    length: object = None,
    version: str = "1.0",
    **headers: str,
) -> bytes:
    """One WARC record, declaring its length, or any other."""
    headers = {
        "Content-Type": "application/http; msgtype=response",
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    lines = [
        f"WARC/{version}",
        f"WARC-Type: {kind}",
        f"WARC-Target-URI: {url}",
        f"WARC-Date: {at}",
        "WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000000>",
        *(f"{name}: {value}" for name, value in headers.items() if value),
        f"Content-Length: {len(block) if length is None else length}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def page_record(i: int, **more: Any) -> bytes:
    """A record of the made-up page number i, which has one link."""
    return record(f"https://e.org/{i}", http(b"<p>page number %d <a href='/next/%d'>next</a>" % (i, i)), **more)


def packed(records: Sequence[bytes], how: str) -> bytes:
    """Records as a file: plain, gz and zst by record, or all in one gzip member."""
    if how == "gz":
        return b"".join(map(gzip.compress, records))
    if how == "zst":
        return b"".join(map(zstandard.ZstdCompressor().compress, records))
    return gzip.compress(b"".join(records)) if how == "one gz" else b"".join(records)


PACKED = ("plain", "gz", "zst", "one gz")


def imported(
    folder: Path, *inputs: bytes | str | Path, workers: int = 1, into: str = "history", **options: Any
) -> tuple[ImportReport, History]:
    """Import contents (given as bytes) or files into a history in a folder."""
    paths = []
    for i, given in enumerate(inputs):
        if isinstance(given, bytes):
            path = folder / f"input-{i}"
            path.write_bytes(given)
            given = path
        paths.append(str(given))
    history = History.create(folder / into)
    report = import_files(history, paths, ImportOptions(**options), workers=workers)
    assert report.read == report.added + report.duplicates + sum(report.skipped.values()), report
    assert set(report.skipped) == set(report.examples)
    return report, history


def urls(history: History) -> list[str]:
    """The pages of a history, by name."""
    return sorted(history.urls_of(history.timeline.pages).to_pylist())


def last_parts(history: History) -> str:
    """The last characters of the pages' names, for pages named by one character."""
    return "".join(url[-1] for url in urls(history))


def links(history: History) -> dict[str, list[str] | None]:
    """URL → the links it showed at its last visit, by name."""
    timeline, found = history.timeline, {}
    for end, url in zip(timeline.page_start[1:], history.urls_of(timeline.pages).to_pylist(), strict=True):
        shown = timeline.links[end - 1]
        ids = timeline.sets.links[timeline.sets.start[shown] : timeline.sets.start[shown + 1]]
        found[url] = None if shown < 0 else sorted(history.urls_of(ids).to_pylist())
    return found


def story(history: History) -> dict[str, Any]:
    """All that a history says, in a form that can be compared."""
    timeline, new = history.timeline, history.novelty
    shown = [
        None if s < 0 else tuple(timeline.sets.links[timeline.sets.start[s] : timeline.sets.start[s + 1]].tolist())
        for s in timeline.links
    ]
    columns = [name for name in timeline.rows.column_names if name != "links"]
    return {
        "urls": history.urls_of(timeline.page).to_pylist(),
        "rows": [repr(row) for row in timeline.rows.select(columns).to_pylist()],
        "links": shown,
        "new": {name: new.total(name).tolist() for name in ("previous", "page", "anywhere")},
        "n_links": new.n_links,
        "link urls": sorted(
            history.urls_of(np.unique(np.array([i for ids in shown for i in ids or ()], np.int64))).to_pylist()
        ),
    }


def run(
    *arguments: str | Path, stdin: bytes | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """The command line in a process of its own; it never answers with a traceback."""
    command = [*RECRAWL, *map(str, arguments)]
    found = subprocess.run(
        command, input=stdin, capture_output=True, timeout=patience(120), env={**os.environ, **(env or {})}, check=False
    )
    assert b"Traceback" not in found.stderr, found.stderr.decode()
    return found


def jsonl(records: Iterable[Mapping[str, Any]]) -> bytes:
    """Records as JSON lines."""
    import orjson

    return b"".join(orjson.dumps(dict(record)) + b"\n" for record in records)


def link_sets(rows: pa.Table) -> LinkSets:
    """The link sets of rows that are not on disk."""
    return LinkSets.from_parts([rows], rows.num_rows, sum(len(part.values) for part in rows["links"].chunks))


def without_table(history: Path, name: str) -> None:
    """Make a history one of a version that did not have this table yet."""
    shutil.rmtree(history / name)
    (history / "versions.json").unlink(missing_ok=True)
