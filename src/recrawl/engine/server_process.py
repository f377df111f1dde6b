"""A server as a process of its own, which ends with the process that started it, however that ends.

The server's process reads its standard input to the end: that comes when the other side is gone, even by ``kill -9``. Ctrl-C is for
the command alone, which ends its servers in order.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from recrawl.errors import EngineError

END_SECONDS = 10


@dataclass(frozen=True, kw_only=True)
class Server:
    """Where a Spark Connect server is, and whether it still runs, if that is known."""

    url: str
    is_alive: Callable[[], bool] = lambda: True


@dataclass(frozen=True, kw_only=True)
class ServerProcess:
    """A server that was started, and what it prints."""

    what: str  # its name for messages
    process: subprocess.Popen[bytes]
    log: Path

    def at(self, url: str) -> Server:
        """The server at the URL under which it listens."""
        return Server(url=url, is_alive=lambda: self.process.poll() is None)

    def printed(self) -> str:
        """What it has printed so far."""
        return self.log.read_text(errors="replace")

    def wait_until(self, ready: Callable[[str], bool], seconds: float, failure: Callable[[str], str | None]) -> None:
        """Until it is ready, by what it has printed; raises `EngineError` where it fails, ends, or takes too long."""
        until = time.monotonic() + seconds
        while True:
            has_ended = self.process.poll() is not None
            printed = self.printed()
            if why := failure(printed):
                raise EngineError(f"{self.what} does not start: {why}")
            if ready(printed):
                return
            if has_ended:
                last = (printed.strip().splitlines() or ["it printed nothing"])[-1]
                raise EngineError(f"{self.what} does not start: {last[:300]}")
            if time.monotonic() > until:
                raise EngineError(f"{self.what} does not start within {seconds:,.0f} s")
            time.sleep(0.05)


@contextmanager
def server_process(
    what: str, program: str, arguments: Sequence[str], environment: Mapping[str, str]
) -> Iterator[ServerProcess]:
    """A Python program that lasts as long as the block; it must end when its standard input does."""
    with TemporaryDirectory(prefix="recrawl-engine-") as folder:
        log = Path(folder) / "log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [sys.executable, "-c", program, *arguments],
                stdin=subprocess.PIPE,
                stdout=stream,
                stderr=stream,
                env={**os.environ, **environment, "PYTHONPATH": _search_path()},
                start_new_session=True,
            )
        try:
            yield ServerProcess(what=what, process=process, log=log)
        finally:
            _end(process)


def _search_path() -> str:
    """Where this process finds its modules, so that workers find the same."""
    return os.pathsep.join(dict.fromkeys(os.path.abspath(path) for path in sys.path if path))


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
