"""Budgets as people write them: a number of pages, or a share of them."""

from __future__ import annotations

import math
import re

from recrawl.errors import BadBudget


def share_or_number(text: str) -> tuple[float, bool]:
    """A budget, and whether it is a share in percent; else it is a number of pages.

    >>> share_or_number("12.5 %"), share_or_number("500")
    ((12.5, True), (500.0, False))
    """
    match = re.fullmatch(r"([+-]?\d{1,15}(?:\.\d+)?)\s*(%?)", text.strip(), re.ASCII)
    if not match or ("." in match[1] and not match[2]):
        raise BadBudget(f"{text!r}: write a number of pages or a share of them, such as 500 or 10%")
    amount = float(match[1])
    if amount <= 0:
        raise BadBudget(f"{text!r} fetches nothing: give at least 1 page or a share above 0%")
    return amount, bool(match[2])


def pages_of(text: str, n_pages: int) -> int:
    """A budget as pages; a share is at least one page.

    >>> pages_of("10%", 117), pages_of("40", 117), pages_of("500", 117)
    (12, 40, 500)
    """
    amount, is_share = share_or_number(text)
    return max(1, math.floor(amount / 100 * n_pages + 0.5)) if is_share else int(amount)
