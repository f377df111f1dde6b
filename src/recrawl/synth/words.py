"""Made-up words, one per number: `kilone`, `tarusi`; never two numbers with the same word."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from recrawl.core.arrays import Ints

_SYLLABLES = np.array([list(f"{c}{v}".encode()) for c in "bdfgklmnprstvz" for v in "aeiou"], np.uint8)
N_SYLLABLES = len(_SYLLABLES)
_STEP = 1_234_577  # a prime, so that neighbouring numbers get unlike words


def words(numbers: Ints, syllables: int) -> pa.Array:
    """The word with this number of syllables for each number below 70 to that power.

    >>> words(np.array([0, 1, 2]), 3)[1].as_py()
    'tizepe'
    """
    rest = (numbers * _STEP) % N_SYLLABLES**syllables
    digits = np.empty((len(numbers), syllables), np.int64)
    for position in range(syllables):
        digits[:, position] = rest % N_SYLLABLES
        rest //= N_SYLLABLES
    letters = np.ascontiguousarray(_SYLLABLES[digits])
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * (2 * syllables)
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(letters))


def vocabulary(size: int) -> pa.Array:
    """The words of all texts; the first ones, which texts use most, are shorter."""
    short = min(size, 1_000)
    return pa.concat_arrays([words(np.arange(short), 2), words(np.arange(short, size), 3)])
