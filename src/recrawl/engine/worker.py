"""What happens on a worker: a function by its name, called once per task; its errors come back as words."""

from __future__ import annotations

import importlib
import json
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from recrawl import errors
from recrawl.core.version import __version__
from recrawl.engine.parcels import Parcels
from recrawl.errors import EngineError, RecrawlError

#: Of answers; the same columns but `failed` make a task.
ANSWERS = pa.schema([("number", pa.int64()), ("failed", pa.bool_()), ("is_file", pa.bool_()), ("data", pa.binary())])
TASKS = pa.schema([("number", pa.int64()), ("is_file", pa.bool_()), ("data", pa.binary())])

Function = Callable[[bytes], bytes]


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a worker is to do with each task."""

    function: str  # module:name
    parcels: Parcels
    version: str = __version__  # of the program that sends the tasks


def name_of(function: Function) -> str:
    """The name by which workers find a function; raises `EngineError` where they could not."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    text = f"{module}:{name}"
    try:
        found = None if module in (None, "__main__") else named(text)
    except (ImportError, AttributeError):
        found = None
    if found is not function:
        raise EngineError(
            f"workers cannot import {getattr(function, '__qualname__', repr(function))}; "
            "give a function that a module defines at its top level"
        )
    return text


def named(text: str) -> Function:
    """The function of this name."""
    module, _, path = text.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def answers(batches: Iterable[pa.RecordBatch], job: Job) -> Iterator[pa.RecordBatch]:
    """One row for each task: what the function returned, or what went wrong."""
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in TASKS.names)
        for number, is_file, data in zip(*columns, strict=True):
            yield answer(number, *_done(job, number, is_file, data))


def answer(number: int, failed: bool, is_file: bool, data: bytes) -> pa.RecordBatch:
    """A row by itself, so that no message holds more than one result."""
    return pa.RecordBatch.from_pydict(
        {"number": [number], "failed": [failed], "is_file": [is_file], "data": [data]}, schema=ANSWERS
    )


def _done(job: Job, number: int, is_file: bool, data: bytes) -> tuple[bool, bool, bytes]:
    try:
        if job.version != __version__:
            raise EngineError(
                f"workers run recrawl {__version__}, and this is {job.version}: install the same version on both"
            )
        result = named(job.function)(job.parcels.opened(is_file, data))
        if not isinstance(result, bytes):
            raise EngineError(f"{job.function} returned {type(result).__name__}, not bytes")
        return False, *job.parcels.packed(result, f"the result of task {number}")
    except Exception as error:
        return True, False, written(error, number)


# -- errors -----------------------------------------------------------------------------------------------------------


def written(error: Exception, number: int) -> bytes:
    """An error as bytes: its class, if users know it, and what it says."""
    if isinstance(error, RecrawlError):
        kind = next(each.__name__ for each in type(error).__mro__ if getattr(errors, each.__name__, None) is each)
        more = {name: getattr(error, name) for name in ("reason", "detail") if hasattr(error, name)}
        return json.dumps({"type": kind, "text": str(error), **more}).encode()
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    text = f"task {number} failed: {type(error).__name__}: {str(error) or 'without a message'}{where}"
    return json.dumps({"type": "EngineError", "text": text}).encode()


def read(data: bytes) -> RecrawlError:
    """The error that was written, with its class and text.

    >>> read(written(errors.BadRecord("not JSON", "line 3"), 0))
    BadRecord('not JSON: line 3')
    """
    about = json.loads(data)
    kind = getattr(errors, about["type"])
    error = kind.__new__(kind)
    error.args = (about["text"],)
    for name in ("reason", "detail"):
        if name in about:
            setattr(error, name, about[name])
    return error  # type: ignore[no-any-return]
