"""Whatever a disk holds after a power cut, every visit that was acknowledged is there.

Every step of an import that touches names or waits for the disk is followed. Before and after each of them the worst states that a
disk may be left in are built: what was not synced is lost, empty or cut, and names are as old as the last sync of their folder, or
as new as the last step. Each state is opened and every acknowledged visit looked up in it, tables that differ are read, and where
logs differ the import is done again. Of the engine no call is followed, and none needs to be: it writes in scratch folders, removes
log entries that a checkpoint replaces, and what it did is looked at before the next step (see `power_cuts`).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from power_cuts import PowerCuts
from recrawl.core import files
from recrawl.history import History, opened
from recrawl.history.hints import HINTS
from recrawl.history.plans import PLANS_TABLE
from recrawl.history.schema import TABLES
from recrawl.web.urls import page_id
from recrawl.web.visit import Visit

START = datetime(2026, 1, 1, tzinfo=UTC)
BESIDE = {table.name: table for table in (PLANS_TABLE, HINTS)}
MEMORY = Path("/dev/shm")  # a disk that is never waited for, where there is one
FOUND_BY = ("visits", "link_sets", "urls")  # the tables that hold a visit, its links and its address

Key = tuple[str, int]  # URL, microseconds


@pytest.fixture
def folder() -> Iterator[Path]:
    where = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="power-", dir=where) as name:
        (Path(name) / "top").mkdir()
        (Path(name) / "scratch").mkdir()
        yield Path(name)


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


def keys(visits: list[Visit]) -> set[Key]:
    return {(visit.url, int(visit.at.timestamp()) * 1_000_000) for visit in visits}


def keys_of(history: History) -> set[Key]:
    """The visits of a history whose links are there as well."""
    timeline = history.timeline
    urls = dict(zip(timeline.pages.tolist(), history.urls_of(timeline.pages).to_pylist(), strict=True))
    has_links = np.isin(timeline.rows["links"].to_numpy(), timeline.sets.digest)
    pages, moments = timeline.page[has_links].tolist(), timeline.at[has_links].tolist()
    return set(zip(map(urls.__getitem__, pages), moments, strict=True))


def n_rows(history: History, table: str) -> int:
    if table in BESIDE:
        return int(BESIDE[table].read(history.beside).num_rows)
    return int(history.store.read(table).num_rows) if table in TABLES else 0


class Promised:
    """What was acknowledged, and must be found in whatever is left."""

    def __init__(self) -> None:
        self.is_made = False
        self.visits: set[Key] = set()
        self.pages: set[tuple[int, int]] = set()  # the same by the ids of their pages
        self.n_rows: dict[str, int] = {}
        self.settings: set[bytes | None] = {None}  # the last one, and the one being written
        self.at_work: list[Visit] = []
        self._opened: History

    def add(self, visits: list[Visit]) -> None:
        self.visits |= keys(visits)
        self.pages |= {(page_id(url), at) for url, at in keys(visits)}

    def every(self, left: Path) -> None:
        """Each visit is found by its page and time; by its address and with its links in `table`, where that may differ."""
        history = self._opened = self._open(left)
        page, at, _ = history.page_times_after(None)
        assert self.pages <= set(zip(page.tolist(), at.tolist(), strict=True)), "visits are lost"
        assert history.beside.read_bytes("setting.json") in self.settings, "a setting is lost"

    def table(self, left: Path, name: str) -> None:
        if name in FOUND_BY:
            assert self.visits <= keys_of(self._opened), f"visits are lost, or what they show, with {name}"
        assert n_rows(self._opened, name) >= self.n_rows.get(name, 0), f"rows of {name} are lost"

    def log(self, left: Path) -> None:
        """The same import again completes what was begun; one that was complete is followed by the next."""
        self._open(left).add(self.at_work)
        assert self.visits | keys(self.at_work) <= keys_of(self._open(left)), "visits are lost by the next import"

    def _open(self, left: Path) -> History:
        opened._opened.clear()  # what a process remembers of tables does not outlive a power cut
        return History.open(left / "h") if self.is_made else History.create(left / "h")


def age(folder: Path, minutes: int) -> None:
    """Let some time pass: compaction removes log entries that are an hour old, and without that they would only get more."""
    for path in folder.rglob("*"):
        if path.is_file():
            then = path.stat().st_mtime_ns - minutes * 60 * 10**9
            os.utime(path, ns=(then, then))


def imported(
    n: int, folder: Path, monkeypatch: pytest.MonkeyPatch, first: int = 0, buckets: int | None = None
) -> PowerCuts:
    """Some imports, each with a plan, hints and a setting beside it, and compactions, with a power cut at every step.

    Those before the `first` are made without any, so that several processes can share the work. `buckets`: how many to lay the
    history out in.
    """
    monkeypatch.setattr("recrawl.history.commits.CHECKPOINT_EVERY", 4)
    promised, top = Promised(), folder / "top"
    cuts: PowerCuts | None = None

    def promise() -> None:
        if cuts is not None:
            cuts.promise()

    def begin() -> PowerCuts:
        begun = PowerCuts(top, folder / "scratch", promised)
        begun.follow(monkeypatch)
        return begun

    if first == 0:
        cuts = begin()
    history = History.create(top / "h")
    promised.is_made = True
    promise()
    for i in range(first + n):
        if i == first:
            cuts = cuts or begin()
        promised.at_work = visits_of(i)
        assert history.add(promised.at_work).added == 3
        promised.add(promised.at_work)
        promised.at_work = visits_of(i + 1)[:1]
        promised.n_rows |= {name: n_rows(history, name) for name in TABLES}
        promise()
        for name, table in BESIDE.items():
            table.append(history.beside, pa.Table.from_pylist([{}], table.schema))
            promised.n_rows[name] = i + 1
            promise()
        setting = str(i).encode()
        promised.settings.add(setting)
        history.beside.write_bytes("setting.json", setting)
        promised.settings = {setting}
        promise()
        age(top, minutes=30)
        if i % 5 == 4:
            history.compact(buckets)
            promise()  # nothing new, but looks at what the engine did last
    assert len(keys_of(History.open(top / "h"))) == 3 * (first + n)
    assert cuts is not None
    return cuts


def test_no_power_cut_loses_a_visit_that_was_acknowledged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cuts = imported(2, folder, monkeypatch)
    assert cuts.n_steps > 50
    assert cuts.n_states > 50


def test_a_writer_that_does_not_wait_for_the_disk_is_found_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recrawl.history.commits.sync", lambda path: None)
    with pytest.raises(AssertionError, match="after step"):
        imported(2, folder, monkeypatch)


def forgetful(suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have writers not wait for the disk with files and folders whose paths end so."""

    def sync(path: Path, really: Callable[[Path], None] = files.sync) -> None:
        if not str(path).endswith(suffix):
            really(path)

    for module in ("recrawl.history.commits", "recrawl.core.files"):
        monkeypatch.setattr(f"{module}.sync", sync)


