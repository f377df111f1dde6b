"""Text from the web as it may be shown: control characters are made visible, and missing letters replaced.

A title can hold the codes that move a cursor, rename a window or turn the direction of writing. On a terminal they would do so.
"""

from __future__ import annotations

import codecs
import re

#: All control characters but the end of a line; separators of lines that only some programs know; what turns the direction of
#: writing; letters without a shape (tags); halves of letters, as names of files have them that are not in UTF-8.
_UNSAFE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)
#: What a terminal that knows only few letters shows instead.
_PLAIN = str.maketrans(
    {
        "–": "-", "—": "-", "−": "-", "‑": "-", "…": "...", "•": "*", "·": "*", "×": "x", "÷": "/", "≈": "~", "≤": "<=", "≥": ">=",
        "→": "->", "←": "<-", "‘": "'", "’": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "\xa0": " ", "\u202f": " ",
        "│": "|", "─": "-", "━": "-", "┃": "|", "╭": "+", "╮": "+", "╰": "+", "╯": "+", "✓": "x",
        **dict(zip("▁▂▃▄▅▆▇█", "._-=+*%#", strict=True)),
    }
)  # fmt: skip
PLAIN_LETTERS = "recrawl.plain"  #: the name by which a stream asks for `_replaced`


def visible(text: str) -> str:
    r"""The text with every control character written out.

    >>> print(visible("red: \x1b[31m, right to left: \u202e, a bell: \a, two\nlines, café"))
    red: \x1b[31m, right to left: \u202e, a bell: \x07, two
    lines, café
    """
    return _UNSAFE.sub(_written_out, text)


def one_line(text: str) -> str:
    r"""As `visible`, line ends included: a name that is quoted within a sentence.

    >>> print(one_line("a\nb"))
    a\nb
    """
    return visible(text).replace("\n", "\\n")


def plain_letters(text: str, encoding: str = "ascii") -> str:
    """The text in letters that an encoding has; signs get a likeness, all else a question mark.

    >>> plain_letters("│ 3 – 5 …  日本 ▂█ │"), plain_letters("café – 日本", "latin-1")
    ('| 3 - 5 ...  ?? _# |', 'café - ??')
    """
    return text.encode(encoding, PLAIN_LETTERS).decode(encoding)


def _written_out(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """What a codec writes for letters that it does not have."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    likeness = error.object[error.start : error.end].translate(_PLAIN)
    return "".join(letter if letter.isascii() else "?" for letter in likeness), error.end


codecs.register_error(PLAIN_LETTERS, _replaced)
