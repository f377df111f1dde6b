"""What a disk may hold after a power cut at any moment of some work, and checks of it.

Python's functions that touch names or wait for the disk are followed; before and after each of them the tree is looked at again. So
what others wrote in between counts as well, whichever way they went: the Delta engine calls none of these functions, nor does code
that writes to an open file. What they wrote is taken as not synced, and the names that they removed as gone one by one.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest

TOUCHING = ("fsync", "fdatasync", "link", "replace", "rename", "unlink", "remove", "mkdir", "rmdir")
LOG = "_delta_log"
FOLDER, EMPTY = -1, 0

State = dict[str, int]  # path → number of its content, or FOLDER


class Contents:
    """Every content once, by number, as a file that a state can link to; 0 is the empty one."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._numbers: dict[bytes, int] = {}
        self._halves: dict[int, int] = {}
        self.number(b"")

    def number(self, content: bytes) -> int:
        if content not in self._numbers:
            number = self._numbers[content] = len(self._numbers)
            self.path(number).write_bytes(content)
        return self._numbers[content]

    def half(self, number: int) -> int:
        """The number of the first half of a content."""
        if number not in self._halves:
            content = self.path(number).read_bytes()
            self._halves[number] = self.number(content[: len(content) // 2])
        return self._halves[number]

    def path(self, number: int) -> Path:
        return self._folder / str(number)


@dataclass(eq=False)
class File:
    stamp: tuple[int, int] = (-1, -1)
    now: int = EMPTY
    synced: int | None = None  # what it held when it was last synced; None: it never was


@dataclass(eq=False)
class Folder:
    is_log: bool = False
    now: dict[str, File | Folder] = field(default_factory=dict)
    synced: dict[str, File | Folder] = field(default_factory=dict)


class Disk:
    """Follows what is written below a folder, and knows what of it would outlive a power cut."""

    def __init__(self, top: Path, contents: Contents) -> None:
        self.top, self.contents = top, contents
        self._nodes: dict[int, File | Folder] = {}  # by inode
        self._is_changed = False
        self.gone: list[
            tuple[Folder, list[str], dict[str, File | Folder]]
        ] = []  # names that the last look did not find again
        self.look()
        for node in self._nodes.values():  # what is there at the beginning is safe
            self._settle(node)

    def look(self) -> bool:
        """Take in what is there now, by whatever writer; whether anything has changed."""
        before, self._nodes, self._is_changed, self.gone = self._nodes, {}, False, []
        self._look(str(self.top), os.lstat(self.top), before)
        return self._is_changed

    def _look(self, path: str, about: os.stat_result, before: dict[int, File | Folder]) -> File | Folder:
        is_folder = stat.S_ISDIR(about.st_mode)
        node = self._nodes.get(about.st_ino) or before.get(about.st_ino)
        if node is None or isinstance(node, Folder) != is_folder:
            node = Folder(os.path.basename(path) == LOG) if is_folder else File()
        self._nodes[about.st_ino] = node
        if isinstance(node, Folder):
            with os.scandir(path) as found:
                names = {each.name: self._look(each.path, each.stat(follow_symlinks=False), before) for each in found}
            self._rename(node, names)
        elif node.stamp != (stamp := (about.st_mtime_ns, about.st_size)):
            content = self.contents.number(Path(path).read_bytes())
            self._is_changed |= content != node.now
            node.stamp, node.now = stamp, content
        return node

    def _rename(self, folder: Folder, names: dict[str, File | Folder]) -> None:
        if names != folder.now:
            self._is_changed = True
            if lost := sorted(folder.now.keys() - names.keys()):
                self.gone.append((folder, lost, folder.now))
            folder.now = names

    def sync(self, descriptor: int) -> bool:
        """Whether it is one of this disk."""
        node = self._nodes.get(os.fstat(descriptor).st_ino)
        if node is not None:
            self._settle(node)
        return node is not None

    @staticmethod
    def _settle(node: File | Folder) -> None:
        if isinstance(node, Folder):
            node.synced = dict(node.now)
        else:
            node.synced = node.now

    def while_names_went(self) -> Iterator[None]:
        """Steps between the last two looks: each name that went by itself, first to last and last to first."""
        for folder, names, before in self.gone:
            now = folder.now
            for i in range(1, len(names)):
                for left in (names[i:], names[:i]):
                    folder.now = now | {name: before[name] for name in left}
                    yield
            folder.now = now

    def states(self) -> Iterator[tuple[str, State]]:
        """The worst that may be left."""
        yield "what was not synced is lost", self._built(lambda folder: False, self._kept)
        yield "new files are empty", self._built(lambda folder: True, self._kept)
        yield "new files are cut", self._built(lambda folder: True, self._cut)
        yield "only what is new in logs is left", self._built(lambda folder: folder.is_log, self._whole_in_logs)
        yield "what is new in logs is lost", self._built(lambda folder: not folder.is_log, self._cut)

    @staticmethod
    def _kept(folder: Folder, file: File) -> int:
        return EMPTY if file.synced is None else file.synced

    def _cut(self, folder: Folder, file: File) -> int:
        return file.now if file.synced == file.now else self.contents.half(file.now)

    def _whole_in_logs(self, folder: Folder, file: File) -> int:
        return file.now if folder.is_log else self._kept(folder, file)

    def _built(self, is_new: Callable[[Folder], bool], content: Callable[[Folder, File], int]) -> State:
        built: State = {}

        def put(folder: Folder, path: str) -> None:
            built[path] = FOLDER
            for name, node in (folder.now if is_new(folder) else folder.synced).items():
                if isinstance(node, Folder):
                    put(node, f"{path}/{name}")
                else:
                    built[f"{path}/{name}"] = content(folder, node)

        top = self._nodes[os.lstat(self.top).st_ino]
        assert isinstance(top, Folder)
        put(top, ".")
        return built


class Checks(Protocol):
    """What must hold of each state that may be left, in the folder that is given."""

    def every(self, left: Path) -> None:
        """Of every state; it only reads."""

    def table(self, left: Path, name: str) -> None:
        """Of a table, whenever its folder differs from all that were read; it only reads."""

    def log(self, left: Path) -> None:
        """Whenever a log or a file beside the tables differs; it may write."""


class PowerCuts:
    """Builds what may be left before and after each step of some work, and checks it.

    The same state is checked once for each promise. A step changes one table, so to read all of them in every state would be to
    read the same bytes a hundred times: a table is read whole when what is in its folder differs from all that was read, but for
    drafts and scratch folders, whose names begin with a dot. To write is dearer still. Writers go by logs and by small files beside
    the tables; what no log names yet has a name by chance, and no writer meets it: states that differ in that alone are written to
    once.
    """

    def __init__(self, top: Path, scratch: Path, checks: Checks) -> None:
        self.disk, self.checks = Disk(top, Contents(scratch / "contents")), checks
        self.n_steps = self.n_states = self.n_tables = self.n_logs = 0
        self._left = scratch / "left"
        self._held: State = {}  # what is in that folder
        self._is_busy = self._is_written = False
        self._seen: set[tuple[str, int]] = set()
        self._tables: set[str] = set()

    def follow(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in TOUCHING:
            monkeypatch.setattr(os, name, self._followed(name, getattr(os, name)))

    def promise(self) -> None:
        """From now on more must be found: states that were good enough before are checked again."""
        self._seen.clear()
        self._is_busy = True
        try:
            self._look("work was reported as done")
            self._check(f"after step {self.n_steps}, when work was reported as done")
        finally:
            self._is_busy = False

    def _followed(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        is_sync = name in ("fsync", "fdatasync")

        def followed(*given: Any, **more: Any) -> Any:
            if self._is_busy:  # with a copy, which need not be on disk
                self._is_written = True
                return None if is_sync else work(*given, **more)
            self._is_busy = True
            try:
                self._look(name)
                result = work(*given, **more)
                is_changed, is_synced = self.disk.look(), is_sync and self.disk.sync(given[0])
                if is_changed or is_synced:
                    self.n_steps += 1
                    self._check(f"after step {self.n_steps} ({name})")
                return result
            finally:
                self._is_busy = False

        return followed

    def _look(self, next_step: str) -> None:
        """Check what was written since the last step: the next one may be a sync of it."""
        if self.disk.look():
            for _ in self.disk.while_names_went():
                # Only read: the engine removes what a checkpoint replaces, and a writer goes by the newest one.
                self._check(f"after step {self.n_steps}, while names went before {next_step}", is_written=False)
            self._check(f"after step {self.n_steps}, before {next_step}")

    def _check(self, when: str, *, is_written: bool = True) -> None:
        for what, state in self.disk.states():
            if self._is_new("", state.items()):
                self.n_states += 1
                try:
                    self._check_state(state, is_written)
                except Exception as error:
                    raise AssertionError(f"{when}, where {what}: {error}") from error

    def _check_state(self, state: State, is_written: bool) -> None:
        self._put(state)
        self.checks.every(self._left)
        tables = tables_of(state)
        self._tables |= tables.keys()
        for name in sorted(self._tables):
            if self._is_new(name, tables.get(name, ())):  # that a table is gone is a difference, too
                self.n_tables += 1
                self.checks.table(self._left, name)
        if is_written and self._is_new("logs", (item for item in state.items() if is_met_by_writers(item[0]))):
            self.n_logs += 1
            self.checks.log(self._left)

    def _is_new(self, what: str, items: Iterable[tuple[str, int]]) -> bool:
        n_before = len(self._seen)
        self._seen.add((what, hash(frozenset(items))))
        return len(self._seen) > n_before

    def _put(self, state: State) -> None:
        """Make the folder hold a state: by what differs from the one before, unless that was written to."""
        if self._is_written:
            shutil.rmtree(self._left, ignore_errors=True)
            self._held = {}
        for path in sorted((path for path, what in self._held.items() if state.get(path) != what), reverse=True):
            (os.rmdir if self._held[path] == FOLDER else os.unlink)(self._left / path)
        for path, what in state.items():
            if self._held.get(path) != what:
                if what == FOLDER:
                    os.mkdir(self._left / path)
                else:
                    os.link(self.disk.contents.path(what), self._left / path)
        self._held, self._is_written = state, False


def tables_of(state: State) -> dict[str, list[tuple[str, int]]]:
    """What readers may meet in the folder of each table, by its name."""
    found: dict[str, list[tuple[str, int]]] = {}
    for path, what in state.items():
        parts = path.split("/", 3)  # ./history/table/…
        if len(parts) == 4 and "/." not in path:
            found.setdefault(parts[2], []).append((path, what))
    return found


def is_met_by_writers(path: str) -> bool:
    """Whether a file or folder has a name that a writer may look for."""
    return "/." not in path and (f"/{LOG}/" in path or not path.endswith(".parquet"))
