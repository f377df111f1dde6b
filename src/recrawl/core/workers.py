"""Work shared among cores: threads for what does not hold the interpreter, processes for what does."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from itertools import pairwise
from multiprocessing import get_context, parent_process
from threading import Thread
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")
S = TypeVar("S")


def cores() -> int:
    """How many there are."""
    return os.cpu_count() or 1


# -- threads ----------------------------------------------------------------------------------------------------------


def even_ranges(n: int, n_ranges: int) -> list[tuple[int, int]]:
    """Ranges of about equal length that make up 0 to `n`.

    >>> even_ranges(5, 2)
    [(0, 2), (2, 5)]
    """
    return list(pairwise(n * i // n_ranges for i in range(n_ranges + 1)))


def in_threads(
    work: Callable[..., T],
    arguments: Iterable[tuple[Any, ...]],
    n_threads: int | None = None,
    on_progress: Callable[[float], object] = lambda share: None,
) -> list[T]:
    """Call `work` with each of the arguments, one thread per core, and return the results in their order.

    The calls must not write to the same memory. After an error, or Ctrl-C, calls that have not begun are cancelled.

    >>> in_threads(lambda low, high: high - low, even_ranges(5, 2))
    [2, 3]
    """
    arguments = list(arguments)
    if len(arguments) == 1:  # before a thread would have begun
        result = work(*arguments[0])
        on_progress(1.0)
        return [result]
    with ThreadPoolExecutor(n_threads or cores()) as pool:
        jobs = [pool.submit(work, *each) for each in arguments]
        try:
            for n_done, job in enumerate(as_completed(jobs), 1):
                job.result()
                on_progress(n_done / len(jobs))
        finally:
            pool.shutdown(cancel_futures=True)
    return [job.result() for job in jobs]


def over_ranges(n: int, loop: Callable[[int, int], object], least: int = 50_000) -> None:
    """Do ``loop(low, high)`` for ranges that make up 0 to `n`; below `least` in one go, before a thread would have begun."""
    if n < least or cores() == 1:
        loop(0, n)
    else:
        in_threads(loop, even_ranges(n, cores()))


def read_ahead(work: Callable[[S], T], items: Iterable[S], n_threads: int) -> Iterator[T]:
    """What `work` makes of each item, in order; threads work ahead, but never far ahead of the reader.

    >>> list(read_ahead(abs, [-1, -2, -3], n_threads=2))
    [1, 2, 3]
    """
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(n_threads) as threads:
        try:
            for item in items:
                waiting.append(threads.submit(work, item))
                if len(waiting) > n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for left in waiting:
                left.cancel()


# -- processes --------------------------------------------------------------------------------------------------------


class Workers:
    """Processes that each call ``start(*arguments)`` once and then do what they are given.

    They leave Ctrl-C to the process that started them, and end with it, however it ends. When the block ends by an error they are
    killed: the results of what they are at are not wanted any more. If one of them dies, all futures raise `BrokenProcessPool`; to
    know which one died, use several `Workers` of one process each. They are spawned, as the threads of the table engine do not
    survive a fork; so the main module must be one that can be imported.
    """

    def __init__(self, n: int, start: Callable[..., object], *arguments: Any) -> None:
        self._pool = ProcessPoolExecutor(
            n, get_context("spawn"), initializer=_start_worker, initargs=(start, arguments)
        )

    def submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        """Have a free process do this."""
        return self._pool.submit(work, *arguments)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None:
            for process in list((self._pool._processes or {}).values()):
                process.kill()
        self._pool.shutdown(cancel_futures=True)


def _start_worker(start: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_leave_with_parent, daemon=True).start()
    start(*arguments)


def _leave_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
