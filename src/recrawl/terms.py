"""The words of a text and their counts, as ids, without making a Python object of every word.

What counts as a word is written in `recrawl.parse.term_counts`; this is the same, many times as fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from recrawl.hashing_arrays import hash_slice

MIN_LENGTH = 3  # characters of a word
_WORD, _DIGIT = 1, 2


@dataclass(frozen=True, slots=True)
class Terms:
    """Distinct words by ascending id; word i is ``utf8[start[i]:end[i]]``."""

    id: NDArray[np.int64]
    count: NDArray[np.int32]
    utf8: bytes
    start: NDArray[np.int32]
    end: NDArray[np.int32]

    def word(self, i: int) -> str:
        """The word itself."""
        return self.utf8[self.start[i] : self.end[i]].decode()

    def most_frequent(self, n: int) -> Terms:
        """The `n` most frequent words, ties by id; all of them if there are no more."""
        if len(self.id) <= n:
            return self
        kept = np.sort(np.argsort(-self.count, kind="stable")[:n])
        return Terms(self.id[kept], self.count[kept], self.utf8, self.start[kept], self.end[kept])


def count_terms(text: str) -> Terms:
    """The words of a text.

    >>> found = count_terms("The cat and the hat, 2026")
    >>> sorted((found.word(i), int(found.count[i])) for i in range(len(found.id)))
    [('and', 1), ('cat', 1), ('hat', 1), ('the', 2)]
    """
    utf8 = text.lower().encode("utf-8", "replace")
    found, count, start, end = _count(np.frombuffer(utf8, np.uint8), _classes())
    order = np.argsort(found)
    return Terms(found[order], count[order], utf8, start[order], end[order])


@lru_cache(maxsize=1)
def _classes() -> NDArray[np.uint8]:
    """For every character whether it is part of words, and whether it is a digit, as the re module and str see it."""
    characters = [chr(code) for code in range(0x40000)]  # all that is written with; beyond are tags and private use
    classes = np.zeros(0x110000, np.uint8)
    classes[: len(characters)] = [c.isalnum() * _WORD + c.isdigit() * _DIGIT for c in characters]
    classes[ord("_")] = _WORD
    return classes


@njit(cache=True, nogil=True)
def _count(  # type: ignore[no-untyped-def]
    utf8, classes
):
    size = 64
    while size < len(utf8) // 2:
        size *= 2
    slot = np.full(size, -1, np.int32)  # → position in the four lists
    found = np.empty(size, np.int64)
    count = np.empty(size, np.int32)
    start = np.empty(size, np.int32)
    end = np.empty(size, np.int32)
    n = 0
    at = begin = length = 0
    only_digits = True
    stop = len(utf8)
    while at <= stop:
        kind, width = 0, 1
        if at < stop:
            code = np.int64(utf8[at])
            if code >= 0xF0:
                code = (code & 7) << 18 | (utf8[at + 1] & 63) << 12 | (utf8[at + 2] & 63) << 6 | (utf8[at + 3] & 63)
                width = 4
            elif code >= 0xE0:
                code = (code & 15) << 12 | (utf8[at + 1] & 63) << 6 | (utf8[at + 2] & 63)
                width = 3
            elif code >= 0xC0:
                code = (code & 31) << 6 | (utf8[at + 1] & 63)
                width = 2
            kind = classes[code]
        if kind & _WORD:
            if length == 0:
                begin = at
                only_digits = True
            length += 1
            only_digits = only_digits and kind & _DIGIT != 0
        else:
            if length >= MIN_LENGTH and not only_digits:
                key = np.int64(hash_slice(utf8, begin, at))
                i = (key ^ (key >> 29)) & (size - 1)
                while slot[i] >= 0 and found[slot[i]] != key:
                    i = (i + 1) & (size - 1)
                if slot[i] < 0:
                    slot[i] = n
                    found[n], count[n], start[n], end[n] = key, 0, begin, at
                    n += 1
                count[slot[i]] += 1
            length = 0
        at += width
    return found[:n], count[:n], start[:n], end[:n]
