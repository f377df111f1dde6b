"""What a target is, and what several of them need."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from recrawl.errors import RecrawlError

NOW = datetime(2026, 6, 1, tzinfo=UTC)
PAGE = "https://e.org/a/b"
MAX_BODY = 4 << 20  #: bytes


@dataclass(frozen=True, kw_only=True)
class Target:
    """One thing to fuzz: a function of bytes that raises recrawl's own errors or none."""

    name: str
    run: Callable[[bytes], None]
    seeds: Sequence[bytes]
    words: tuple[bytes, ...] = ()
    errors: tuple[type[Exception], ...] = (RecrawlError,)  # what `run` may raise
    is_json: bool = False


def text_of(data: bytes) -> str:
    """The input as a text, whatever it is."""
    return data.decode("utf-8", "replace")


def json_of(data: bytes) -> Any:
    """The input as a value; None where it is not JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


@cache
def folder() -> Path:
    """Where files of this process are."""
    return Path(tempfile.mkdtemp(prefix="fuzz-"))


def written(name: str, data: bytes) -> Path:
    """The input as a file."""
    path = folder() / name
    path.write_bytes(data)
    return path
