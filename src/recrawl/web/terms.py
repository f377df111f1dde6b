"""The words of a text and their counts, as ids, and a sketch of their order, without making a Python object of every word.

Long words are those of the regular expression ``\\w{3,}`` in lower case that are not numbers: what a text is about. Short ones are
all others: numbers, words of one or two characters, and, in scripts that are written without spaces, pairs of characters. They
show that a text changed: on a page of interest rates nothing else does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numba import njit

from recrawl.core.array_hashing import hash_slice
from recrawl.core.arrays import Bytes, Flags, Ints, Ints32
from recrawl.core.hashing import hash64
from recrawl.core.hashtable import room_for, slot
from recrawl.web.shingles import WORDS as WORDS_IN_SHINGLE
from recrawl.web.shingles import add_shingle, new_sketch

MIN_LENGTH = 3  # characters of a long word
_WORD, _DIGIT, _UNSPACED = 1, 2, 4
#: Scripts without spaces between words: Thai, Lao, Tibetan, Burmese, Khmer, kana, Han.
_UNSPACED_SCRIPTS = (
    (0x0E00, 0x0FFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3040, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),
    (0x20000, 0x3FFFF),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Distinct words by ascending id; word i is ``utf8[start[i]:end[i]]``. The sketch is of all words, in their order."""

    id: Ints
    is_long: Flags
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
        return self._some(np.sort(np.argsort(-self.count, kind="stable")[:n]))

    def long(self) -> Terms:
        """Only the long words."""
        return self._some(np.flatnonzero(self.is_long))

    def short(self) -> Terms:
        """Only the others."""
        return self._some(np.flatnonzero(~self.is_long))

    def _some(self, kept: Ints) -> Terms:
        names = ("id", "is_long", "count", "start", "end")
        return replace(self, **{name: getattr(self, name)[kept] for name in names})


def count_terms(text: str) -> Terms:
    """The words of a text.

    >>> terms = count_terms("The cat and the hat, 2026")
    >>> sorted((terms.word(i), int(terms.count[i]), bool(terms.is_long[i])) for i in range(len(terms.id)))
    [('2026', 1, False), ('and', 1, True), ('cat', 1, True), ('hat', 1, True), ('the', 2, True)]
    """
    utf8 = text.lower().encode("utf-8", "replace")
    ids, is_long, count, start, end, sketch = _count(np.frombuffer(utf8, np.uint8), _classes())
    order = np.argsort(ids)
    return Terms(
        id=ids[order],
        is_long=is_long[order],
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
    for first, last in _UNSPACED_SCRIPTS:
        classes[first : last + 1] |= (classes[first : last + 1] & _WORD) * _UNSPACED
    return classes


@njit(cache=True, nogil=True)
def _count(utf8, classes):  # type: ignore[no-untyped-def]
    """The distinct words by first appearance: id, whether long, count, where the first one begins and ends; and the sketch.

    A run of letters and digits is a word. One of a script without spaces is a long word as it is, and pairs of characters.
    """
    index = np.full(room_for(len(utf8) // 2 + 1, 64), -1, np.int32)
    ids, count = np.empty(len(index), np.int64), np.empty(len(index), np.int32)
    start, end = np.empty(len(index), np.int32), np.empty(len(index), np.int32)
    is_long = np.empty(len(index), np.bool_)
    table = (index, ids, is_long, count, start, end)
    sketch, last = new_sketch(), np.zeros(3, np.uint64)  # the last two words, and how many there were
    n = 0
    begin, stop, length, kind = _next_run(utf8, 0, classes)
    while begin < stop:
        counts_as_long = length >= MIN_LENGTH and kind & _DIGIT == 0
        if kind & _UNSPACED == 0:
            n, word = _note(table, n, utf8, begin, stop, counts_as_long)
            _follow(sketch, last, word)
        else:
            if counts_as_long:
                n, word = _note(table, n, utf8, begin, stop, True)
            n = _note_pairs(table, n, utf8, begin, stop, classes, sketch, last)
        begin, stop, length, kind = _next_run(utf8, stop, classes)
    if 0 < last[2] < WORDS_IN_SHINGLE:
        add_shingle(sketch, np.uint64(0), last[0], last[1])
    return ids[:n], is_long[:n], count[:n], start[:n], end[:n], sketch


@njit(cache=True, nogil=True)
def _note(table, n, utf8, begin, stop, counts_as_long):  # type: ignore[no-untyped-def]
    """Count a word; the number of distinct ones, and its hash."""
    index, ids, is_long, count, start, end = table
    word = hash_slice(utf8, begin, stop)
    key = np.int64(word)
    at = slot(ids, key, index)
    if index[at] < 0:
        index[at] = n
        ids[n], is_long[n], count[n], start[n], end[n] = key, counts_as_long, 0, begin, stop
        n += 1
    count[index[at]] += 1
    return n, word


@njit(cache=True, nogil=True)
def _follow(sketch, last, word):  # type: ignore[no-untyped-def]
    """The next word of the text, for its shingles."""
    last[2] += np.uint64(1)
    if last[2] >= WORDS_IN_SHINGLE:
        add_shingle(sketch, last[0], last[1], word)
    last[0], last[1] = last[1], word


@njit(cache=True, nogil=True)
def _note_pairs(table, n, utf8, begin, stop, classes, sketch, last):  # type: ignore[no-untyped-def]
    """Count a run in a script without spaces by pairs of characters that overlap; parts in other scripts are words as they are."""
    at, was_unspaced = begin, False
    while at < stop:
        code, width = _character(utf8, at)
        after, length, only_digits = at + width, 1, classes[code] & _DIGIT != 0
        if classes[code] & _UNSPACED != 0:
            following, next_width = _character(utf8, after) if after < stop else (0, 0)
            is_pair = classes[following] & _UNSPACED != 0
            if is_pair or not was_unspaced:  # the last of several is part of the pair before
                n, word = _note(table, n, utf8, at, after + next_width if is_pair else after, False)
                _follow(sketch, last, word)
            was_unspaced = True
        else:
            while after < stop:
                following, next_width = _character(utf8, after)
                if classes[following] & _UNSPACED != 0:
                    break
                only_digits = only_digits and classes[following] & _DIGIT != 0
                after += next_width
                length += 1
            n, word = _note(table, n, utf8, at, after, length >= MIN_LENGTH and not only_digits)
            _follow(sketch, last, word)
            was_unspaced = False
        at = after
    return n


@njit(cache=True, nogil=True)
def _next_run(utf8, at, classes):  # type: ignore[no-untyped-def]
    """Where the next run of letters and digits begins and ends, its characters, and its kind: only digits, any without spaces."""
    while at < len(utf8):
        code, width = _character(utf8, at)
        if classes[code] & _WORD:
            break
        at += width
    begin, length, only_digits, unspaced = at, 0, _DIGIT, 0
    while at < len(utf8):
        code, width = _character(utf8, at)
        kind = classes[code]
        if kind & _WORD == 0:
            break
        only_digits &= kind
        unspaced |= kind & _UNSPACED
        length += 1
        at += width
    return begin, at, length, only_digits | unspaced


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
