"""How much work a page is for the HTML parser, estimated from its tags: some pages are made to stall their readers."""

from __future__ import annotations

import re

import numpy as np
from numba import njit

MAX_WORK = 300_000_000  #: steps that a page may cost beyond its length; about a second
MAX_TAGS = 4_000_000
FEW_TAGS, FEW_REPEATS = 20_000, 1_000  #: with fewer tags, and fewer that can be repeated, no page is costly
REPEAT_WORK = 100  #: steps for a tag that is repeated
LONG_TAG = 100_000  #: characters from which a single tag may be costly

#: Tags that add nothing to the depth: void, or closed by the next of their kind.
_FLAT = (
    "area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr"
    "|a|p|option|tr|td|th|thead|tbody|tfoot|colgroup|caption"
)
_TAG = re.compile(rf"<!--|<(/?)(?!(?:{_FLAT})[\s/>])([a-z][a-z0-9:-]*)", re.IGNORECASE)
_FORMATTING = frozenset(["b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"])
_WITH_ATTRIBUTES = re.compile(rf"<(?:{'|'.join(sorted(_FORMATTING))})[\s/]", re.IGNORECASE)
_LONG_TAG = re.compile(rf"<[a-zA-Z][^<>]{{{LONG_TAG},}}")
_ITEMS = frozenset(("li", "dt", "dd"))
_WITHIN_ITEMS = _FORMATTING | {"div", "span", "address"}  # what an item left open may hold when the next one closes it
_LOOK_BACK = 64  # open tags among which the one that a tag closes is looked for


#: Letters that formatting tags begin with.
_LIKE_FORMATTING = np.zeros(256, np.bool_)
_LIKE_FORMATTING[list(b"BbCcEeFfIiNnSsTtUu")] = True
_LONGEST = max(map(len, _FORMATTING))


def is_too_costly(utf8: bytes) -> bool:
    """Whether the parser would need too long for a page; ordinary pages are recognised by a quick look."""
    n_tags = utf8.count(b"<")
    few_repeats = (
        n_tags < FEW_REPEATS or _n_like_formatting(np.frombuffer(utf8, np.uint8), _LIKE_FORMATTING) < FEW_REPEATS
    )
    if few_repeats and n_tags < FEW_TAGS and len(utf8) < LONG_TAG:
        return False
    return parsing_work(utf8.decode("utf-8", "replace")) > MAX_WORK


@njit(cache=True, nogil=True)
def _n_like_formatting(  # type: ignore[no-untyped-def]
    utf8, opens
):
    """Tags with attributes that may be formatting ones, judged by their first letter and their length."""
    n = at = 0
    stop = len(utf8) - 2
    while at < stop:
        if utf8[at] == 60 and opens[utf8[at + 1]]:
            end = at + 2
            while end < stop and end - at <= _LONGEST and (utf8[end] | 32) >= 97 and (utf8[end] | 32) <= 122:
                end += 1
            n += utf8[end] == 47 or utf8[end] == 32 or 9 <= utf8[end] <= 13
            at = end
        else:
            at += 1
    return n


def parsing_work(html: str) -> int:
    """About how many steps the parser will need, beyond those of the page's length.

    An open tag is looked at again for each one inside it, a formatting tag left open is repeated in every block that follows,
    and an attribute is compared with all others of its tag: small pages can be made that take hours. Follows the rules of HTML
    only as far as ordinary pages need.

    >>> parsing_work("<p>" * 50_000), parsing_work("<div>" * 50_000) > MAX_WORK
    (0, True)
    """
    n_tags = html.count("<")
    if n_tags > MAX_TAGS or any(len(tag.split()) ** 2 > MAX_WORK for tag in _LONG_TAG.findall(html)):
        return MAX_WORK + 1
    if n_tags < FEW_TAGS and (n_tags < FEW_REPEATS or len(_WITH_ATTRIBUTES.findall(html)) < FEW_REPEATS):
        return 0
    return _nesting_work(html)


def _nesting_work(html: str) -> int:
    work, at, foreign = 0, 0, 0
    stack: list[str] = []
    left_open: dict[str, None] = {}
    while work <= MAX_WORK:
        tag = _TAG.search(html, at)
        if left_open:
            # What follows a formatting tag left open repeats it, flat tags included.
            work += REPEAT_WORK * len(left_open) * html.count("<", at, tag.end() if tag else len(html))
        if not tag:
            break
        at = tag.end()
        name = (tag[2] or "").lower()
        if not name:
            at = _behind(html, "-->", at)
        elif tag[1]:
            foreign -= name in ("svg", "math") and foreign > 0
            _close(stack, name)
            if name in _FORMATTING and left_open:
                left_open.popitem()
        elif name in ("script", "style") and not foreign:
            at = _behind(html, f"</{name}", at)
        elif not (foreign and _closes_itself(html, at)):
            foreign += name in ("svg", "math")
            if name in _FORMATTING:
                # Counted by spelling: of equal ones, three are repeated at most.
                left_open[html[tag.start() : at + 64].partition(">")[0]] = None
            elif name in _ITEMS:
                _close(stack, name)
            stack.append(name)
            work += len(stack)
    return work


def _behind(html: str, end: str, at: int) -> int:
    begin = html.find(end, at)
    return len(html) if begin < 0 else begin + len(end)


def _closes_itself(html: str, at: int) -> bool:
    end = html.find(">", at, at + 4096)
    return end > 0 and html[end - 1] == "/"


def _close(stack: list[str], name: str) -> None:
    for i in range(len(stack) - 1, max(len(stack) - _LOOK_BACK, 0) - 1, -1):
        if stack[i] == name:
            del stack[i:]
            break
        if name in _ITEMS and stack[i] not in _WITHIN_ITEMS:
            break  # the item of an outer list stays open
