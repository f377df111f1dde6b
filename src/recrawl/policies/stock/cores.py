"""A loop over pages, shared among the cores where there are many."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

MANY = 50_000  #: pages; fewer are done before a thread has begun


def shared(n: int, loop: Callable[[int, int], object]) -> None:
    """Do ``loop(low, high)`` for ranges that make up 0 to `n`; it must not hold the interpreter, nor write outside its range."""
    cores = os.cpu_count() or 1
    if n < MANY or cores == 1:
        loop(0, n)
        return
    ranges = pairwise(np.linspace(0, n, cores + 1).astype(np.int64).tolist())
    with ThreadPoolExecutor(cores) as threads:
        list(threads.map(lambda of: loop(*of), ranges))
