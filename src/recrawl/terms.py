"""The words of a text and their counts, as ids, and a sketch of their order, without making a Python object of every word.

What counts as a word is written in `recrawl.parse.term_counts`; this is the same, many times as fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from recrawl.hashing import hash64
from recrawl.hashing_arrays import hash_slice
from recrawl.shingles import WORDS as WORDS_IN_SHINGLE
from recrawl.shingles import Sketch, add_shingle, new_sketch

MIN_LENGTH = 3  # characters of a word
_WORD, _DIGIT = 1, 2


@dataclass(frozen=True, slots=True)
class Terms:
    """Distinct words by ascending id; word i is ``utf8[start[i]:end[i]]``. The sketch is of all words, in their order."""

    id: NDArray[np.int64]
    count: NDArray[np.int32]
    utf8: bytes
    start: NDArray[np.int32]
    end: NDArray[np.int32]
    sketch: Sketch

    def word(self, i: int) -> str:
        """The word itself."""
        return self.utf8[self.start[i] : self.end[i]].decode()

    def most_frequent(self, n: int) -> Terms:
        """The `n` most frequent words, ties by id; all of them if there are no more."""
        if len(self.id) <= n:
            return self
        kept = np.sort(np.argsort(-self.count, kind="stable")[:n])
        return Terms(self.id[kept], self.count[kept], self.utf8, self.start[kept], self.end[kept], self.sketch)


def count_terms(text: str) -> Terms:
    """The words of a text.

    >>> found = count_terms("The cat and the hat, 2026")
    >>> sorted((found.word(i), int(found.count[i])) for i in range(len(found.id)))
    [('and', 1), ('cat', 1), ('hat', 1), ('the', 2)]
    """
    utf8 = text.lower().encode("utf-8", "replace")
    found, count, start, end, sketch = _count(np.frombuffer(utf8, np.uint8), _classes())
    order = np.argsort(found)
    return Terms(found[order], count[order], utf8, start[order], end[order], sketch.view(np.int32))


class UnseenIds:
    """Tells which ids it is asked about for the first time.

    >>> UnseenIds().unseen(np.array([5, 7, 5]))
    array([0, 1])
    """

    def __init__(self) -> None:
        self._table = np.zeros(1 << 12, np.int64)
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def clear(self) -> None:
        """Start anew."""
        self.__init__()  # type: ignore[misc]

    def unseen(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions of the ids that were not asked about before."""
        while 2 * (self._n + len(ids)) > len(self._table):
            old = self._table[self._table != 0]
            self._table = np.zeros(2 * len(self._table), np.int64)
            _insert(self._table, old, np.empty(len(old), np.int64))
        positions = np.empty(len(ids), np.int64)
        n = _insert(self._table, ids, positions)
        self._n += n
        return positions[:n]


@njit(cache=True, nogil=True)
def _insert(  # type: ignore[no-untyped-def]
    table, ids, positions
):
    n = 0
    mask = len(table) - 1
    for position in range(len(ids)):
        key = ids[position]
        i = (key ^ (key >> 29)) & mask
        while table[i] != key and table[i] != 0:
            i = (i + 1) & mask
        if table[i] != key:
            table[i] = key
            positions[n] = position
            n += 1
    return n


def collapsed(text: str) -> tuple[int, int]:
    """The `hash64` of a text's UTF-8, and its length in bytes, after all white space is reduced to single blanks.

    >>> collapsed(" two\\n words") == (hash64("two words"), 9)
    True
    """
    utf8 = np.frombuffer(text.encode("utf-8", "replace"), np.uint8)
    kept = np.empty(len(utf8), np.uint8)
    length = _collapse(utf8, kept)
    return hash64(kept[:length].tobytes()), length


@njit(cache=True, nogil=True)
def _is_space(  # type: ignore[no-untyped-def]
    utf8, at, byte
):
    """Whether the character there is white space, as str.split() sees it."""
    if byte <= 32:
        return byte == 32 or 9 <= byte <= 13 or 28 <= byte <= 31
    if byte == 0xC2:
        return utf8[at + 1] == 0xA0 or utf8[at + 1] == 0x85
    if byte == 0xE2:
        last = utf8[at + 2]
        if utf8[at + 1] == 0x80:
            return 0x80 <= last <= 0x8A or last == 0xA8 or last == 0xA9 or last == 0xAF
        return utf8[at + 1] == 0x81 and last == 0x9F
    if byte == 0xE3:
        return utf8[at + 1] == 0x80 and utf8[at + 2] == 0x80
    return byte == 0xE1 and utf8[at + 1] == 0x9A and utf8[at + 2] == 0x80


@njit(cache=True, nogil=True)
def _collapse(  # type: ignore[no-untyped-def]
    utf8, kept
):
    n = at = 0
    while at < len(utf8):
        byte = utf8[at]
        if 32 < byte < 0x80:  # most characters
            kept[n] = byte
            n += 1
            at += 1
            continue
        width = 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        if _is_space(utf8, at, byte):
            if n and kept[n - 1] != 32:
                kept[n] = 32
                n += 1
        else:
            for i in range(at, at + width):
                kept[n] = utf8[i]
                n += 1
        at += width
    return n - 1 if n and kept[n - 1] == 32 else n


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
    sketch = new_sketch()
    last_but_one = last = np.uint64(0)
    n = n_words = 0
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
                word = hash_slice(utf8, begin, at)
                n_words += 1
                if n_words >= WORDS_IN_SHINGLE:
                    add_shingle(sketch, last_but_one, last, word)
                last_but_one, last = last, word
                key = np.int64(word)
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
    if 0 < n_words < WORDS_IN_SHINGLE:
        add_shingle(sketch, np.uint64(0), last_but_one, last)
    return found[:n], count[:n], start[:n], end[:n], sketch
