"""Digests that make link sets and texts content-addressed: equal content, equal digest, stored once."""

from __future__ import annotations

from array import array
from typing import TypeAlias

import numpy as np

from recrawl.core.arrays import Ints, Ints32
from recrawl.core.hashing import hash64

Ids: TypeAlias = "array[int] | Ints"


def link_set_digest(internal: Ids, external: Ids) -> int:
    """The digest of a page's outlinks, both parts ascending ids.

    The number of internal links is part of it: the same links can be internal to one page and external to another.

    >>> link_set_digest(np.array([1, 2]), np.array([3])) == link_set_digest(np.array([1]), np.array([2, 3]))
    False
    """
    return hash64(np.int64(len(internal)).tobytes() + internal.tobytes() + external.tobytes())


def terms_digest(terms: Ints, counts: Ints32, vector: array[float], short: tuple[Ints, Ints32] | None = None) -> int:
    """The digest of a text's words (and of the vector given with it, if any).

    Short words are part of it, if there are any: texts that differ in numbers alone are two.
    """
    more = b"short" + short[0].tobytes() + short[1].tobytes() if short is not None and len(short[0]) else b""
    return hash64(terms.tobytes() + counts.tobytes() + vector.tobytes() + more)
