"""Finished runs on disk, one file each: a replay that was stopped continues where it was."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import xxhash

from recrawl.core.files import write_bytes
from recrawl.core.version import __version__
from recrawl.errors import RecrawlError
from recrawl.replay.run import Row
from recrawl.replay.runs import Run

FORMAT = 1


@dataclass(frozen=True)
class Shelf:
    """A folder of finished runs over one world.

    A file holds JSON lines: what was run, its rows, and a last line with a digest of the lines before it and how long each cycle
    took. Only the last line differs when the same run is repeated. A run of another world, of other settings or of another
    version of this program has another name, and is left alone.
    """

    folder: Path
    world: str  # its fingerprint

    def path(self, run: Run) -> Path:
        """Where a run is kept."""
        name = re.sub(r"[^\w.-]+", "_", run.policy.name)
        return self.folder / f"{name}-{run.budget.pages}-{xxhash.xxh64_hexdigest(self._head(run))}.jsonl"

    def read(self, run: Run, n_cycles: int) -> list[Row] | None:
        """The rows of a finished run; None where there is none, or where it is damaged."""
        try:
            body, last = self.path(run).read_bytes().rstrip(b"\n").rsplit(b"\n", 1)
            end: dict[str, Any] = orjson.loads(last)
            head, *lines = body.split(b"\n")
            is_whole = (
                end["digest"] == xxhash.xxh3_128_hexdigest(body) and len(lines) == len(end["seconds"]) == n_cycles
            )
        except (FileNotFoundError, ValueError, LookupError, TypeError):
            return None
        except OSError as error:
            raise RecrawlError(f"cannot read {self.path(run)}: {error.strerror or error}") from error
        if not is_whole or head != self._head(run):
            return None
        rows = map(orjson.loads, lines)
        return [{**row, "seconds": seconds} for row, seconds in zip(rows, end["seconds"], strict=True)]

    def write(self, run: Run, rows: list[Row]) -> None:
        """Keep a finished run; the file is never incomplete, not even after a power cut."""
        timeless = run.replayed(rows).timeless_rows()
        body = b"\n".join([self._head(run), *map(orjson.dumps, timeless)])
        end = {"digest": xxhash.xxh3_128_hexdigest(body), "seconds": [row["seconds"] for row in rows]}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_bytes(self.path(run), body + b"\n" + orjson.dumps(end) + b"\n")
        except OSError as error:
            raise RecrawlError(f"cannot keep a finished run in {self.folder}: {error.strerror or error}") from error

    def _head(self, run: Run) -> bytes:
        head = {"format": FORMAT, "recrawl": __version__, "world": self.world, **run.describe()}
        return orjson.dumps(head, option=orjson.OPT_SORT_KEYS)
