"""Budgets in pages and as shares."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import BadBudget
from recrawl.plan.budgets import pages_of


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_a_number_is_a_number_of_pages(number: int, n_pages: int) -> None:
    assert pages_of(str(number), n_pages) == number


@given(st.integers(1, 10_000), st.integers(1, 10**6))
def test_a_share_is_that_share_to_half_a_page_but_at_least_one(hundredths: int, n_pages: int) -> None:
    pages = pages_of(f"{hundredths / 100}%", n_pages)
    assert 1 <= pages <= n_pages
    assert pages == 1 or abs(pages - hundredths / 10_000 * n_pages) <= 0.5 + 1e-6


@pytest.mark.parametrize("budget", ["0", "0%", "-5", "1.5", "ten", "", "%", "10%%", "1e3", "٣", "10 pages", "nan"])
def test_a_text_that_is_not_a_budget_is_refused(budget: str) -> None:
    with pytest.raises(BadBudget):
        pages_of(budget, 100)
