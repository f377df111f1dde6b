"""``recrawl`` in processes that halt at some step of their work, so that a test can do something to them exactly there.

Usage: python halting.py, then one request per line of standard input: a JSON object with `folder`, `steps`, `visits_per_commit` and
`arguments`. For each a process is begun, in a session and in the folder of its own; what it prints is in the files ``out`` and
``err`` beside the folder, temporary files are in ``temporary``. All modules are loaded once, before the first of these processes
begins. Answers are lines: the number of the process, ``halted`` as often as it halts, and ``ended`` with its exit code.

`steps` are functions and which call of them is meant, such as ``recrawl.history.store:Store.append#2``; ``disk`` is any of the
functions that change a file system. Before that call the process halts, until it can read a byte from the pipe ``go`` beside the
folder; each step is waited for once the one before it was reached. A call of number 0 is never reached: then the number of calls is
an answer, too.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import recrawl
from recrawl.cli import main

#: Not those that remove files: what is left by a signal just before is swept later.
DISK = ("os:fsync", "os:link", "os:mkdir", "os:rename", "os:replace")
#: What commands load when they need it.
ALSO = ("pandas", "plotly.graph_objects", "pyarrow.csv", "scipy.stats", "sklearn.linear_model", "skops.io")
ANSWERS = 1  #: descriptor


class Halting:
    """Counts the calls of the step at hand."""

    def __init__(self, steps: list[tuple[str, int]]) -> None:
        self.steps, self.n_calls, self.answers = steps, 0, os.dup(ANSWERS)

    def reached(self, name: str) -> None:
        """A function is about to be called."""
        if not self.steps or self.steps[0][0] != name:
            return
        self.n_calls += 1
        if self.n_calls == self.steps[0][1]:
            self.steps.pop(0)
            self.n_calls = 0
            os.write(self.answers, b"halted\n")
            os.read(0, 1)

    def count(self) -> None:
        """Say how often a step was reached that is never waited for."""
        os.write(self.answers, b"%d\n" % self.n_calls)


def watch(function: str, reached: Callable[[], None]) -> None:
    """Have something called before each call of a function, also where it was imported by its name."""
    module_name, _, path = function.partition(":")
    module = importlib.import_module(module_name)
    *within, name = path.split(".")
    owner: Any = getattr(module, within[0]) if within else module
    work = getattr(owner, name)

    @wraps(work)
    def watched(*given: Any, **more: Any) -> Any:
        reached()
        return work(*given, **more)

    setattr(owner, name, watched)
    for other in list(sys.modules.values()):
        for known, value in list(getattr(other, "__dict__", {}).items()):
            if value is work:
                setattr(other, known, watched)


def load() -> None:
    """Load what commands need."""
    for module in pkgutil.walk_packages(recrawl.__path__, "recrawl."):
        if not module.name.startswith(("recrawl.crawl", "recrawl.cli.__main__", "recrawl.testing")):
            importlib.import_module(module.name)
    for name in ALSO:
        importlib.import_module(name)
    gc.freeze()  # so that processes share it


def serve() -> dict[str, Any] | None:
    """Begin processes until there are no more requests; in each of them, the request."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            asked: dict[str, Any] = json.loads(line)
            return asked
        os.write(ANSWERS, b"%d\n" % child)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.write(ANSWERS, b"ended %d\n" % code)
    return None


def run(asked: dict[str, Any]) -> None:
    """Do what was asked for, as ``recrawl`` would."""
    from recrawl.history import ingest

    os.setsid()
    steps = [(name, int(number)) for name, _, number in (step.partition("#") for step in asked["steps"])]
    halting = Halting(steps)
    if steps[-1][1] == 0:
        atexit.register(halting.count)
    for step in dict(steps):
        for each in DISK if step == "disk" else (step,):
            watch(each, lambda step=step: halting.reached(step))  # type: ignore[misc]
    ingest.COMMIT_VISITS = asked["visits_per_commit"]
    folder = Path(asked["folder"])
    os.dup2(os.open(folder.with_name("go"), os.O_RDWR), 0)
    for descriptor, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder.with_name(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    os.chdir(folder)
    os.environ |= {"TMPDIR": str(folder.with_name("temporary")), "COLUMNS": "80"}
    sys.argv = ["recrawl", *asked["arguments"]]
    main()


if __name__ == "__main__":
    load()
    request = serve()
    if request is not None:
        run(request)
