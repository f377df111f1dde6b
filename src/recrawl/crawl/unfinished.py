"""What a crawl is at, noted in the history's directory until it has come to its end, so that the next one can go on from there."""

from __future__ import annotations

import os
from typing import Any

import orjson

from recrawl.errors import HistoryError
from recrawl.history import History

PLAN, FIRST = "crawl.json", "first-crawl.json"  #: the notes of crawls by a plan, and of those outwards from seeds


def noted(history: History, name: str) -> dict[str, Any]:
    """What an earlier crawl noted; nothing where it came to its end, or the note cannot be read."""
    try:
        found = orjson.loads((history.store.folder / name).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def note_down(history: History, name: str, what: dict[str, Any]) -> None:
    """Note what this crawl is at, whole or not at all."""
    path = history.store.folder / name
    beside = path.with_suffix(f".{os.getpid()}")
    try:
        beside.write_bytes(orjson.dumps(what))
        beside.replace(path)
    except OSError as error:
        raise HistoryError(f"cannot write {path}: {error.strerror}") from error


def came_to_its_end(history: History, name: str, what: dict[str, Any]) -> None:
    """The next crawl begins anew, unless another one is noted by now."""
    if what and noted(history, name) == what:
        (history.store.folder / name).unlink(missing_ok=True)
