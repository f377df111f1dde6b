"""The words of a text and their counts, as ids, and a sketch of their order, without making a Python object of every word.

Words are those of the regular expression ``\\w{3,}`` in lower case that are not numbers; this is the same, many times as fast.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numba import njit

from recrawl.core.array_hashing import hash_slice
from recrawl.core.arrays import Bytes, Ints, Ints32
from recrawl.core.hashing import hash64
from recrawl.core.hashtable import room_for, slot
from recrawl.web.shingles import WORDS as WORDS_IN_SHINGLE
from recrawl.web.shingles import add_shingle, new_sketch

MIN_LENGTH = 3  # characters of a word
_WORD, _DIGIT = 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Distinct words by ascending id; word i is ``utf8[start[i]:end[i]]``. The sketch is of all words, in their order."""

    id: Ints
    count: Ints32
    utf8: bytes
    start: Ints32
    end: Ints32
    sketch: Ints32

    def word(self, i: int) -> str:
        """The word itself."""
        return self.utf8[self.start[i] : self.end[i]].decode()

    def most_frequent(self, n: int) -> Terms:
        """The `n` most frequent words, ties by id; all of them if there are no more."""
        if len(self.id) <= n:
            return self
        kept = np.sort(np.argsort(-self.count, kind="stable")[:n])
        return replace(self, id=self.id[kept], count=self.count[kept], start=self.start[kept], end=self.end[kept])


def count_terms(text: str) -> Terms:
    """The words of a text.

    >>> terms = count_terms("The cat and the hat, 2026")
    >>> sorted((terms.word(i), int(terms.count[i])) for i in range(len(terms.id)))
    [('and', 1), ('cat', 1), ('hat', 1), ('the', 2)]
    """
    utf8 = text.lower().encode("utf-8", "replace")
    ids, count, start, end, sketch = _count(np.frombuffer(utf8, np.uint8), _classes())
    order = np.argsort(ids)
    return Terms(
        id=ids[order],
        count=count[order],
        utf8=utf8,
        start=start[order],
        end=end[order],
        sketch=sketch.view(np.int32),
    )


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
def _classes() -> Bytes:
    """For every character whether it is part of words, and whether it is a digit, as the re module and str see it."""
    characters = [chr(code) for code in range(0x40000)]  # all that is written with; beyond are tags and private use
    classes = np.zeros(0x110000, np.uint8)
    classes[: len(characters)] = [c.isalnum() * _WORD + c.isdigit() * _DIGIT for c in characters]
    classes[ord("_")] = _WORD
    return classes


@njit(cache=True, nogil=True)
def _count(utf8, classes):  # type: ignore[no-untyped-def]
    """The distinct words by first appearance: id, count, where the first one begins and ends; and the sketch of all words."""
    index = np.full(room_for(len(utf8) // 4, 64), -1, np.int32)
    ids, count = np.empty(len(index), np.int64), np.empty(len(index), np.int32)
    start, end = np.empty(len(index), np.int32), np.empty(len(index), np.int32)
    sketch = new_sketch()
    last_but_one = last = np.uint64(0)
    n = n_words = 0
    begin, stop = _next_word(utf8, 0, classes)
    while begin < stop:
        word = hash_slice(utf8, begin, stop)
        n_words += 1
        if n_words >= WORDS_IN_SHINGLE:
            add_shingle(sketch, last_but_one, last, word)
        last_but_one, last = last, word
        key = np.int64(word)
        at = slot(ids, key, index)
        if index[at] < 0:
            index[at] = n
            ids[n], count[n], start[n], end[n] = key, 0, begin, stop
            n += 1
        count[index[at]] += 1
        begin, stop = _next_word(utf8, stop, classes)
    if 0 < n_words < WORDS_IN_SHINGLE:
        add_shingle(sketch, np.uint64(0), last_but_one, last)
    return ids[:n], count[:n], start[:n], end[:n], sketch


@njit(cache=True, nogil=True)
def _next_word(utf8, at, classes):  # type: ignore[no-untyped-def]
    """Where the next word begins and ends; the end of the text twice if there is none."""
    begin, length, only_digits = at, 0, True
    while at < len(utf8):
        code, width = _character(utf8, at)
        kind = classes[code]
        if kind & _WORD:
            if length == 0:
                begin, only_digits = at, True
            length += 1
            only_digits = only_digits and kind & _DIGIT != 0
        else:
            if length >= MIN_LENGTH and not only_digits:
                return begin, at
            length = 0
        at += width
    return (begin, at) if length >= MIN_LENGTH and not only_digits else (at, at)


@njit(cache=True, nogil=True)
def _character(utf8, at):  # type: ignore[no-untyped-def]
    """The code point that begins here, and its number of bytes."""
    code = np.int64(utf8[at])
    if code < 0xC0:
        return code, 1
    if code < 0xE0:
        return (code & 31) << 6 | (utf8[at + 1] & 63), 2
    if code < 0xF0:
        return (code & 15) << 12 | (utf8[at + 1] & 63) << 6 | (utf8[at + 2] & 63), 3
    return (code & 7) << 18 | (utf8[at + 1] & 63) << 12 | (utf8[at + 2] & 63) << 6 | (utf8[at + 3] & 63), 4
