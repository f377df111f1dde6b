"""What is kept beside the visits: plans, hints, tuned settings, predictions, notes of crawls.

Nothing that a history says about the past depends on it. Everything goes through `Beside`, by name and never by path, so that it
is written whole or not at all, and could be kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from recrawl.core import places
from recrawl.core.places import Place
from recrawl.errors import HistoryError


class Beside:
    """Small files of a history, by name.

    >>> import tempfile
    >>> from recrawl.history import History
    >>> beside = History.create(tempfile.mkdtemp()).beside
    >>> beside.write_bytes("note.json", b"{}")
    >>> beside.read_bytes("note.json"), beside.exists("other.json"), beside.read_bytes("other.json")
    (b'{}', False, None)
    """

    def __init__(self, folder: Place, make_history: Callable[[], None]) -> None:
        self.folder = folder  # for `SideTable` only, and for messages
        self.make_history = make_history  # before anything is written

    def exists(self, name: str) -> bool:
        """Whether there is a file of that name."""
        return self._path(name).is_file()

    def read_bytes(self, name: str) -> bytes | None:
        """The content of a file; None where there is none that can be read."""
        try:
            return self._path(name).read_bytes()
        except OSError as error:
            self._check_answers(name, error)
            return None

    def write_bytes(self, name: str, data: bytes | memoryview) -> None:
        """Write a file, whole or not at all."""
        self.make_history()
        try:
            places.make_folder(self.folder)
            places.write_bytes(self._path(name), data)
        except OSError as error:
            raise HistoryError(f"cannot write {self._path(name)}: {error.strerror or error}") from error

    def within(self, name: str) -> Beside:
        """The files of a folder of their own."""
        return Beside(self._path(name), self.make_history)

    def files(self) -> list[tuple[str, float]]:
        """The names of all files, and when each was last written (seconds since 1970)."""
        try:
            return sorted((entry.name, entry.modified) for entry in places.entries(self.folder))
        except OSError as error:
            self._check_answers("", error)
            return []

    def remove(self, name: str) -> None:
        """Remove a file if it is there."""
        self._path(name).unlink(missing_ok=True)

    @property
    def can_lock(self) -> bool:
        """Whether processes can lock its files: not in an object store."""
        return isinstance(self.folder, Path)

    def open_lock(self, name: str) -> BinaryIO:
        """A file that processes can lock, made if it is not there; raises `OSError` where it cannot be written, or in a store."""
        self.make_history()
        path = self._path(name)
        if not isinstance(path, Path):
            raise OSError(f"{path} is in an object store, where nothing can be locked")
        return path.open("ab")

    def _check_answers(self, name: str, error: OSError) -> None:
        """A store that does not answer says nothing about what is in it."""
        if not isinstance(self.folder, Path) and not isinstance(error, FileNotFoundError):
            raise HistoryError(f"cannot read {self.folder}/{name}: {error}") from error

    def _path(self, name: str) -> Place:
        if name in ("", ".", "..") or Path(name).name != name:
            raise ValueError(f"{name!r} is not a plain file name")
        return self.folder / name
