"""How long a test may wait: on conditions, never on the clock, and longer on a machine that is slow now.

Nothing that a test asserts follows from how long something took. Limits are for what never ends, so they are generous; what must
not grow faster than its input is measured at two sizes, in processor time of the same run (`growth`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import TypeVar

USUAL = 0.015  #: seconds that `_work` takes on a machine of 2024 with nothing else to do
ROUNDS = 8  #: of it that are measured: a turn of the processor may take longer than one
GENEROUS = 5.0  #: times what a machine with nothing else to do may need

T = TypeVar("T")


def _work() -> int:
    return sum(i * i % 7 for i in range(200_000))


@cache
def slowness() -> float:
    """How many times as long as usual this machine takes now, at least 1; measured once per process."""
    begin = time.perf_counter()
    for _ in range(ROUNDS):
        _work()
    return max(1.0, (time.perf_counter() - begin) / ROUNDS / USUAL)


def patience(seconds: float) -> float:
    """A limit for what should take less than that many seconds: for subprocesses, sockets and servers."""
    return seconds * GENEROUS * slowness()


def wait_for(condition: Callable[[], T], seconds: float = 60, every: float = 0.05) -> T:
    """The first true value of a condition; fails, long after it should have come, if there is none."""
    end = time.monotonic() + patience(seconds)
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {patience(seconds):.0f} s in vain"
        time.sleep(every)
    return found


def growth(run: Callable[[int], object], small: int, large: int) -> float:
    """How many times as much processor time per unit the large input takes: about 1 if time grows with the size.

    A hundredth of a second is added to both, so that what takes no time at all does not count.
    """

    def took(n: int) -> float:
        begin = time.process_time()
        run(n)
        return time.process_time() - begin + 0.01

    run(small)  # whatever is compiled or loaded the first time
    return took(large) / large / (took(small) / small)
