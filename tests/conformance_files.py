"""The test data of other projects, which lies beside the repository (see its README for what each file holds)."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def rows(data: Path, name: str) -> Iterator[dict[str, Any]]:
    """The lines of a file of JSON lines."""
    with gzip.open(data / "conformance" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


def files(data: Path, name: str) -> Iterator[tuple[str, bytes]]:
    """The names and bodies of the files in a collection."""
    for row in rows(data, name):
        yield row["name"], base64.b64decode(row["base64"])
