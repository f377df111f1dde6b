"""Large pages in pieces: the parser takes up to 400 bytes for every tag and attribute, so 30 MB of them would fill gigabytes."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numba import njit

MAX_NODES = 500_000  #: tags and attributes from which a page is cut
PIECE = 2 * MAX_NODES  #: bytes of a piece: the shortest attribute is a blank and a letter
_TRIES = 1_000  # places that are looked at for a cut
_TAG = re.compile(rb"<[a-zA-Z!]")
_RAW = re.compile(rb"<(?:!--|(script|style|textarea|title|iframe|xmp)(?=[\s/>]))")


def pieces(utf8: bytes) -> list[bytes]:
    """A page in pieces that can be parsed one after the other; almost every page is one piece.

    None is cut within a tag, a comment or a script. An empty list: there is no place to cut, as in a page that is made to be so.

    >>> [len(piece) for piece in pieces(b"<p>x" * 600_000)], pieces(b"<p>x")
    ([999996, 999996, 400008], [b'<p>x'])
    """
    if len(utf8) <= PIECE or n_nodes(np.frombuffer(utf8, np.uint8)) <= MAX_NODES:
        return [utf8]
    raw = _RawTexts(utf8)
    cuts = [0]
    while len(utf8) - cuts[-1] > PIECE:
        cut = _cut(utf8, cuts[-1], raw)
        if cut is None:
            return []
        cuts.append(cut)
    return [utf8[begin:end] for begin, end in pairwise(dict.fromkeys([*cuts, len(utf8)]))]


class _RawTexts:
    """Where what looks like tags is text: comments and scripts, each to its end or to that of the page."""

    def __init__(self, utf8: bytes) -> None:
        self.begin, self.end = array("q"), array("q")
        for begin, end in self._found(utf8.lower()):
            self.begin.append(begin)
            self.end.append(end)

    def around(self, at: int) -> tuple[int, int] | None:
        """The one that a place is in."""
        i = bisect_right(self.begin, at) - 1
        return (self.begin[i], self.end[i]) if i >= 0 and self.begin[i] < at < self.end[i] else None

    @staticmethod
    def _found(lower: bytes) -> Iterator[tuple[int, int]]:
        at = 0
        while match := _RAW.search(lower, at):
            end = lower.find(b"</" + match[1] if match[1] else b"-->", match.end())
            at = len(lower) if end < 0 else end
            yield match.start(), at


def _cut(utf8: bytes, begin: int, raw: _RawTexts) -> int | None:
    """The last place in a piece at which a tag begins; the end of a comment or script that is longer than a piece."""
    end = begin + PIECE
    for _ in range(_TRIES):
        cut = utf8.rfind(b"<", begin + 1, end)
        if cut < 0:
            return None
        text = raw.around(cut)
        if text and text[0] <= begin:
            return text[1]
        if text:
            end = text[0] + 1
        elif _TAG.match(utf8, cut) and utf8.rfind(b">", begin, cut) > utf8.rfind(b"<", begin, cut):
            return cut
        else:
            end = cut  # within a tag, or no tag
    return None


@njit(cache=True, nogil=True)
def n_nodes(utf8):  # type: ignore[no-untyped-def]
    """Tags and attributes, about as the parser would see them; what looks like a tag in a comment or a script counts, too.

    >>> n_nodes(np.frombuffer(b"<p>1 < 2</p> <a href='a b' c = d e>x</a><br/>", np.uint8))
    8
    """
    n = at = 0
    stop = len(utf8)
    while at < stop - 1:
        if utf8[at] != 60 or not (utf8[at + 1] == 47 or utf8[at + 1] == 33 or 97 <= (utf8[at + 1] | 32) <= 122):
            at += 1
            continue
        n += 1
        at += 2
        while at < stop and utf8[at] != 62:  # until the tag ends
            is_blank = utf8[at] <= 32 or utf8[at] == 47
            at += 1
            if at < stop and is_blank and utf8[at] > 32 and utf8[at] != 62 and utf8[at] != 61 and utf8[at] != 47:
                n += 1
            if at < stop and utf8[at - 1] == 61:  # a value
                while at < stop and utf8[at] <= 32:
                    at += 1
                if at < stop and (utf8[at] == 34 or utf8[at] == 39):
                    quote = utf8[at]
                    at += 1
                    while at < stop and utf8[at] != quote:
                        at += 1
    return n
