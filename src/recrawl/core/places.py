"""Where a history is kept: a folder of this machine, or a prefix of an object store (``s3://``, ``gs://``, ``abfss://``).

`ObjectPath` has those methods of `pathlib.Path` that histories need, so that the same code serves both. Credentials and endpoints
come from the environment, under the names that the stores' own tools use (``AWS_ACCESS_KEY_ID``, ``AWS_ENDPOINT_URL``, …).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recrawl.core import files
from recrawl.errors import MissingPackage, RecrawlError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl")
MOST_RETRIES, RETRY_SECONDS = 8, 20  #: for requests that a store refuses or does not answer
TIMEOUT = 20  #: seconds that one request may take


@dataclass(frozen=True)
class FileEntry:
    """A file as its folder lists it."""

    name: str
    size: int
    modified: float  # seconds since 1970


@dataclass(frozen=True)
class ObjectPath:
    """A place in an object store: a history's root, or a file or folder below it.

    >>> visits = ObjectPath("s3://bucket/crawls/news") / "visits" / "part-0.parquet"
    >>> str(visits), visits.name
    ('s3://bucket/crawls/news/visits/part-0.parquet', 'part-0.parquet')
    """

    root: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.root}/{self.path}" if self.path else self.root

    def __truediv__(self, name: str) -> ObjectPath:
        return ObjectPath(self.root, f"{self.path}/{name}" if self.path else name)

    @property
    def name(self) -> str:
        """Its last part."""
        return str(self).rpartition("/")[2]

    @property
    def parent(self) -> ObjectPath:
        """The folder that it is in."""
        return ObjectPath(self.root, self.path.rpartition("/")[0])

    def is_file(self) -> bool:
        """Whether there is an object of this name."""
        try:
            with _errors_named(self):
                _store(self.root).head(self.path)
        except FileNotFoundError:
            return False
        return True

    def exists(self) -> bool:
        """Whether there is an object of this name, or one below it."""
        return (bool(self.path) and self.is_file()) or self.is_dir()

    def is_dir(self) -> bool:
        """Whether there is anything below it."""
        listed = self._listed()
        return bool(listed["objects"] or listed["common_prefixes"])

    def read_bytes(self) -> bytes:
        """The content of an object; raises `FileNotFoundError` where there is none."""
        with _errors_named(self):
            return bytes(_store(self.root).get(self.path).bytes())

    def chunks(self) -> Iterator[bytes]:
        """The content of an object, a few mebibytes at a time."""
        with _errors_named(self):
            for chunk in _store(self.root).get(self.path).stream(min_chunk_size=4 << 20):
                yield bytes(chunk)

    def write_bytes(self, data: bytes | memoryview) -> None:
        """Put an object, whole or not at all."""
        with _errors_named(self):
            _store(self.root).put(self.path, bytes(data))

    def create_bytes(self, data: bytes) -> bool:
        """Put an object if there is none of this name; False where there is one."""
        from obstore.exceptions import AlreadyExistsError

        with _errors_named(self):
            try:
                _store(self.root).put(self.path, data, mode="create")
            except AlreadyExistsError:
                return False
        return True

    def unlink(self, missing_ok: bool = True) -> None:
        """Remove an object."""
        try:
            with _errors_named(self):
                _store(self.root).delete(self.path)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def entries(self) -> list[FileEntry]:
        """The objects directly below it."""
        return [
            FileEntry(each["path"].rpartition("/")[2], each["size"], each["last_modified"].timestamp())
            for each in self._listed()["objects"]
        ]

    def iterdir(self) -> Iterator[ObjectPath]:
        """The folders and objects directly below it."""
        listed = self._listed()
        for path in [*listed["common_prefixes"], *(each["path"] for each in listed["objects"])]:
            yield self / path.rpartition("/")[2]

    def below(self) -> list[tuple[ObjectPath, int]]:
        """All objects below it, at any depth, and the bytes of each; in the order of their names."""
        with _errors_named(self):
            pages = list(_store(self.root).list(self.path or None))
        found = [(ObjectPath(self.root, each["path"]), int(each["size"])) for page in pages for each in page]
        return sorted((each for each in found if each[0].path.strip("/") != self.path), key=lambda each: each[0].path)

    def _listed(self) -> Any:
        with _errors_named(self):
            listed = _store(self.root).list_with_delimiter(self.path or None)
        # An empty object with the name of the folder itself, which some tools put for it, is nothing in it.
        return {**listed, "objects": [each for each in listed["objects"] if each["path"].strip("/") != self.path]}


#: A folder or a file of a history.
Place = Path | ObjectPath
_roots: set[str] = set()  # of the histories that were opened


def place(where: str | Path | ObjectPath) -> Place:
    """A folder, or a prefix of an object store.

    >>> place("s3://bucket/news/"), place("news")
    (ObjectPath(root='s3://bucket/news', path=''), PosixPath('news'))
    """
    if isinstance(where, ObjectPath):
        return where
    scheme, separator, rest = str(where).partition("://")
    if not separator:
        begins = str(where).partition(":/")[0]
        if begins in SCHEMES and not Path(where).exists():
            raise RecrawlError(f"{where} is no folder; the URL of an object store begins with {begins}://, as a text")
        return Path(where)
    if scheme not in SCHEMES:
        raise RecrawlError(f"no kind of store is named {scheme!r} ({where}). Known: {', '.join(SCHEMES)}, or a folder")
    if not rest.strip("/"):
        raise RecrawlError(f"{where} names no bucket; a history is at {scheme}://BUCKET/PREFIX")
    odd = [part for part in rest.rstrip("/").split("/") if part in ("", ".", "..") or part != part.strip()]
    if odd or any(sign in rest for sign in "?#%"):
        raise RecrawlError(
            f"{where!r} cannot be the place of a history: no ?, #, %, empty parts, or blanks around a part"
        )
    found = ObjectPath(str(where).rstrip("/"))
    _roots.add(found.root)
    return found


def object_at(url: str) -> ObjectPath | None:
    """The object, or folder, that a URL names in any bucket; None: the text is no URL of an object store.

    >>> object_at("s3://bucket/crawls/monday.warc.gz"), object_at("monday.warc.gz")
    (ObjectPath(root='s3://bucket', path='crawls/monday.warc.gz'), None)
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in SCHEMES:
        return None
    bucket, _, path = rest.partition("/")
    if not bucket:
        raise RecrawlError(f"{url} names no bucket; an object is at {scheme}://BUCKET/NAME")
    return ObjectPath(f"{scheme}://{bucket}", path.strip("/"))


