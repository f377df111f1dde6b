"""Functions that tests have workers call."""

from __future__ import annotations

import os
import time

from recrawl.errors import BadRecord, BadSource


def reversed_bytes(task: bytes) -> bytes:
    return task[::-1]


def sized(task: bytes) -> bytes:
    return os.urandom(int(task))


def refused(task: bytes) -> bytes:
    raise BadRecord("not JSON", f"task {task.decode()}")


def refused_if_bad(task: bytes) -> bytes:
    if task == b"bad":
        raise BadSource("the third one is bad")
    return task


def broken(task: bytes) -> bytes:
    return b"x" * (1 // int(task))


def nothing(task: bytes) -> bytes:
    return None  # type: ignore[return-value]


def slow(task: bytes) -> bytes:
    time.sleep(float(task))
    return task


def killed(task: bytes) -> bytes:
    os._exit(9)


def process(task: bytes) -> bytes:
    return str(os.getpid()).encode()
