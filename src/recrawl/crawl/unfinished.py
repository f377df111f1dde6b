"""What a crawl is at, noted in the history's directory until it has come to its end, so that the next one can go on from there."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import IO, Any

import orjson

from recrawl.errors import HistoryError
from recrawl.history import History

if sys.platform != "win32":  # where nobody is warned
    import fcntl

#: How notes begin that tell that the next crawl cannot go on with this one.
NOT_KEPT, NOT_ALONE = "should this crawl be cut short", "another crawl into this history is under way"
LOCK = "crawl.lock"  #: held by a crawl as long as it runs
#: The notes of crawls by a plan made then, by one from a file, and outwards from seeds.
PLAN, FILE, FIRST = "crawl.json", "file-crawl.json", "first-crawl.json"


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


class Turn:
    """Whose turn it is to crawl into a history: one crawl holds it until it ends, however that happens."""

    def __init__(self, history: History) -> None:
        self._held: IO[bytes] | None = None
        self.is_ours = True
        if sys.platform == "win32":
            return
        with suppress(OSError):  # where nothing can be written nobody can be warned
            self._held = (history.store.folder / LOCK).open("ab")
            try:
                fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.is_ours = False

    def end(self) -> None:
        """Another may crawl."""
        if self._held is not None:
            self._held.close()
