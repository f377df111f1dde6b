"""Several policies and budgets over one world, in parallel processes, every finished run kept."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from recrawl.core.workers import Workers, cores
from recrawl.errors import ReplayError
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.replay.run import Row
from recrawl.replay.runs import Replayed, Run, fingerprint
from recrawl.replay.stored import Shelf
from recrawl.world.recorded import World

OnCycles = Callable[[int, int], None]  #: called with the cycles finished so far and the number of all
WORTH_PROCESSES = 10_000  #: cycles in all; with fewer, starting a process takes longer than it saves
_PATIENCE = 0.1  # seconds between two signs of life


def replay_many(
    world: World,
    policies: Sequence[Policy],
    budgets: Sequence[Budget],
    *,
    workers: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    on_cycles: OnCycles = lambda done, total: None,
    observed: int = 0,
) -> list[Replayed]:
    """Replay every policy with every budget; the runs of the first budget come first, in the order of the policies.

    The rows do not depend on the number of `workers` (None: one per core if it pays; 1: no other process). Every run is kept in
    `folder` as soon as it is finished, and taken from there the next time. More than one worker needs a main module that can be
    imported (``if __name__ == "__main__":``), as always with processes that are spawned. `observed`: cycles that every policy sees
    completely before it begins to choose.
    """
    if not 0 <= observed < max(world.n_cycles, 1):
        raise ReplayError(f"{observed:,} observed cycles of {world.n_cycles:,} leave none to choose in; give fewer")
    runs = [Run(policy, budget, observed) for budget in budgets for policy in policies]
    shelf = Shelf(Path(folder), fingerprint(world)) if folder is not None else None
    kept = {i: shelf.read(run, world.n_cycles - observed) for i, run in enumerate(runs)} if shelf else {}
    finished = {i: rows for i, rows in kept.items() if rows is not None}
    job = _Job(world, runs, [i for i in range(len(runs)) if i not in finished], shelf, on_cycles)
    n_workers = min(workers or _worth(job.n_cycles), len(job.waiting))
    # Sums over threads depend on how many there are, and so would the rows; and every process would take all cores.
    with threadpool_limits(1):
        finished |= _in_workers(job, n_workers) if n_workers > 1 else _here(job)
    return [run.replayed(finished[i]) for i, run in enumerate(runs)]


def _worth(n_cycles: int) -> int:
    return cores() if n_cycles >= WORTH_PROCESSES else 1


@dataclass(frozen=True)
class _Job:
    world: World
    runs: list[Run]
    waiting: list[int]  # runs that are not yet finished
    shelf: Shelf | None
    on_cycles: OnCycles

    @property
    def n_cycles(self) -> int:
        return sum(self.world.n_cycles - self.runs[i].observed for i in self.waiting)


def _here(job: _Job) -> dict[int, list[Row]]:
    finished, done = {}, 0

    def on_cycle() -> None:
        nonlocal done
        done += 1
        job.on_cycles(done, job.n_cycles)

    for i in job.waiting:
        finished[i] = _kept(job.runs[i], job.world, job.shelf, on_cycle)
    return finished


def _kept(run: Run, world: World, shelf: Shelf | None, on_cycle: Callable[[], None]) -> list[Row]:
    rows = run.rows(world, on_cycle)
    if shelf:
        shelf.write(run, rows)
    return rows


def _in_workers(job: _Job, n_workers: int) -> dict[int, list[Row]]:
    # Cycles finished of each run: only the process that runs it writes there.
    done = get_context("spawn").RawArray("q", len(job.runs))
    with tempfile.TemporaryDirectory(prefix="recrawl-") as folder, ExitStack() as started:
        job.world.save(Path(folder))
        # One process each: when a process dies, it is known which run it was at.
        workers = [started.enter_context(Workers(1, _start_worker, folder, done, job.shelf)) for _ in range(n_workers)]
        return _shared_out(job, workers, done)


def _shared_out(job: _Job, workers: list[Workers], done: Any) -> dict[int, list[Row]]:
    finished: dict[int, list[Row]] = {}
    waiting, idle = list(reversed(job.waiting)), list(workers)
    running: dict[Future[list[Row]], tuple[int, Workers]] = {}
    while waiting or running:
        while waiting and idle:
            i, worker = waiting.pop(), idle.pop()
            running[worker.submit(_work, i, job.runs[i])] = (i, worker)
        ended, _ = wait(running, _PATIENCE, FIRST_COMPLETED)
        for future in ended:
            i, worker = running.pop(future)
            finished[i] = _result(future, job, i)
            idle.append(worker)
        job.on_cycles(sum(done), job.n_cycles)
    return finished


def _result(future: Future[list[Row]], job: _Job, i: int) -> list[Row]:
    try:
        return future.result()
    except BrokenProcessPool as error:
        run = job.runs[i]
        safe = f"Runs that were finished are kept in {job.shelf.folder}. " if job.shelf else ""
        raise ReplayError(
            f"the process that replayed {run.policy.name!r} with a budget of {run.budget.pages:,} was killed, perhaps because "
            f"memory ran out. {safe}Run the same again with one worker (--workers 1)"
        ) from error


_worker: dict[str, Any] = {}


def _start_worker(folder: str, done: Any, shelf: Shelf | None) -> None:
    _worker.update(world=World.load(Path(folder)), done=done, shelf=shelf)


def _work(i: int, run: Run) -> list[Row]:
    def on_cycle() -> None:
        _worker["done"][i] += 1

    with threadpool_limits(1):
        return _kept(run, _worker["world"], _worker["shelf"], on_cycle)
