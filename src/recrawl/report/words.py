"""What the sentences of several reports are made with; numbers and lengths of time are in `core.words`."""

from __future__ import annotations

import math
from collections.abc import Sequence


def mean(numbers: Sequence[float]) -> float:
    """The mean; NaN of nothing."""
    return sum(numbers) / len(numbers) if numbers else math.nan


def joined(parts: Sequence[str]) -> str:
    """Parts separated by commas, with "and" before the last.

    >>> joined(["a", "b", "c"]), joined(["a"]), joined([])
    ('a, b and c', 'a', '')
    """
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
