"""Waiting for a server in a thread of its own, so that Ctrl-C is heard at once, whatever the server is busy with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, TypeVar

T = TypeVar("T")
AHEAD = 16  #: items that are waiting to be taken, at most
LOOK = 0.2  #: seconds after which a thread looks whether anyone still listens


def read_aside(read: Callable[[], Iterator[T]]) -> Iterator[T]:
    """What an iterator yields, read in another thread; its error is raised here.

    >>> list(read_aside(lambda: iter([1, 2, 3])))
    [1, 2, 3]
    """
    items: Queue[tuple[str, Any]] = Queue(AHEAD)
    is_left = Event()
    Thread(target=_fill, args=(read, items, is_left), daemon=True).start()
    try:
        while (item := items.get())[0] == "item":
            yield item[1]
        if item[1] is not None:
            raise item[1]
    finally:
        is_left.set()


def tried_aside(work: Callable[[], object], seconds: float) -> None:
    """Do something that may fail, and wait for it no longer than this."""

    def attempt() -> None:
        with suppress(Exception):
            work()

    thread = Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(seconds)


def _fill(read: Callable[[], Iterator[T]], items: Queue[tuple[str, Any]], is_left: Event) -> None:
    end: BaseException | None = None
    try:
        for each in read():
            _put(items, ("item", each), is_left)
            if is_left.is_set():
                return
    except BaseException as error:
        end = error
    _put(items, ("end", end), is_left)


def _put(items: Queue[tuple[str, Any]], item: tuple[str, Any], is_left: Event) -> None:
    while not is_left.is_set():
        with suppress(Full):
            items.put(item, timeout=LOOK)
            return
