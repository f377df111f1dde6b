"""Files written whole or not at all: no reader ever sees half of one, and a power cut leaves the old one or the new one."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from recrawl.errors import RecrawlError

_CANNOT = (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES)


@contextmanager
def draft(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The name of a file to write, beside `path`; it takes the place of `path` when the block ends, and is removed if it fails.

    For writers that open the file themselves. A device or a pipe cannot be replaced and is written directly.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "table.csv"
    >>> with draft(target) as beside:
    ...     _ = beside.write_text("url\\n")
    ...     target.exists()
    False
    >>> target.read_text(), len(list(target.parent.iterdir()))
    ('url\\n', 1)
    """
    if Path(path).exists() and not Path(path).is_file():
        yield Path(path)
        return
    target = Path(os.path.realpath(path))  # a link stays a link
    # By chance, not by the number of the process: two containers may have processes of one number.
    beside = target.with_name(f".{target.name[:150]}.{uuid4().hex}.draft")
    try:
        yield beside
        if target.exists():
            shutil.copymode(target, beside)
        sync(beside)
        os.replace(beside, target)
        sync(target.parent)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream to a `draft` of a file.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "note"
    >>> with writing(target) as stream:
    ...     _ = stream.write(b"whole")
    >>> target.read_bytes()
    b'whole'
    """
    with draft(path) as beside, beside.open("wb") as stream:
        yield stream


@contextmanager
def compressed_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """As `writing`, compressed as the file's name says: ``.gz`` or ``.zst``. A failure is a sentence with the file's name."""
    try:
        with writing(path) as file, _compressed(file, Path(path).suffix) as stream:
            yield stream
    except OSError as error:
        raise RecrawlError(f"cannot write {path}: {error.strerror or error}") from error


def _compressed(file: BinaryIO, suffix: str) -> Any:
    if suffix == ".gz":
        import gzip

        return gzip.GzipFile("", "wb", fileobj=file)
    if suffix == ".zst":
        import zstandard

        return zstandard.ZstdCompressor().stream_writer(file, closefd=False)
    return nullcontext(file)


def write_bytes(path: str | os.PathLike[str], data: bytes | memoryview) -> None:
    """Write a file in one step."""
    with writing(path) as stream:
        stream.write(data)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8 in one step."""
    write_bytes(path, text.encode())


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, on disk when this returns."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)


def sync(path: Path) -> None:
    """Have the file or folder on disk when this returns."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT or not path.is_dir():  # some network file systems cannot sync a folder
            raise
    finally:
        os.close(descriptor)
