"""Numbers as the authors' programs write them: also as texts, as floats where whole ones are meant, and not at all."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import orjson

MAX_LINKS = 1_000_000  #: of a page; a larger count is an error
LARGEST = 3.4e38  #: features are numbers of 32 bits
_NOTHING = frozenset({"", "nan", "none", "null", "na", "n/a", "not set"})


@dataclass(frozen=True)
class NumberReader:
    """Reads values as numbers; what is no usable number is not known, and counted by the name of the field.

    >>> numbers = NumberReader(Counter())
    >>> numbers.number("trustRank", "0.25"), numbers.number("trustRank", "high"), numbers.count("numInLinks", "3.0")
    (0.25, None, 3)
    >>> dict(numbers.unusable)
    {'trustRank': 1}
    """

    unusable: Counter[str]

    def number(self, name: str, value: Any) -> float | None:
        """A number that a feature can be."""
        if value is None or (isinstance(value, str) and value.strip().lower() in _NOTHING):
            return None
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.inf
        if math.isnan(number) and not isinstance(value, str):
            return None
        if abs(number) <= LARGEST:
            return number
        self.unusable[name] += 1
        return None

    def whole(self, name: str, value: Any, most: float = 2.0**62) -> int | None:
        """A whole number from 0 on."""
        number = self.number(name, value)
        if number is None:
            return None
        if number.is_integer() and 0 <= number <= most:
            return int(number)
        self.unusable[name] += 1
        return None

    def count(self, name: str, value: Any) -> int | None:
        """A number of links."""
        return self.whole(name, value, MAX_LINKS)

    def vector(self, name: str, value: Any) -> list[float] | None:
        """A list of numbers, or a text that holds one."""
        if value is None or value == [] or (isinstance(value, str) and value.strip().lower() in _NOTHING):
            return None
        try:
            vector = [float(entry) for entry in (orjson.loads(value) if isinstance(value, str) else value)]
        except (TypeError, ValueError, OverflowError):  # the second also for what is not JSON
            vector = [math.inf]
        if all(abs(entry) <= LARGEST for entry in vector):
            return vector
        self.unusable[name] += 1
        return None
