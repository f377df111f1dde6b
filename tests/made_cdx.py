"""Capture indexes of made-up pages that change at known rates: times and checksums, no links."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from recrawl.history import History
from recrawl.history.ingest import ImportOptions, import_files

START = datetime(2020, 1, 1, tzinfo=UTC)


def checksum(text: str) -> str:
    """As indexes write it."""
    return base64.b32encode(hashlib.sha1(text.encode()).digest()).decode()


def cdx_line(url: str, at: datetime, digest: str, mime: str = "text/html", status: str = "200") -> str:
    """One capture in eleven fields."""
    host, _, path = url.partition("://")[2].partition("/")
    key = f"{','.join(reversed(host.split('.')))})/{path}"
    return f"{key} {at:%Y%m%d%H%M%S} {url} {mime} {status} {digest} - - 1000 0 x.warc.gz"


def written_cdx(path: Path, lines: list[str]) -> Path:
    """An index with a header."""
    path.write_text("\n".join([" CDX N b a m s k r M S V g", *sorted(lines), ""]))
    return path


def changes_of(rates: Mapping[str, float], n_days: int, seed: int = 0) -> dict[str, list[float]]:
    """When each page changes, in days: a Poisson process by its rate."""
    chance = np.random.default_rng(seed)
    changes: dict[str, list[float]] = {}
    for url, rate in rates.items():
        changes[url], at = [], chance.exponential(1 / rate)
        while at < n_days:
            changes[url].append(float(at))
            at += chance.exponential(1 / rate)
    return changes


def captures_of_changes(
    changes: Mapping[str, list[float]], n_days: int, every: int = 7, seed: int = 1
) -> dict[str, list[tuple[datetime, int]]]:
    """A capture of each page per period, within a few hours; the number of changes before each."""
    chance = np.random.default_rng(seed)
    return {
        url: [
            (START + timedelta(seconds=round(86_400 * at)), sum(change <= at for change in when))
            for at in (day + 0.3 * chance.random() for day in range(0, n_days, every))
        ]
        for url, when in changes.items()
    }


def index_history(folder: Path, captures: Mapping[str, list[tuple[datetime, int]]]) -> History:
    """The history of an index, imported from its file."""
    lines = [cdx_line(url, at, checksum(f"{url} {n}")) for url, seen in captures.items() for at, n in seen]
    file = written_cdx(folder / "index.cdx", lines)
    history = History.create(folder / "history")
    import_files(history, [str(file)], ImportOptions())
    return history
