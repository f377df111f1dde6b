"""What counts as a word, written down in the shortest way."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

_RUN = re.compile(r"\w+")
_UNSPACED = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_STRETCH = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")


def is_long(word: str) -> bool:
    """At least three characters, and not a number."""
    return len(word) >= 3 and not word.isdigit()


def tokens(text: str) -> list[str]:
    """All words in their order; in scripts without spaces pairs of characters."""
    words: list[str] = []
    for run in _RUN.findall(text.lower()):
        for stretch in _STRETCH.findall(run):
            is_pairs = _IS_UNSPACED.match(stretch) and len(stretch) > 1
            words += [a + b for a, b in pairwise(stretch)] if is_pairs else [stretch]
    return words


def term_counts(text: str) -> dict[str, int]:
    """Lower-case words of at least three characters that are not numbers, with their counts."""
    return {word: n for word, n in all_counts(text).items() if is_long(word)}


def all_counts(text: str) -> dict[str, int]:
    """All words; runs of scripts without spaces, too, if they are long."""
    whole = [run for run in _RUN.findall(text.lower()) if _IS_UNSPACED.search(run) and is_long(run)]
    return dict(Counter(tokens(text) + whole))
