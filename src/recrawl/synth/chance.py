"""Seeded chance in two forms: streams by name for arrays drawn at once, and a hash for numbers needed in any order."""

from __future__ import annotations

import zlib

import numpy as np

from recrawl.core.arrays import Floats, Ints


def stream(seed: int, name: str) -> np.random.Generator:
    """A generator of its own for each purpose, so that a new purpose does not change the numbers of the others."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def scatter(numbers: Ints, purpose: int) -> Ints:
    """A well-mixed number from 0 to 2⁶³ − 1 for each number; the same for the same number and purpose (SplitMix64).

    >>> bool((scatter(np.arange(3), 1) == scatter(np.arange(3), 1)).all())
    True
    """
    with np.errstate(over="ignore"):
        x = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x += np.uint64(purpose) * np.uint64(0xD1B54A32D192ED03)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(1)).astype(np.int64)


def shares(values: Floats) -> Floats:
    """Each value's rank as a share between 0 and 1: draws become evenly spread, whatever the size of the sample.

    >>> shares(np.array([5.0, 1.0, 9.0, 2.0]))
    array([0.625, 0.125, 0.875, 0.375])
    """
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return (ranks + 0.5) / max(len(values), 1)