@pytest.mark.parametrize(
    "suffix",
    [
        ".parquet",
        *(pytest.param(suffix, marks=pytest.mark.slow) for suffix in (".draft", "_delta_log", "/plans", "/h")),
    ],
)
def test_so_is_one_that_forgets_some_files(suffix: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forgetful(suffix, monkeypatch)
    with pytest.raises(AssertionError, match="after step"):
        imported(2, folder, monkeypatch)


@pytest.mark.slow
def test_so_is_one_that_forgets_checkpoints(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forgetful(".checkpoint.parquet", monkeypatch)
    with pytest.raises(AssertionError, match="after step"):
        imported(1, folder, monkeypatch, first=4)  # the one after which a compaction comes


@pytest.mark.slow
def test_no_power_cut_while_a_history_is_laid_out_loses_a_visit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cuts = imported(1, folder, monkeypatch, first=4, buckets=2)
    assert cuts.n_steps > 100


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_so_it_is_for_many_imports(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For 200 of them ``IMPORTS=200``; shared by two processes, ``FIRST=0 IMPORTS=100`` and ``FIRST=100 IMPORTS=100``."""
    first, n = (int(os.environ.get(name, default)) for name, default in (("FIRST", "0"), ("IMPORTS", "12")))
    cuts = imported(n, folder, monkeypatch, first)
    print(
        f"{n} imports, {cuts.n_steps} steps, {cuts.n_states} states; {cuts.n_tables} tables read, {cuts.n_logs} added to"
    )
    assert cuts.n_states > cuts.n_steps
