"""Lives of a crawl: what recrawl promises holds after every step, whatever happens; and the auditor sees when it does not.

A failing seed is repeated by its number: ``FIRST=1234 SEEDS=1 pytest tests/robustness/test_lives.py -k many``.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lives
from recrawl.crawl.addresses import Networks
from recrawl.crawl.robots import Robots, Rules
from recrawl.crawl.robots_txt import RobotsTxt
from recrawl.errors import HistoryError
from recrawl.history.commits import DurableTable, _remove
from recrawl.history.side_tables import SideTable
from recrawl.history.store import Store
from recrawl.plan import planner
from recrawl.plan.new_visits import NewVisits

N_SEEDS = int(os.environ.get("SEEDS", "1000"))  # of the slow test
FIRST = int(os.environ.get("FIRST", "0"))
MOST = 60  #: lives in which a planted fault must be seen


@pytest.fixture(autouse=True)
def killed_threads_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    report = threading.excepthook
    monkeypatch.setattr(
        threading, "excepthook", lambda given: None if given.exc_type is lives.Killed else report(given)
    )


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tables of ten rows are read sooner without others."""
    before = pa.cpu_count(), pa.io_thread_count()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    yield
    pa.set_cpu_count(before[0])
    pa.set_io_thread_count(before[1])


def broken(seeds: Iterable[int], folder: Path) -> dict[int, str]:
    """The lives in which a promise is not kept, and which."""
    found = {}
    for seed in seeds:
        try:
            lives.live(seed, folder)
        except (lives.Broken, HistoryError) as error:
            found[seed] = str(error)
        shutil.rmtree(folder)
    return found


@pytest.mark.parametrize(
    "first", [*range(0, 40, 10), *(pytest.param(first, marks=pytest.mark.more) for first in range(40, 200, 10))]
)
def test_lives(first: int, tmp_path: Path) -> None:
    assert broken(range(first, first + 10), tmp_path / "h") == {}


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_many_lives(tmp_path: Path) -> None:
    assert broken(range(FIRST, FIRST + N_SEEDS), tmp_path / "h") == {}


# -- planted faults ----------------------------------------------------------------------------------------------------


def acknowledged_but_not_written(patch: pytest.MonkeyPatch) -> None:
    append = DurableTable.append
    patch.setattr(
        DurableTable,
        "append",
        lambda table, *given, **more: None if table.folder.name == "visits" else append(table, *given, **more),
    )


def added_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Store, "_known_visits", lambda store, page, at: (np.zeros(len(page), bool), np.zeros(len(page), int)))


def one_page_too_many(patch: pytest.MonkeyPatch) -> None:
    _changed_budget(patch, lambda budget: replace(budget, pages=budget.pages + 1))


def no_caps(patch: pytest.MonkeyPatch) -> None:
    _changed_budget(patch, lambda budget: replace(budget, per_host=None))


def nothing_barred(patch: pytest.MonkeyPatch) -> None:
    _changed_budget(patch, lambda budget: replace(budget, barred=None))


def _changed_budget(patch: pytest.MonkeyPatch, change: Callable[[Any], Any]) -> None:
    budget_of = planner.budget_of
    patch.setattr(planner, "budget_of", lambda *given: change(budget_of(*given)))


def a_visit_is_not_learnt_from(patch: pytest.MonkeyPatch) -> None:
    after = NewVisits.after.__func__  # type: ignore[attr-defined]

    def skipping(cls: type[NewVisits], history: Any, since: int, **more: Any) -> NewVisits:
        is_first = since < 0
        return after(cls, history, since if is_first else since + 43_200_000_000, **more)  # type: ignore[no-any-return]

    patch.setattr(NewVisits, "after", classmethod(skipping))


def files_removed_that_are_named(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DurableTable, "_give_up", lambda table, files, version: _remove(files))


def half_a_file(patch: pytest.MonkeyPatch) -> None:
    write = DurableTable._write

    def cut(table: DurableTable, file: Path, batches: Any) -> None:
        write(table, file, batches)
        if table.folder.name == "urls":
            file.write_bytes(file.read_bytes()[:-9])

    patch.setattr(DurableTable, "_write", cut)


def compaction_removes_first(patch: pytest.MonkeyPatch) -> None:
    rewrite = DurableTable.rewrite

    def removing(table: DurableTable, batches: Any, opened: Any) -> None:
        kept = list(batches)
        _remove(table.folder.glob("*.parquet"))
        rewrite(table, kept, opened)

    patch.setattr(DurableTable, "rewrite", removing)


def plans_are_not_stored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SideTable, "append", lambda table, beside, rows: None)


def robots_txt_is_not_asked(patch: pytest.MonkeyPatch) -> None:
    async def allow(robots: Robots, request: Any, spider: Any = None) -> None:
        return None

    patch.setattr(Robots, "process_request", allow)


def a_silent_robots_txt_is_permission(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("recrawl.crawl.robots.rules_from", lambda status, body, at: Rules(RobotsTxt(body.decode()), at))


def every_address_is_allowed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Networks, "allows", lambda networks, address: True)


def forbidden_pages_are_planned(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("recrawl.crawl.planned._forbidden", lambda history, now: np.empty(0, np.int64))


RARE = (a_visit_is_not_learnt_from, files_removed_that_are_named, compaction_removes_first, forbidden_pages_are_planned)
FAULTS = (
    acknowledged_but_not_written,
    added_again,
    one_page_too_many,
    no_caps,
    nothing_barred,
    half_a_file,
    plans_are_not_stored,
    robots_txt_is_not_asked,
    a_silent_robots_txt_is_permission,
    every_address_is_allowed,
    *(pytest.param(fault, marks=pytest.mark.slow) for fault in RARE),
)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_auditor_sees_a_planted_fault(fault: Callable[[pytest.MonkeyPatch], None], tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        for seed in range(MOST):
            try:
                lives.live(seed, tmp_path / str(seed))
            except (lives.Broken, HistoryError):
                return
    raise AssertionError(f"{fault.__name__} was not seen in {MOST} lives")
