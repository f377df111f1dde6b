"""Bytes on their way to a worker and back: small ones in the message, large ones as files in a folder that all workers see."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

from recrawl.core.places import ObjectPath, Place, entries, make_folder, place, write_bytes
from recrawl.errors import EngineError

MOST_INLINE = 16 << 20  #: bytes that a message may carry where there is no folder
AS_FILE = 1 << 20  #: bytes from which a file is quicker where there is one


@dataclass(frozen=True, kw_only=True)
class Parcels:
    """How bytes travel.

    >>> parcels = Parcels(folder=None)
    >>> parcels.opened(*parcels.packed(b"some bytes", "task 1"))
    b'some bytes'
    """

    folder: str | None  # None: there is none
    most_inline: int = MOST_INLINE

    def packed(self, data: bytes, what: str) -> tuple[bool, bytes]:
        """Whether the bytes went to a file, and the bytes or the file's name; `what` is their name in an error."""
        if self.folder is None:
            if len(data) > self.most_inline:
                raise EngineError(
                    f"{what} has {len(data) / 2**20:,.0f} MiB; more than {self.most_inline >> 20} MiB travel as files: name a "
                    "folder that all workers see, open_engine(…, work=FOLDER)"
                )
            return False, data
        if len(data) < AS_FILE:
            return False, data
        name = uuid4().hex
        make_folder(self._place())
        write_bytes(self._place() / name, data)
        return True, name.encode()

    def opened(self, is_file: bool, data: bytes) -> bytes:
        """The bytes that were packed."""
        return (self._place() / data.decode()).read_bytes() if is_file else data

    def remove(self) -> None:
        """Remove all files."""
        if self.folder is None:
            return
        with suppress(OSError):
            folder = self._place()
            for entry in entries(folder):
                (folder / entry.name).unlink(missing_ok=True)
            if not isinstance(folder, ObjectPath):
                folder.rmdir()

    def _place(self) -> Place:
        return place(self.folder or "")


def parcels_in(work: Place | str | None, most_inline: int = MOST_INLINE) -> Parcels:
    """Parcels with a folder of their own below `work`; None: without files."""
    if work is None:
        return Parcels(folder=None, most_inline=most_inline)
    below = place(work)
    below = below if isinstance(below, ObjectPath) else below.absolute()
    return Parcels(folder=str(below / uuid4().hex), most_inline=most_inline)
