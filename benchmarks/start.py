"""How long ``recrawl --help`` takes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.measure import Row, best_of


def run() -> Iterator[Row]:
    seconds = best_of(
        5, lambda: subprocess.run([sys.executable, "-m", "recrawl.cli", "--help"], capture_output=True, check=True)
    )
    yield Row("recrawl --help", seconds, "s", "< 0.5", seconds < 0.5)