def entries(folder: Place) -> list[FileEntry]:
    """The files in a folder; none where there is no such folder."""
    if isinstance(folder, ObjectPath):
        return folder.entries()
    found = []
    try:
        with os.scandir(folder) as listed:
            for each in listed:
                with suppress(FileNotFoundError):  # a draft of another process, which has its name by now
                    if each.is_file():
                        about = each.stat()
                        found.append(FileEntry(each.name, about.st_size, about.st_mtime))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return found


def size_of(file: Place | str) -> int:
    """Bytes of a file."""
    file = _known(file) if isinstance(file, str) else file
    if not isinstance(file, ObjectPath):
        return os.path.getsize(file)
    with _errors_named(file):
        return int(_store(file.root).head(file.path)["size"])


def write_bytes(file: Place, data: bytes | memoryview) -> None:
    """Write a file, whole or not at all; it is safe when this returns."""
    if isinstance(file, ObjectPath):
        file.write_bytes(data)
    else:
        files.write_bytes(file, data)


def make_folder(folder: Place) -> None:
    """Make a folder; an object store needs none."""
    if isinstance(folder, Path):
        files.make_folder(folder)


def located(file: Place | str) -> tuple[FileSystem, str]:
    """How Arrow reads and writes a file: by which file system, and under which path."""
    from pyarrow.fs import LocalFileSystem

    file = _known(file) if isinstance(file, str) else file
    if isinstance(file, ObjectPath):
        return _file_system(file.root), file.path
    return LocalFileSystem(), str(file)


def _known(file: str) -> ObjectPath | str:
    """A file of a history that was opened before, by its URL; or the path of a file of this machine."""
    if "://" not in file:
        return file
    root = max((root for root in _roots if file.startswith(root + "/")), key=len, default=None)
    if root is None:
        raise RecrawlError(f"{file} belongs to no history that was opened")
    return ObjectPath(root, file[len(root) + 1 :])


@cache
def _store(root: str) -> Any:
    """The object store that holds a prefix; paths are below that."""
    try:
        from obstore.store import from_url
    except ImportError as error:
        raise MissingPackage(f"a history at {root} needs obstore: pip install 'recrawl[store]'") from error
    allow_http = os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true", "yes")
    with _errors_named(root):
        return from_url(
            root,
            retry_config={"max_retries": MOST_RETRIES, "retry_timeout": timedelta(seconds=RETRY_SECONDS)},
            client_options={"timeout": f"{TIMEOUT} seconds", "connect_timeout": "5 seconds", "allow_http": allow_http},
        )


@cache
def _file_system(root: str) -> FileSystem:
    from deltalake.fs import DeltaStorageHandler
    from pyarrow.fs import PyFileSystem

    return PyFileSystem(DeltaStorageHandler(root, storage_options()))


def storage_options() -> dict[str, str]:
    """For the table engine, beside what it takes from the environment."""
    return {"max_retries": str(MOST_RETRIES), "retry_timeout": f"{RETRY_SECONDS}s", "connect_timeout": "5s"}


@contextmanager
def _errors_named(where: ObjectPath | str) -> Iterator[None]:
    """Errors of the store as one line; a missing object stays a `FileNotFoundError`."""
    try:
        yield
    except (FileNotFoundError, RecrawlError):
        raise
    except Exception as error:  # the library has a class of its own for each kind of store
        from obstore.exceptions import BaseError

        if not isinstance(error, BaseError | OSError | ValueError):
            raise
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise OSError(f"{where}: {line[:300]}") from error
