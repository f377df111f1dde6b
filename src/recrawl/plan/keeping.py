"""What was learnt is written while the plan is made: neither changes what the other reads."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread


class Keeper:
    """Does one thing in the background, and says later whether that failed.

    >>> done, keeper = [], Keeper()
    >>> keeper.begin(lambda: done.append(1))
    >>> keeper.finish()
    >>> done
    [1]
    """

    def __init__(self) -> None:
        self._thread: Thread | None = None
        self._error: Exception | None = None

    def begin(self, work: Callable[[], object]) -> None:
        """Begin; a program that ends meanwhile waits for it."""
        self.finish()
        self._thread = Thread(target=self._do, args=(work,), name="recrawl-keeping")
        self._thread.start()

    def finish(self) -> Exception | None:
        """Wait until it is done; what went wrong, if anything did and was not returned before."""
        if self._thread is not None:
            self._thread.join()
        error, self._thread, self._error = self._error, None, None
        return error

    def _do(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # whatever a disk does: it is said when the work is finished
            self._error = error
