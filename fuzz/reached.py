"""Which lines of recrawl an input reaches, by Python's own tracing: slow for a server, cheap for small inputs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import recrawl

SOURCE = str(Path(recrawl.__file__).parent)


class Reached:
    """Remembers all lines that were reached so far, as steps from one line to the next within a function.

    >>> from recrawl.core.times import parse_period
    >>> reached = Reached()
    >>> reached.is_new(lambda: parse_period("1h")), reached.is_new(lambda: parse_period("2h"))
    (True, False)
    """

    def __init__(self) -> None:
        self.steps: set[tuple[CodeType, int, int]] = set()
        self._last: dict[int, int] = {}

    def is_new(self, run: Callable[[], Any]) -> bool:
        """Whether a call reaches anything new; what it raises is passed on, after that was noted in `found`."""
        before = len(self.steps)
        self._last.clear()
        sys.settrace(self._on_call)
        try:
            run()
        finally:
            sys.settrace(None)
            self.found = len(self.steps) > before
        return self.found

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._on_line if frame.f_code.co_filename.startswith(SOURCE) else None

    def _on_line(self, frame: FrameType, event: str, argument: Any) -> Any:
        at = id(frame)
        self.steps.add((frame.f_code, self._last.get(at, 0), frame.f_lineno))
        self._last[at] = frame.f_lineno
        return self._on_line
