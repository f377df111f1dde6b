"""The files that an import on many machines reads, and groups of them: one group is one task, and about one commit."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from recrawl.core.places import ObjectPath, object_at
from recrawl.errors import BadOption

GROUP_BYTES, GROUP_FILES = 64 << 20, 1000  #: of one group, at most
SMALLEST_GROUP, MOST_GROUPS = 4 << 20, 64  #: a small import is cut finer, so that many workers share it
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, kw_only=True)
class InputFile:
    """A file, or an object of a store by its URL."""

    name: str
    n_bytes: int


def input_files(names: Iterable[str], *, absolute: bool) -> list[InputFile]:
    """The files that some names mean: files, folders with all that is in them, patterns (``*``, ``?``, ``**``), URLs of a store.

    A name that leads nowhere stays as it is: reading it says why. `absolute`: workers may have another working directory.
    """
    found: dict[str, InputFile] = {}
    for name in names:
        if name == "-":
            raise BadOption("standard input has no second reader: with --engine, name files that all workers see")
        for file in _stored(name) if "://" in name else _local(name, absolute):
            found.setdefault(file.name, file)
    return list(found.values())


def groups(files: Iterable[InputFile]) -> Iterator[list[InputFile]]:
    """Files in groups of about equal size, in their order.

    >>> sizes = [InputFile(name=str(i), n_bytes=3 << 20) for i in range(3)]
    >>> [[file.name for file in group] for group in groups(sizes)]
    [['0', '1'], ['2']]
    """
    files = list(files)
    size = min(GROUP_BYTES, max(SMALLEST_GROUP, sum(file.n_bytes for file in files) // MOST_GROUPS))
    group: list[InputFile] = []
    n_bytes = 0
    for file in files:
        group.append(file)
        n_bytes += file.n_bytes
        if n_bytes >= size or len(group) == GROUP_FILES:
            yield group
            group, n_bytes = [], 0
    if group:
        yield group


def _local(name: str, absolute: bool) -> Iterator[InputFile]:
    paths = [name]
    if os.path.isdir(name):
        paths = sorted(str(path) for path in Path(name).rglob("*") if path.is_file() and not _is_hidden(path, name))
    elif _WILD.search(name) and not os.path.exists(name):
        paths = sorted(path for path in glob.glob(name, recursive=True) if os.path.isfile(path)) or [name]
    for path in paths:
        size = os.path.getsize(path) if os.path.isfile(path) else 0
        yield InputFile(name=os.path.abspath(path) if absolute else path, n_bytes=size)


def _is_hidden(path: Path, folder: str) -> bool:
    """Whether it is what tools leave beside files of theirs, such as ``.crc`` and ``_SUCCESS``."""
    return any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


def _stored(name: str) -> Iterator[InputFile]:
    wild = _WILD.search(name)
    folder = name if wild is None else name[: name.rindex("/", 0, wild.start()) + 1]
    place = object_at(folder)
    if place is None:
        yield InputFile(name=name, n_bytes=0)  # of no store that is known: reading it says so
    elif wild is None and place.path and place.is_file():
        yield InputFile(name=str(place), n_bytes=_size(place))
    else:
        fits = re.compile(_pattern(name)).fullmatch if wild else lambda url: True
        listed = [InputFile(name=str(path), n_bytes=n_bytes) for path, n_bytes in place.below() if fits(str(path))]
        shown = [file for file in listed if wild or not _is_hidden(Path(file.name), folder.rstrip("/"))]
        yield from shown or [InputFile(name=name, n_bytes=0)]


def _size(place: ObjectPath) -> int:
    from recrawl.core.places import size_of

    return size_of(place)


def _pattern(wild: str) -> str:
    """A pattern of file names as a regular expression: ``*`` and ``?`` stay within a folder, ``**`` goes through all.

    >>> bool(re.fullmatch(_pattern("s3://b/x/*.gz"), "s3://b/x/1.gz")), bool(re.fullmatch(_pattern("s3://b/*.gz"), "s3://b/x/1.gz"))
    (True, False)
    """
    signs = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]/]+\])", wild)
    return "".join(signs.get(part, part if i % 2 else re.escape(part)) for i, part in enumerate(parts))
