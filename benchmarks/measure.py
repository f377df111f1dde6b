"""What the benchmarks share: rows, timing, memory."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    what: str
    value: float
    unit: str
    target: str = ""
    met: bool | None = None
    note: str = ""


def best_of(times: int, run: Callable[[], object]) -> float:
    """The shortest of several runs, in seconds: the least disturbed one."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def peak_gigabytes() -> float:
    """The most memory this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def cpu_side_by_side(n: int, first: Callable[[], object], second: Callable[[], object]) -> tuple[float, float]:
    """The least processor seconds of each in `n` turns; all threads of this process count."""
    best = [float("inf"), float("inf")]
    for _ in range(n):
        for i, run in enumerate((first, second)):
            started = time.process_time()
            run()
            best[i] = min(best[i], time.process_time() - started)
    return best[0], best[1]
