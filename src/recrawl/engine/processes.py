"""A task in a process of its own, where an engine's workers are threads of one process: then Python runs on one core only."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool

from recrawl.core.workers import Workers, cores
from recrawl.errors import EngineError

_lock = threading.Lock()
_pools: list[Workers] = []  # one, once it is needed


def in_own_process(function: Callable[[bytes], bytes], task: bytes) -> bytes:
    """What the function makes of the task; where this worker is a process by itself already, it is called here."""
    if threading.current_thread() is threading.main_thread():
        return function(task)
    with _lock:
        if not _pools:
            _pools.append(Workers(cores(), _ready))
        pool = _pools[0]
    try:
        return pool.submit(function, task).result()
    except BrokenProcessPool:
        with _lock:
            if pool in _pools:
                _pools.remove(pool)
        raise EngineError(
            "a process of a worker was killed, perhaps because memory ran out; what was reported is safe, run the same again"
        ) from None


def _ready() -> None:
    """Nothing to prepare."""
