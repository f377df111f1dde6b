"""The loop over one target, within bounds of work; and the process in which targets run, since one may end it."""

from __future__ import annotations

import faulthandler
import hashlib
import math
import mmap
import random
import resource
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fuzz.mutate import LONGEST, mutated
from fuzz.reached import SOURCE, Reached
from fuzz.target import Target
from fuzz.targets import targets

SECONDS = 10.0  #: of processor time for one input: a thousand times what the slowest usually takes
COARSE = 10, 0.5  #: seconds, and share of all so far, by which the kernel's count may differ: it counts by ticks
MEMORY = 512 << 20  #: bytes by which one input of at most `mutate.LONGEST` bytes may raise the most that is in use
SHRINKING = 200  #: executions to make a finding smaller
CORPUS = 2_000  #: inputs that are kept for further mutation
_ROOM = LONGEST + (1 << 17)  # of the file with the current input


class TooMuchWork(Exception):
    """An input took more time or memory than one of its size may."""


@dataclass
class Finding:
    """An input, and what went wrong."""

    target: str
    what: str  # in one line
    data: bytes
    trace: str = ""

    @property
    def path(self) -> Path:
        """Where it is saved, in a folder."""
        return Path(self.target) / f"{hashlib.sha256(self.data).hexdigest()[:16]}.bin"


@dataclass
class Done:
    """What became of one target."""

    target: str
    n_runs: int
    n_seeds: int
    n_kept: int  # inputs that reached something new
    n_steps: int  # that were reached
    n_refused: int  # inputs that raised one of recrawl's own errors
    findings: list[Finding] = field(default_factory=list)


class Current:
    """The input that is being run, in a file that outlives the process."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.truncate(_ROOM)
        with path.open("r+b") as file:
            self._room = mmap.mmap(file.fileno(), _ROOM)

    def note(self, data: bytes) -> None:
        """From now on this input is being run."""
        self._room[:8] = len(data).to_bytes(8, "little")
        self._room[8 : 8 + len(data)] = data

    @staticmethod
    def read(path: Path) -> bytes:
        """What was being run."""
        room = path.read_bytes()
        return room[8 : 8 + int.from_bytes(room[:8], "little")]


class Fuzzer:
    """Runs one target on mutations of its samples; those that reach new lines are mutated further.

    The same target and seed give the same inputs in the same order, however long it runs.
    """

    def __init__(self, target: Target, seed: int, current: Current | None = None) -> None:
        self.target, self.current = target, current
        self.rng = random.Random(f"{seed} {target.name}")
        self.reached = Reached()
        self.corpus = list(target.seeds)
        self.done = Done(target.name, 0, len(target.seeds), 0, 0, 0)
        self._known: set[str] = set()

    def run(self, seconds: float = math.inf, n_runs: int | None = None) -> Done:
        """Fuzz for a time, or a number of inputs; the samples themselves come first."""
        until = time.monotonic() + seconds
        for data in self.target.seeds:
            self.once(data)
        while time.monotonic() < until and (n_runs is None or self.done.n_runs < n_runs):
            data = mutated(self._chosen(), self._chosen(), self.rng, self.target.words, is_json=self.target.is_json)
            if self.once(data) and len(self.corpus) < CORPUS:
                self.corpus.append(data)
                self.done.n_kept += 1
        self.done.n_steps = len(self.reached.steps)
        return self.done

    def _chosen(self) -> bytes:
        """One of the inputs; every second time one of those kept last, which are the least explored."""
        recent = self.corpus[-20:] if self.rng.random() < 0.5 else self.corpus
        return self.rng.choice(recent)

    def once(self, data: bytes) -> bool:
        """Run one input; whether it reached anything new."""
        error = self._error(data)
        if error is not None:
            self._note(data, error)
        return self.reached.found

    def _error(self, data: bytes) -> BaseException | None:
        """What an input raises, if it should not."""
        self.done.n_runs += 1
        if self.current is not None:
            self.current.note(data)
        try:
            with_bounds(lambda: self.reached.is_new(lambda: self.target.run(data)))
        except self.target.errors:
            self.done.n_refused += 1
        except Exception as error:
            return error
        return None

    def _note(self, data: bytes, error: BaseException) -> None:
        what = described(error)
        if what not in self._known:
            self._known.add(what)
            data = data if isinstance(error, TooMuchWork) else self._smaller(data, what)
            trace = "".join(traceback.format_exception(error))
            self.done.findings.append(Finding(self.target.name, what, data, trace))

    def _smaller(self, data: bytes, what: str) -> bytes:
        """A shorter input with which the same happens."""
        size, left = max(1, len(data) // 2), SHRINKING
        while size and left:
            for begin in range(0, len(data), size):
                left -= 1
                shorter = data[:begin] + data[begin + size :]
                error = self._error(shorter)
                if error is not None and described(error) == what:
                    data = shorter
                    break
                if not left:
                    break
            else:
                size //= 2
        return data


def described(error: BaseException) -> str:
    """An exception by its kind and the place in recrawl that it came from: findings with the same are one."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = next((frame for frame in reversed(frames) if frame.filename.startswith(SOURCE)), frames[-1])
    message = f": {error}" if isinstance(error, AssertionError | TooMuchWork) else ""
    return f"{type(error).__name__}{message[:120]} at {Path(ours.filename).name}:{ours.lineno} in {ours.name}"


def with_bounds(run: Any) -> None:
    """Run something within bounds of processor time and memory; `TooMuchWork` where it passes them.

    Compiled code cannot be interrupted: if it does not return in twice the time and some seconds, by the coarser count
    of the kernel, the process is ended by SIGXCPU.
    """
    before, (soft, hard) = _most_memory(), resource.getrlimit(resource.RLIMIT_CPU)
    so_far = time.process_time()
    most = math.ceil(so_far + 2 * SECONDS + COARSE[0] + COARSE[1] * so_far)
    resource.setrlimit(resource.RLIMIT_CPU, (most, hard))
    signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        run()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
    if _most_memory() - before > MEMORY:
        raise TooMuchWork(f"more than {MEMORY >> 20} MiB of memory")


def _too_long(signum: int, frame: Any) -> None:
    raise TooMuchWork(f"more than {SECONDS:g} s of processor time")


def _most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


# -- the process -------------------------------------------------------------------------------------------------------


def work(names: Sequence[str], seed: int, seconds: float, folder: str, results: Connection) -> None:
    """Fuzz targets one after the other and send what became of each; runs in a process of its own."""
    faulthandler.enable(file=sys.stderr)
    current = Current(Path(folder) / "current")
    by_name = {target.name: target for target in targets()}
    for name in names:
        results.send(name)
        results.send(Fuzzer(by_name[name], seed, current).run(seconds))
