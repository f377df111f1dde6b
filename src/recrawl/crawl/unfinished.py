"""Notes about a running crawl, kept in the history's directory until it finishes, so that the next crawl can resume it."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import IO, Any

import orjson

from recrawl.history import History

if sys.platform != "win32":  # Windows has no such locks: there a second crawl is not detected
    import fcntl

#: Beginnings of messages after which the next crawl cannot resume this one.
NOT_KEPT, NOT_ALONE = "if this crawl is interrupted", "another crawl is using this history"
LOCK = "crawl.lock"  #: locked by the crawl that may write notes, as long as it runs
OTHERS = "crawl.others.lock"  #: locked by all crawls that began beside another one, as long as they run
#: Files for a crawl by its own plan, by a plan from a file, and for a first crawl from seeds.
PLAN, FILE, FIRST = "crawl.json", "file-crawl.json", "first-crawl.json"


def read_note(history: History, name: str) -> dict[str, Any]:
    """The note of an earlier crawl; empty if that crawl finished or the note cannot be read."""
    try:
        note = orjson.loads(history.beside.read_bytes(name) or b"")
    except ValueError:
        return {}
    return note if isinstance(note, dict) else {}


def write_note(history: History, name: str, note: dict[str, Any]) -> None:
    """Store the note of this crawl, whole or not at all."""
    history.beside.write_bytes(name, orjson.dumps(note))


def remove_note(history: History, name: str, note: dict[str, Any]) -> None:
    """Remove the note of a crawl that finished, unless another crawl has replaced it."""
    if note and read_note(history, name) == note:
        history.beside.remove(name)


class CrawlLock:
    """The locks of a history, held until a crawl's process ends. A second crawl is warned, not stopped.

    `is_ours`: no other crawl may write notes. `is_alone`: no other crawl runs. A crawl that began beside another one may outlast
    it, so the next one can be the only one with notes and yet not be alone.
    """

    def __init__(self, history: History) -> None:
        self._file: IO[bytes] | None = None
        self.is_ours = self.is_alone = True
        if not history.beside.can_lock:  # another crawl may be running: its notes are left alone, and none are written
            self.is_ours = False
            return
        if sys.platform == "win32":
            return
        with suppress(OSError):  # in a directory that cannot be written there is no lock, and no warning
            self._file = history.beside.open_lock(LOCK)
            self.is_ours = _could_lock(self._file)
            self.is_alone = self.is_ours and not _has_others(history)
            if not self.is_ours:
                self._file.close()
                self._file = history.beside.open_lock(OTHERS)
                fcntl.flock(self._file, fcntl.LOCK_SH)

    def release(self) -> None:
        """Allow another crawl to take the lock."""
        if self._file is not None:
            self._file.close()


def _could_lock(file: IO[bytes]) -> bool:
    """Lock a file for this process alone; False if another process has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _has_others(history: History) -> bool:
    if not history.beside.exists(OTHERS):
        return False
    with history.beside.open_lock(OTHERS) as file:
        return not _could_lock(file)
