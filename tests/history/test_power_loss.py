"""Whatever a disk holds after a power cut, every visit that was acknowledged is there.

Every step of an import that touches names or waits for the disk is followed. After each of them the worst states that a disk may
be left in are built: what was not synced is lost, empty or cut, and names are as old as the last sync of their folder, or as new as
the last step. Each state is opened, read, and imported into.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from recrawl.core import files
from recrawl.history import History
from recrawl.history.hints import HINTS
from recrawl.history.plans import PLANS_TABLE
from recrawl.web.visit import Visit

START = datetime(2026, 1, 1, tzinfo=UTC)
TOUCHING = ("fsync", "link", "replace", "rename", "unlink", "mkdir", "rmdir")


@dataclass
class Disk:
    """Follows what is written below a folder, and knows what of it would outlive a power cut."""

    top: Path
    tokens: dict[int, int] = field(default_factory=dict)  # inode → a number that is never used again
    numbers: Iterator[int] = field(default_factory=count)
    now: dict[int, bytes] = field(default_factory=dict)  # content by number
    stamps: dict[int, tuple[int, int]] = field(default_factory=dict)
    synced: dict[int, bytes] = field(default_factory=dict)  # content when it was last synced
    names: dict[int, dict[str, int]] = field(default_factory=dict)  # of folders, now
    synced_names: dict[int, dict[str, int]] = field(default_factory=dict)
    folders: set[int] = field(default_factory=set)

    def look(self) -> None:
        """Take in what is there now, by whatever writer."""
        live: set[int] = set()
        self._look(self.top, live)
        for inode in [inode for inode in self.tokens if inode not in live]:
            del self.tokens[inode]

    def _look(self, path: Path, live: set[int]) -> int:
        about = os.lstat(path)
        live.add(about.st_ino)
        number = self.tokens.setdefault(about.st_ino, -1)
        if number < 0:
            number = self.tokens[about.st_ino] = next(self.numbers)
        if path.is_dir():
            self.folders.add(number)
            self.names[number] = {entry.name: self._look(Path(entry.path), live) for entry in os.scandir(path)}
        elif self.stamps.get(number) != (stamp := (about.st_mtime_ns, about.st_size)):
            self.stamps[number], self.now[number] = stamp, path.read_bytes()
        return number

    def sync(self, descriptor: int) -> None:
        number = self.tokens.get(os.fstat(descriptor).st_ino)
        if number is None:
            return
        if number in self.folders:
            self.synced_names[number] = dict(self.names[number])
        else:
            self.synced[number] = self.now[number]

    def states(self) -> Iterator[tuple[str, dict[str, bytes | None]]]:
        """The worst that may be left, each as path → content; None: a folder."""
        kept = self.synced
        half = {number: kept.get(number, text[: len(text) // 2]) for number, text in self.now.items()}
        everywhere = dict.fromkeys(self.folders, True)
        logs = dict.fromkeys(self.folders, False) | dict.fromkeys(self._logs(), True)
        others = {number: not is_new for number, is_new in logs.items()}
        yield "what was not synced is lost", self._built({}, kept)
        yield "new files are empty", self._built(everywhere, kept)
        yield "new files are cut", self._built(everywhere, half)
        yield "of new names only those in logs are left", self._built(logs, kept)
        yield "of new names those in logs are lost", self._built(others, half)

    def _logs(self) -> Iterator[int]:
        for inside in self.names.values():
            if "_delta_log" in inside:
                yield inside["_delta_log"]

    def _built(self, is_new: dict[int, bool], content: dict[int, bytes]) -> dict[str, bytes | None]:
        built: dict[str, bytes | None] = {}

        def put(number: int, path: str) -> None:
            if number not in self.folders:
                built[path] = content.get(number, b"")
                return
            built[path] = None
            inside = self.names[number] if is_new.get(number) else self.synced_names.get(number, {})
            for name, each in inside.items():
                put(each, f"{path}/{name}")

        put(self.tokens[os.lstat(self.top).st_ino], ".")
        return built


class PowerCuts:
    """Builds what is left after each step of some work, and checks it; the same state is checked once."""

    def __init__(self, top: Path, scratch: Path, check: Callable[[Path], None]) -> None:
        self.disk, self.scratch, self.check = Disk(top), scratch, check
        self.is_busy, self.n_steps, self.n_states = False, 0, 0
        self._seen: set[int] = set()

    def follow(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.disk.look()
        root = self.disk.tokens[os.lstat(self.disk.top).st_ino]
        self.disk.synced_names[root] = dict(self.disk.names[root])
        for name in TOUCHING:
            monkeypatch.setattr(os, name, self._followed(name, getattr(os, name)))

    def _followed(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def followed(*given: Any, **more: Any) -> Any:
            if self.is_busy:  # with a copy, which need not be on disk
                return None if name == "fsync" else work(*given, **more)
            self.is_busy = True
            try:
                self.disk.look()  # what was written since
                result = work(*given, **more)
                self.disk.look()
                if name == "fsync":
                    self.disk.sync(given[0])
                self.after_step(name)
                return result
            finally:
                self.is_busy = False

        return followed

    def after_step(self, name: str) -> None:
        self.n_steps += 1
        for what, state in self.disk.states():
            if (key := hash(tuple(sorted(state.items(), key=lambda item: item[0])))) in self._seen:
                continue
            self._seen.add(key)
            self.n_states += 1
            folder = self.scratch / "left"
            _write(folder, state)
            try:
                self.check(folder)
            except Exception as error:
                raise AssertionError(f"after step {self.n_steps} ({name}), where {what}: {error}") from error
            finally:
                shutil.rmtree(folder)


def _write(folder: Path, state: dict[str, bytes | None]) -> None:
    for path, content in state.items():
        target = folder / path
        if content is None:
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.write_bytes(content)


def visits_of(i: int) -> list[Visit]:
    """What the i-th import brings."""
    return [
        Visit(
            url=f"https://e.org/{(i + k) % 5}",
            at=START + timedelta(hours=i, minutes=k),
            status=200,
            links=[f"https://e.org/{i}-{k}", "https://f.org/"],
            text=f"on day {i} page {k} says this",
        )
        for k in range(3)
    ]


def keys_of(history: History) -> set[tuple[str, datetime]]:
    timeline = history.timeline
    urls = dict(zip(timeline.pages.tolist(), history.urls_of(timeline.pages).to_pylist(), strict=True))
    return {
        (urls[page], moment)
        for page, moment in zip(timeline.page.tolist(), timeline.rows["at"].to_pylist(), strict=True)
    }


def imported(n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PowerCuts:
    """Some imports, each with a plan, hints and a setting beside it, and compactions, with a power cut after every step."""
    monkeypatch.setattr("recrawl.history.commits.CHECKPOINT_EVERY", 4)
    (tmp_path / "top").mkdir()
    (tmp_path / "scratch").mkdir()
    acknowledged: dict[str, Any] = {"visits": set(), PLANS_TABLE.name: 0, HINTS.name: 0, "setting": None}
    at_work: list[Visit] = []

    def check(left: Path) -> None:
        history = History.create(left / "h")
        assert acknowledged["visits"] <= keys_of(history)
        for table in (PLANS_TABLE, HINTS):
            assert table.read(history.beside).num_rows >= acknowledged[table.name]
        assert acknowledged["setting"] in (None, history.beside.read_bytes("setting.json")) or at_work
        history.add(at_work)  # the same import again completes what was begun
        again = keys_of(History.open(left / "h"))
        assert acknowledged["visits"] | {(visit.url, visit.at) for visit in at_work} <= again

    cuts = PowerCuts(tmp_path / "top", tmp_path / "scratch", check)
    cuts.follow(monkeypatch)
    history = History.create(tmp_path / "top" / "h")
    for i in range(n):
        at_work = visits_of(i)
        assert history.add(at_work).added == 3
        acknowledged["visits"] |= {(visit.url, visit.at) for visit in at_work}
        for table in (PLANS_TABLE, HINTS):
            table.append(history.beside, pa.Table.from_pylist([{}], table.schema))
            acknowledged[table.name] += 1
        history.beside.write_bytes("setting.json", str(i).encode())
        acknowledged["setting"] = str(i).encode()
        at_work = []
        if i % 5 == 4:
            history.compact()
    assert len(keys_of(History.open(tmp_path / "top" / "h"))) == 3 * n
    return cuts


def test_no_power_cut_loses_a_visit_that_was_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cuts = imported(2, tmp_path, monkeypatch)
    assert cuts.n_steps > 50
    assert cuts.n_states > 50


def test_a_writer_that_does_not_wait_for_the_disk_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recrawl.history.commits.sync", lambda path: None)
    with pytest.raises(AssertionError, match="after step"):
        imported(2, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "suffix",
    [".parquet", pytest.param(".draft", marks=pytest.mark.slow), pytest.param("_delta_log", marks=pytest.mark.slow)],
)
def test_so_is_one_that_forgets_some_files(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "recrawl.history.commits.sync", lambda path: None if str(path).endswith(suffix) else files.sync(path)
    )
    with pytest.raises(AssertionError, match="after step"):
        imported(2, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_so_it_is_for_many_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cuts = imported(int(os.environ.get("IMPORTS", "12")), tmp_path, monkeypatch)
    print(f"{cuts.n_steps} steps, {cuts.n_states} states")
    assert cuts.n_states > cuts.n_steps
