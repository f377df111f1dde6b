"""Files that tasks leave for the tasks that follow, in a folder that all workers see; they last as long as a job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from recrawl.core.places import ObjectPath, Place, entries, located, make_folder, place, write_bytes
from recrawl.engine.packing import packed, unpacked


@dataclass(frozen=True)
class Scratch:
    """A folder of such files.

    >>> import tempfile
    >>> with scratch_in(Path(tempfile.mkdtemp())) as scratch:
    ...     scratch.write("note", {"n": 3})
    ...     scratch.read("note")
    {'n': 3}
    """

    folder: str

    def write(self, name: str, value: Any) -> None:
        """Leave a value."""
        write_bytes(self.file(name), packed(value))

    def read(self, name: str) -> Any:
        """The value of this name."""
        return unpacked(self.file(name).read_bytes())

    def file(self, name: str) -> Place:
        """The file of this name."""
        return place(self.folder) / name

    @contextmanager
    def table_writer(self, name: str, schema: pa.Schema) -> Iterator[pa.ipc.RecordBatchFileWriter]:
        """Where the batches of a table are written one by one."""
        system, path = located(self.file(name))
        with system.open_output_stream(path) as stream, pa.ipc.new_file(stream, schema) as writer:
            yield writer

    @contextmanager
    def table_reader(self, name: str) -> Iterator[pa.ipc.RecordBatchFileReader]:
        """From where each of the batches can be read."""
        system, path = located(self.file(name))
        with system.open_input_file(path) as stream, pa.ipc.open_file(stream) as reader:
            yield reader


@contextmanager
def scratch_in(work: Place) -> Iterator[Scratch]:
    """A folder of its own below `work`, removed at the end with all that is in it."""
    below = work if isinstance(work, ObjectPath) else work.absolute()
    scratch = Scratch(str(below / uuid4().hex))
    make_folder(place(scratch.folder))
    try:
        yield scratch
    finally:
        with suppress(OSError):
            folder = place(scratch.folder)
            for entry in entries(folder):
                (folder / entry.name).unlink(missing_ok=True)
            if isinstance(folder, Path):
                folder.rmdir()
