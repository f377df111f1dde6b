"""`hash64` of many byte strings at once, straight from Arrow buffers: millions of URLs per second.

Apart from `recrawl.core.hashing`, which whatever hashes single texts can import without numba.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numba import njit

from recrawl.core.arrays import Bytes, Ints

#: The primes of the XXH64 specification.
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)


def hash64_strings(strings: pa.Array | pa.ChunkedArray) -> Ints:
    """The `hash64` of every text of an Arrow array without nulls.

    >>> from recrawl.core.hashing import hash64
    >>> hash64_strings(pa.array(["https://example.org/"]))[0] == hash64("https://example.org/")
    np.True_
    """
    if isinstance(strings, pa.ChunkedArray):
        return np.concatenate([hash64_strings(chunk) for chunk in strings.chunks] or [np.empty(0, np.int64)])
    strings = strings.cast(pa.large_string())
    _, starts, data = strings.buffers()
    if not len(strings):
        return np.empty(0, np.int64)
    offsets = np.frombuffer(starts, np.int64)[strings.offset : strings.offset + len(strings) + 1]
    return hash64_slices(np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8), offsets)


def hash64_slices(data: Bytes, offsets: Ints) -> Ints:
    """The `hash64` of ``data[offsets[i]:offsets[i + 1]]`` for every i.

    >>> hash64_slices(np.frombuffer(b"abc", np.uint8), np.array([0, 0, 3]))
    array([-1205034819632174695, 4952883123889572249])
    """
    return np.asarray(_hash_slices(data, offsets))


@njit(cache=True, nogil=True)
def _hash_slices(data, offsets):  # type: ignore[no-untyped-def]
    digests = np.empty(len(offsets) - 1, np.int64)
    for i in range(len(digests)):
        digests[i] = np.int64(hash_slice(data, offsets[i], offsets[i + 1]))
    return digests


@njit(cache=True, nogil=True)
def hash_slice(data, start, end):  # type: ignore[no-untyped-def]
    """For use in other kernels: the `hash64` of ``data[start:end]``, unsigned."""
    size = end - start
    value = (_stripes(data, start, end) if size >= 32 else _P5) + np.uint64(size)
    at = end - size % 32
    while at + 8 <= end:
        value = _rotate(value ^ _round(np.uint64(0), _word(data, at, 8)), 27) * _P1 + _P4
        at += 8
    if at + 4 <= end:
        value = _rotate(value ^ (_word(data, at, 4) * _P1), 23) * _P2 + _P3
        at += 4
    while at < end:
        value = _rotate(value ^ (np.uint64(data[at]) * _P5), 11) * _P1
        at += 1
    value = (value ^ (value >> np.uint64(33))) * _P2
    value = (value ^ (value >> np.uint64(29))) * _P3
    return value ^ (value >> np.uint64(32))


@njit(cache=True, nogil=True)
def _stripes(data, start, end):  # type: ignore[no-untyped-def]
    """The four lanes over all whole stripes of 32 bytes, merged."""
    a, b, c, d = _P1 + _P2, _P2, np.uint64(0), np.uint64(0) - _P1
    for at in range(start, end - 31, 32):
        a, b = _round(a, _word(data, at, 8)), _round(b, _word(data, at + 8, 8))
        c, d = _round(c, _word(data, at + 16, 8)), _round(d, _word(data, at + 24, 8))
    merged = _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)
    for lane in (a, b, c, d):
        merged = (merged ^ _round(np.uint64(0), lane)) * _P1 + _P4
    return merged


@njit(cache=True, nogil=True)
def _round(lane, value):  # type: ignore[no-untyped-def]
    return _rotate(lane + value * _P2, 31) * _P1


@njit(cache=True, nogil=True)
def _rotate(x, bits):  # type: ignore[no-untyped-def]
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@njit(cache=True, nogil=True)
def _word(data, at, size):  # type: ignore[no-untyped-def]
    """The bytes as a little-endian number."""
    value = np.uint64(0)
    for i in range(size):
        value |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return value
