import os
import signal
import threading
import time
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest

from recrawl.core.workers import Workers, even_ranges, in_threads, over_ranges, read_ahead


@pytest.mark.parametrize("n", [0, 1, 7, 100])
@pytest.mark.parametrize("n_ranges", [1, 2, 3, 8])
def test_even_ranges_follow_each_other(n: int, n_ranges: int) -> None:
    ranges = even_ranges(n, n_ranges)
    assert len(ranges) == n_ranges
    assert [i for low, high in ranges for i in range(low, high)] == list(range(n))
    assert max(high - low for low, high in ranges) - min(high - low for low, high in ranges) <= 1


@pytest.mark.parametrize("least", [10, 1_000_000])
def test_a_loop_over_ranges_does_everything_once(least: int) -> None:
    done = np.zeros(1_000, np.int64)

    def loop(low: int, high: int) -> None:
        done[low:high] += 1

    over_ranges(len(done), loop, least)
    assert (done == 1).all()


def test_results_of_threads_are_in_order_and_progress_is_reported() -> None:
    shares: list[float] = []

    def slow_first(i: int) -> int:
        time.sleep(0.05 if i == 0 else 0)
        return i

    assert in_threads(slow_first, [(i,) for i in range(4)], 2, shares.append) == [0, 1, 2, 3]
    assert shares == [0.25, 0.5, 0.75, 1.0]


def test_after_an_error_no_further_call_begins() -> None:
    begun: list[int] = []

    def work(i: int) -> None:
        begun.append(i)
        time.sleep(0.01)
        raise ValueError(f"call {i}")

    with pytest.raises(ValueError, match="call"):
        in_threads(work, [(i,) for i in range(5_000)], 2)
    assert len(begun) < 5_000


def test_threads_never_read_far_ahead() -> None:
    begun: list[int] = []
    lock = threading.Lock()

    def work(i: int) -> int:
        with lock:
            begun.append(i)
        return i

    for n, i in enumerate(read_ahead(work, range(50), 3)):
        assert i == n
        assert len(begun) <= n + 5


def test_processes_share_the_work_and_leave_interrupts_to_their_parent() -> None:
    with Workers(2, time.sleep, 0) as workers:
        assert workers.submit(signal.getsignal, signal.SIGINT).result() == signal.SIG_IGN
        assert workers.submit(os.getpid).result() != os.getpid()
        assert [workers.submit(abs, -i).result() for i in range(3)] == [0, 1, 2]


def test_processes_are_killed_when_the_block_fails() -> None:
    pids: list[int] = []

    def fail() -> None:
        with Workers(1, time.sleep, 0) as workers:
            pids.append(workers.submit(os.getpid).result())
            workers.submit(time.sleep, 7200)  # if it were waited for, the test would end by its limit
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_a_process_that_dies_is_noticed() -> None:
    with Workers(1, time.sleep, 0) as workers, pytest.raises(BrokenProcessPool):
        workers.submit(os._exit, 1).result()
