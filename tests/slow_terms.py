"""What counts as a word, written down in the shortest way."""

from __future__ import annotations

import re
from collections import Counter

_WORD = re.compile(r"\w{3,}")


def term_counts(text: str) -> dict[str, int]:
    """Lower-case words of at least three characters that are not numbers, with their counts."""
    counts = Counter(_WORD.findall(text.lower()))
    return {word: count for word, count in counts.items() if not word.isdigit()}
