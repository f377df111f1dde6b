"""How much of a text's wording two versions share, from small sketches instead of the texts.

A shingle is three words in a row; the Jaccard similarity of two texts' sets of shingles says how much of the wording is common.
It is estimated by one-permutation min-hashing: every shingle falls into one of 64 buckets by its hash, and a bucket keeps the
smallest it was given. A bucket of two texts agrees with the probability that is sought, so the standard error is at most 0.063,
and 0.04 around a similarity of 0.9.

References: Broder (1997), On the resemblance and containment of documents; Li, Owen and Zhang (2012), One permutation hashing.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from recrawl.core.arrays import Floats, Ints, Ints32

N_BUCKETS = 64
EMPTY = -1  #: a bucket that no shingle fell into
WORDS = 3  #: in a shingle; a text of fewer words is one shorter shingle

_P1, _P2, _P3 = (np.uint64(prime) for prime in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9))
_32, _33 = np.uint64(32), np.uint64(33)
_BUCKET = np.uint64(N_BUCKETS - 1)


def sketch_similarities(sketches: Ints32, before: Ints, after: Ints) -> Floats:
    """The estimated share of shingles that two texts have in common, for many pairs of rows; texts without words are alike.

    >>> from recrawl.web.terms import count_terms
    >>> sketches = np.stack([count_terms(text).sketch for text in ("one two three four", "one two three five")])
    >>> sketch_similarities(sketches, np.array([0, 0]), np.array([0, 1])).round(2)
    array([1.  , 0.33])
    """
    return np.asarray(_similarities(np.ascontiguousarray(sketches, np.int32), before, after))


@njit(cache=True, nogil=True)
def _similarities(  # type: ignore[no-untyped-def]
    sketches, before, after
):
    similarity = np.ones(len(before))
    for i in range(len(before)):
        a, b = sketches[before[i]], sketches[after[i]]
        equal = filled = 0
        for bucket in range(len(a)):
            if a[bucket] != EMPTY or b[bucket] != EMPTY:
                filled += 1
                equal += a[bucket] == b[bucket]
        if filled:
            similarity[i] = equal / filled
    return similarity


@njit(cache=True, nogil=True)
def new_sketch():  # type: ignore[no-untyped-def]
    """A sketch that `add_shingle` can fill; unsigned while it is filled, so that an empty bucket is the largest number."""
    return np.full(N_BUCKETS, np.uint32(0xFFFFFFFF), np.uint32)


@njit(cache=True, nogil=True)
def add_shingle(  # type: ignore[no-untyped-def]
    sketch, first, second, third
):
    """Take in three words in a row, by their hashes (unsigned). Sketches are stored: this must never change."""
    mixed = first * _P1
    mixed = ((mixed ^ (mixed >> _32)) + second) * _P2
    mixed = ((mixed ^ (mixed >> _32)) + third) * _P3
    mixed ^= mixed >> _32
    bucket = mixed & _BUCKET
    sketch[bucket] = min(sketch[bucket], np.uint32(mixed >> _33))
