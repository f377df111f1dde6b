"""Steps appended to a file, one JSON object per line: a step costs its own size, however long the file is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from recrawl.errors import BadRecord

_SUFFIX = ".journal"


def append(path: Path, step: dict[str, Any]) -> None:
    """Add a step to the journal beside a file; when this returns, it is on disk."""
    with path.with_suffix(_SUFFIX).open("ab") as stream:
        stream.write(orjson.dumps(step) + b"\n")
        stream.flush()
        os.fsync(stream.fileno())


def replay(path: Path, take: Callable[[dict[str, Any]], None]) -> int | None:
    """Pass every step on, in order, and return how many there are; None without a journal.

    A kill may leave half a line at the end. What follows a damaged line is not used: steps build on those before them.
    """
    try:
        lines = path.with_suffix(_SUFFIX).read_bytes().split(b"\n")
    except FileNotFoundError:
        return None
    for number, line in enumerate(lines[:-1]):
        try:
            take(orjson.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError, BadRecord):
            return number
    return len(lines) - 1


def remove(path: Path) -> None:
    """Forget all steps: the file itself holds them now."""
    path.with_suffix(_SUFFIX).unlink(missing_ok=True)
